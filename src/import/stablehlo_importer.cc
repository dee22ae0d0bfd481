// The walk over functions, blocks and regions, and the resulting module.
#include "import/stablehlo_importer.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "import/stablehlo_ops.h"

namespace heddle::import {
namespace {

constexpr int kDeepest = 200;           // nested functions and regions
constexpr int64_t kFoldWork = 1 << 24;  // elements, for all shape arithmetic together
constexpr int64_t kMostParameters = 1 << 16;

// Calls visit(".0.1", leaf) for every leaf of a shape; "" if it is not a tuple.
template <typename Visit>
void for_each_leaf(const Shape& shape, const std::string& path, Visit visit) {
  if (!shape.is_tuple()) return visit(path, shape);
  for (size_t i = 0; i < shape.elements().size(); ++i)
    for_each_leaf(shape.elements()[i], path + "." + std::to_string(i), visit);
}

void collect_uses(const MlirRegion& region, std::unordered_set<MlirValue>& defined,
                  std::vector<MlirValue>& used) {
  for (const MlirBlock& block : region.blocks) {
    defined.insert(block.arguments.begin(), block.arguments.end());
    for (const MlirOp& op : block.ops) {
      used.insert(used.end(), op.operands.begin(), op.operands.end());
      for (const MlirRegion& inner : op.regions) collect_uses(inner, defined, used);
      defined.insert(op.results.begin(), op.results.end());
    }
  }
}

}  // namespace

bool is_terminator(const MlirOp& op) {
  return op.name == "stablehlo.return" || op.name == "func.return" || op.name == "mhlo.return" ||
         op.name == "sdy.return";
}

StablehloImporter::StablehloImporter(const MlirModule& module, const Options& options,
                                     const std::map<int64_t, Literal>& fixed)
    : source_(module),
      options_(options),
      fixed_(fixed),
      fold_budget_{options.max_fold_elems, kFoldWork} {
  for (const MlirOp& op : source_.body.ops)
    if (op.name == "func.func")
      if (const MlirAttr* name = op.attr("sym_name")) functions_.emplace(name->text, &op);
  for (const auto& [name, text] : source_.locations) locations_.emplace(name, text);
}

const MlirOp& StablehloImporter::function(std::string_view name) const {
  const auto found = functions_.find(name);
  if (found == functions_.end()) fail("no function @{}", name);
  if (found->second->regions.empty() || found->second->regions[0].blocks.size() != 1)
    fail("function @{} has no body of one block", name);
  return *found->second;
}

// @main, or the first function without callers.
const MlirOp& StablehloImporter::entry_function() const {
  if (functions_.contains("main")) return function("main");
  std::unordered_set<std::string_view> called;
  std::vector<const MlirRegion*> open;
  for (const MlirOp& op : source_.body.ops)
    for (const MlirRegion& region : op.regions) open.push_back(&region);
  while (!open.empty()) {
    const MlirRegion& region = *open.back();
    open.pop_back();
    for (const MlirBlock& block : region.blocks)
      for (const MlirOp& op : block.ops) {
        for (const auto& [name, attr] : op.attrs)
          if (attr.is(MlirAttr::Kind::symbol)) called.insert(attr.text);
        for (const MlirRegion& inner : op.regions) open.push_back(&inner);
      }
  }
  for (const MlirOp& op : source_.body.ops) {
    if (op.name != "func.func" || op.regions.empty()) continue;
    const MlirAttr* name = op.attr("sym_name");
    if (name != nullptr && !called.contains(name->text)) return function(name->text);
  }
  fail("no function in the module");
}

Shape StablehloImporter::parameter_shape(const MlirType& type, int64_t number) {
  if (type.kind == MlirType::Kind::token) return Shape::make_token();
  if (type.kind == MlirType::Kind::tuple) {
    std::vector<Shape> elements;
    for (const MlirType& element : type.elements) {
      if (!element.is_static()) fail("arg{}: a tuple of dynamic tensors is not supported", number);
      elements.push_back(parameter_shape(element, number));
    }
    return Shape::make_tuple(std::move(elements));
  }
  if (!type.is_tensor()) fail("arg{} is {}, wanted a tensor", number, to_string(type));
  const std::string name = fmt::format("arg{}", number);
  std::vector<int64_t> dims = type.dims;
  const auto given = options_.shapes.find(name);
  const bool has_shape = given != options_.shapes.end();
  if (has_shape && given->second.size() != dims.size())
    fail("--shape {}: {} dimensions, wanted {}", name, given->second.size(), dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] != MlirType::kDynamic) {
      if (has_shape && given->second[d] != dims[d])
        fail("--shape {}: dimension {} is {}, the model has {}", name, d, given->second[d],
             dims[d]);
      continue;
    }
    const std::string dim_name = fmt::format("{}[{}]", name, d);
    const auto bound_dim = options_.dims.find(dim_name);
    if (has_shape || bound_dim != options_.dims.end()) {
      dims[d] = has_shape ? given->second[d] : bound_dim->second;
    } else if (!type.bounds.empty() && type.bounds[d] != MlirType::kDynamic) {
      dims[d] = type.bounds[d];
      note(fmt::format("{}: dimension {} is bounded (<={}); it runs at its bound", name, d,
                       dims[d]));
    } else {
      dims[d] = 1;
      result_.unbound.emplace_back(dim_name, 1);
      note(fmt::format("dimension '{}' bound to 1 (--shape {}=...)", dim_name, name));
    }
    if (dims[d] < 0) fail("{} is {}", dim_name, dims[d]);
  }
  const auto elems = tensor::checked_product(dims);
  if (!elems || *elems > options_.max_value_elems)
    fail("{} is {}: too large", name, to_string(type));
  return Shape::array(type.element, dims);
}

void StablehloImporter::add_parameters(const MlirOp& main, Frame& frame) {
  const MlirBlock& block = main.regions[0].blocks[0];
  const MlirAttr* names = main.attr("arg_names");
  if (static_cast<int64_t>(block.arguments.size()) > kMostParameters)
    fail("{} parameters", block.arguments.size());
  int64_t number = 0, next = 0;
  for (const MlirValue argument : block.arguments) {
    const int64_t at = number++;
    const std::string name = fmt::format("arg{}", at);
    const MlirType& type = type_of(argument);
    if (const auto value = fixed_.find(at); value != fixed_.end()) {
      frame.values[argument] = frame.builder->constant(value->second);
      continue;
    }
    const Shape shape = parameter_shape(type, at);
    Instr* parameter = frame.builder->parameter(next++, shape, name);
    frame.values[argument] = parameter;
    parameter_numbers_[parameter] = at;
    for_each_leaf(shape, "", [&](const std::string& path, const Shape&) {
      result_.input_names.push_back(name + path);
      const auto place = static_cast<size_t>(at);
      const bool named = names != nullptr && place < names->elements.size() &&
                         !names->elements[place].text.empty() &&
                         names->elements[place].text != name;
      result_.input_aliases.push_back(named ? names->elements[place].text + path : std::string());
    });
  }
}

Imported StablehloImporter::run() {
  const MlirOp& main = entry_function();
  const std::string name = source_.name.empty() ? main.attr("sym_name")->text : source_.name;
  module_ = std::make_unique<hlo::Module>(name);
  hlo::Computation* entry = module_->add_computation("main");
  module_->set_entry(entry);
  hlo::Builder builder(entry);
  Frame frame;
  frame.builder = &builder;
  add_parameters(main, frame);
  finish(block(main.regions[0].blocks[0], frame));
  add_aliases(main);
  module_->remove_dead_computations();
  result_.module = std::move(module_);
  return std::move(result_);
}

// tf.aliasing_output = 0: a donated argument, whose memory the output may reuse.
void StablehloImporter::add_aliases(const MlirOp& main) {
  const MlirAttr* notes = main.attr("arg_attrs");
  if (notes == nullptr) return;
  const std::vector<Shape>& outputs = module_->entry()->root()->shape().elements();
  std::unordered_set<int64_t> taken;
  for (const Instr* parameter : module_->entry()->parameters()) {
    const auto at = static_cast<size_t>(parameter_numbers_.at(parameter));
    if (at >= notes->elements.size()) continue;
    const MlirAttr* output = notes->elements[at].field("tf.aliasing_output");
    if (output == nullptr || !output->is(MlirAttr::Kind::integer) || output->integer < 0 ||
        output->integer >= static_cast<int64_t>(outputs.size()) ||
        !outputs[static_cast<size_t>(output->integer)].compatible(parameter->shape()) ||
        parameter->shape().is_tuple() || !taken.insert(output->integer).second)
      continue;
    hlo::Alias& alias = module_->input_output_alias.emplace_back();
    alias.output_index = {output->integer};
    alias.parameter = parameter->parameter_number();
  }
}

// The root: the results, followed by two values per assertion.
void StablehloImporter::finish(Instrs results) {
  for (const Instr* result : results)
    for_each_leaf(result->shape(), "", [&](const std::string&, const Shape&) {
      result_.output_names.push_back(fmt::format("out{}", result_.output_names.size()));
    });
  for (auto& [assertion, pair] : asserted_) {
    for (Instr* value : {pair.first, pair.second}) {
      (value == pair.first ? assertion.got : assertion.want) = result_.output_names.size();
      result_.output_names.push_back(fmt::format("check{}.{}", result_.assertions.size(),
                                                 value == pair.first ? "got" : "want"));
      results.push_back(value);
      if (pair.first == pair.second) {
        assertion.want = assertion.got;
        break;
      }
    }
    result_.assertions.push_back(assertion);
  }
  hlo::Builder builder(module_->entry());
  module_->entry()->set_root(builder.tuple(results));
}

Instrs StablehloImporter::block(const MlirBlock& block, Frame& frame) {
  if (++depth_ > kDeepest) fail("functions and regions are nested deeper than {}", kDeepest);
  Instrs results;
  for (size_t i = 0; i < block.ops.size(); ++i) {
    const MlirOp& op = block.ops[i];
    if (is_terminator(op)) {
      if (i + 1 != block.ops.size()) fail("{}: operations behind {}", place_of(op), op.name);
      for (const MlirValue operand : op.operands) results.push_back(value(operand, frame));
    } else {
      operation(op, frame);
    }
  }
  --depth_;
  return results;
}

Instr* StablehloImporter::value(MlirValue value, const Frame& frame) const {
  const auto found = frame.values.find(value);
  if (found == frame.values.end()) fail("a value of another function or region is used");
  return found->second;
}

namespace {
// A Failure whose message already has a position.
struct PlacedFailure : Failure {};
}  // namespace

void StablehloImporter::operation(const MlirOp& op, Frame& frame) {
  if (++translated_ > options_.max_nodes)
    fail("more than {} operations, inlined functions included", options_.max_nodes);
  try {
    translate(op, frame);
  } catch (const PlacedFailure&) {
    throw;
  } catch (const Failure& failure) {
    if (op.line == 0 && op.column == 0) throw;
    PlacedFailure placed;
    placed.error = failure.error;
    placed.error.message = fmt::format("{}: {}: {}", place_of(op), op.name, failure.error.message);
    throw placed;
  }
}

std::string StablehloImporter::location_of(const MlirOp& op) const {
  if (!op.location.starts_with('#')) return op.location;
  const auto found = locations_.find(op.location);
  return found == locations_.end() ? std::string() : std::string(found->second);
}

void StablehloImporter::translate(const MlirOp& op, Frame& frame) {
  const ShloEntry* entry = find_shlo(op.name);
  if (entry == nullptr) fail_as(ErrorKind::unsupported, "this operation is not supported");
  ShloOp context(this, op, &frame);
  if (context.count() < entry->least || context.count() > entry->most)
    fail("{} operands, wanted {}", context.count(),
         entry->least == entry->most ? fmt::format("{}", entry->least)
                                     : fmt::format("at least {}", entry->least));
  const hlo::Computation& computation = *frame.builder->computation();
  const std::string location = location_of(op);
  const size_t before = location.empty() ? 0 : computation.instrs().size();
  if (has_quantized(context)) {
    translate_quantized(context, *entry);
  } else {
    entry->handler(context);
  }
  if (!frame.builder->status()) throw Failure{frame.builder->status().error(), nullptr};
  if (context.results.size() != op.results.size())
    fail("{} results, wanted {}", op.results.size(), context.results.size());
  for (size_t i = 0; i < op.results.size(); ++i) {
    check_result(context, i);
    frame.values[op.results[i]] = context.results[i];
  }
  if (location.empty()) return;
  const hlo::NodeNames names(location);
  const std::vector<Instr*>& made = computation.instrs();
  for (size_t i = before; i < made.size(); ++i)
    if (made[i]->nodes().empty()) made[i]->add_nodes(names);
}

// Checks a result against its declared type, as far as that is known.
void StablehloImporter::check_result(const ShloOp& op, size_t i) const {
  const MlirType& type = type_of(op.op.results[i]);
  const Shape& shape = op.results[i]->shape();
  bool fits = true;
  if (type.is_tensor()) {
    fits = shape.is_array() && shape.type() == type.element &&
           shape.rank() == static_cast<int64_t>(type.dims.size());
    for (size_t d = 0; fits && d < type.dims.size(); ++d)
      fits = type.dims[d] == MlirType::kDynamic || type.dims[d] == shape.dims()[d].size;
  } else if (type.kind == MlirType::Kind::tuple) {
    fits = shape.is_tuple() && shape.elements().size() == type.elements.size();
  } else if (type.kind == MlirType::Kind::token) {
    fits = shape.type() == tensor::Type::token;
  }
  if (!fits)
    fail("result {} is {}, but its type is {}", i, tensor::to_string(shape, false),
         to_string(type));
}

Instrs StablehloImporter::call(std::string_view name, const Instrs& arguments, Frame& frame) {
  const MlirOp& callee = function(name);
  const MlirBlock& body = callee.regions[0].blocks[0];
  if (body.arguments.size() != arguments.size())
    fail("@{} has {} parameters; got {}", name, body.arguments.size(), arguments.size());
  Frame inner;
  inner.builder = frame.builder;
  inner.process = frame.process;
  for (size_t i = 0; i < arguments.size(); ++i) inner.values[body.arguments[i]] = arguments[i];
  return block(body, inner);
}

bool StablehloImporter::is_copied(const Instr* instr) {
  if (instr->is(Opcode::constant) || instr->is(Opcode::iota)) return true;
  return instr->is(Opcode::broadcast) && instr->operand(0)->is(Opcode::constant);
}

Instr* StablehloImporter::copy_constant(const Instr* instr, hlo::Builder& builder) {
  if (instr->is(Opcode::constant)) return builder.constant(instr->literal());
  if (instr->is(Opcode::iota))
    return builder.iota(instr->shape(), instr->attrs_as<hlo::DimensionAttrs>().dimension);
  return builder.broadcast(copy_constant(instr->operand(0), builder), instr->shape().extents(),
                           instr->dimensions());
}

std::vector<MlirValue> StablehloImporter::captures_of(const MlirRegion& region) const {
  std::unordered_set<MlirValue> defined;
  std::vector<MlirValue> used, captured;
  collect_uses(region, defined, used);
  for (const MlirValue value : used)
    if (defined.insert(value).second) captured.push_back(value);
  return captured;
}

hlo::Computation* StablehloImporter::scalar_region(const ShloOp& op, const MlirRegion& region,
                                                   const std::vector<Shape>& parameters) {
  if (region.blocks.size() != 1) fail("a region of {} blocks, wanted one", region.blocks.size());
  const MlirBlock& body = region.blocks[0];
  if (body.arguments.size() != parameters.size())
    fail("the region has {} arguments, wanted {}", body.arguments.size(), parameters.size());
  hlo::Builder builder(module_->add_computation("region"));
  Frame frame;
  frame.builder = &builder;
  for (size_t i = 0; i < parameters.size(); ++i)
    frame.values[body.arguments[i]] = builder.parameter(static_cast<int64_t>(i), parameters[i]);
  for (const MlirValue captured : captures_of(region)) {
    Instr* outer = value(captured, op.frame);
    if (is_copied(outer)) {
      frame.values[captured] = copy_constant(outer, builder);
    } else if (const auto known = op.known(outer)) {
      frame.values[captured] = builder.constant(*known);
    } else {
      fail("the region uses a value from around it that is no constant");
    }
  }
  const Instrs results = block(body, frame);
  if (results.empty()) fail("the region has no result");
  builder.computation()->set_root(results.size() == 1 ? results[0] : builder.tuple(results));
  return builder.computation();
}

hlo::Computation* StablehloImporter::tuple_region(
    const MlirBlock& block, const std::vector<Shape>& arguments, const Instrs& captured,
    const std::vector<MlirValue>& names, const Frame& around, bool pass_on, bool plain_result) {
  hlo::Builder builder(module_->add_computation("region"));
  Frame frame;
  frame.builder = &builder;
  std::vector<Shape> elements = arguments;
  for (const Instr* value : captured) elements.push_back(value->shape());
  Instr* state = builder.parameter(0, Shape::make_tuple(elements));
  int64_t next = 0;
  if (block.arguments.size() > arguments.size())
    fail("the region has {} arguments, wanted {}", block.arguments.size(), arguments.size());
  for (const MlirValue argument : block.arguments)
    frame.values[argument] = builder.get_tuple_element(state, next++);
  next = static_cast<int64_t>(arguments.size());
  Instrs passed;
  for (size_t i = 0; i < captured.size(); ++i)
    passed.push_back(builder.get_tuple_element(state, next++));
  size_t at = 0;
  for (const MlirValue name : names) {
    Instr* outer = value(name, around);
    const auto known = std::find(captured.begin(), captured.end(), outer);
    if (known != captured.end()) {
      at = static_cast<size_t>(known - captured.begin());
      frame.values[name] = passed[at];
    } else {
      frame.values[name] = copy_constant(outer, builder);
    }
  }
  Instrs results = this->block(block, frame);
  if (plain_result) {
    if (results.size() != 1) fail("the region has {} results, wanted one", results.size());
    builder.computation()->set_root(results[0]);
    return builder.computation();
  }
  if (pass_on) results.insert(results.end(), passed.begin(), passed.end());
  builder.computation()->set_root(builder.tuple(results));
  return builder.computation();
}

int64_t StablehloImporter::parameter_of(const Instr* value) const {
  std::unordered_set<const Instr*> seen;
  std::vector<const Instr*> open{value};
  int64_t best = -1;
  while (!open.empty()) {
    const Instr* instr = open.back();
    open.pop_back();
    if (!seen.insert(instr).second) continue;
    if (const auto found = parameter_numbers_.find(instr); found != parameter_numbers_.end()) {
      const bool small = instr->shape().is_array() && instr->shape().elems() <= 1 << 10;
      if (small && tensor::is_integer(instr->shape().type()) && (best < 0 || found->second < best))
        best = found->second;
    }
    for (const Instr* operand : instr->operands()) open.push_back(operand);
  }
  return best;
}

void StablehloImporter::assert_that(ShloOp& op, Assertion assertion, Instr* got, Instr* want) {
  if (op.b.computation() != module_->entry()) fail("an assertion inside a region is not supported");
  std::string name = op.op.name;
  if (name == "stablehlo.custom_call") name = op.text("call_target_name");
  assertion.name = fmt::format("{} at {}", name, place_of(op.op));
  asserted_.emplace_back(std::move(assertion), std::pair(got, want));
}

}  // namespace heddle::import
