#include "export/stablehlo.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "export/mlir_text.h"
#include "export/stablehlo_attrs.h"
#include "hlo/leaves.h"
#include "hlo/names.h"

namespace heddle::exports {
namespace {

using hlo::Computation;
using hlo::Instr;
using hlo::Opcode;
using tensor::Shape;

// Regions are written again for each use; a bound for modules that nest them.
constexpr int64_t kMostOperations = 10'000'000;
constexpr int kDeepestRegion = 100;

using Names = std::vector<std::string>;  // of the arrays of a value, with %

// Form of an instruction without attributes and regions; none: no simple form.
enum class Form {
  refused,
  stablehlo,  // the operation of the same name
  chlo,
  same_value,  // its first operand
};

Form form_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::acos:
    case Opcode::acosh:
    case Opcode::asin:
    case Opcode::asinh:
    case Opcode::atanh:
    case Opcode::cosh:
    case Opcode::erf:
    case Opcode::erfc:
    case Opcode::sinh:
    case Opcode::topk:
      return Form::chlo;
    case Opcode::copy:
    case Opcode::add_dependency:
    case Opcode::domain:
      return Form::same_value;
    case Opcode::stochastic_convert:
    case Opcode::mulhi:
    case Opcode::dynamic_reshape:
    case Opcode::scan:
    case Opcode::ragged_dot:
    case Opcode::scaled_dot:
    case Opcode::rng_get_and_update_state:
    case Opcode::copy_start:
    case Opcode::copy_done:
    case Opcode::infeed:
    case Opcode::outfeed:
    case Opcode::send:
    case Opcode::send_done:
    case Opcode::recv:
    case Opcode::recv_done:
    case Opcode::async_start:
    case Opcode::async_update:
    case Opcode::async_done:
      return Form::refused;
    default:
      break;
  }
  const bool alone = opcode == Opcode::partition_id || opcode == Opcode::replica_id;
  return hlo::has_trait(opcode, hlo::collective) && !alone ? Form::refused : Form::stablehlo;
}

// Names that are not HLO's with `_`.
std::string operation_of(Opcode opcode) {
  if (opcode == Opcode::broadcast) return "stablehlo.broadcast_in_dim";
  if (opcode == Opcode::dot) return "stablehlo.dot_general";
  if (opcode == Opcode::topk) return "chlo.top_k";
  if (opcode == Opcode::opt_barrier) return "stablehlo.optimization_barrier";
  std::string name(hlo::opcode_text(opcode));
  std::replace(name.begin(), name.end(), '-', '_');
  return (form_of(opcode) == Form::chlo ? "chlo." : "stablehlo.") + name;
}

class Refusal {
 public:
  std::string message;
};

template <typename... Args>
[[noreturn]] void refuse(const Instr& instr, fmt::format_string<Args...> format, Args&&... args) {
  throw Refusal{fmt::format("%{} ({}): {}", instr.name(), hlo::opcode_text(instr.opcode()),
                            fmt::format(format, std::forward<Args>(args)...))};
}

class Writer {
 public:
  explicit Writer(const hlo::Module& module) : module_(module) {}

  std::string write() {
    function(*module_.entry(), "main");
    // Functions called by those already written.
    for (size_t i = 0; i < called_.size(); ++i) function(*called_[i], functions_.at(called_[i]));
    return fmt::format("module @{} {{\n{}}}\n", hlo::legal_name(module_.name()), out_);
  }

 private:
  using Values = std::unordered_map<const Instr*, Names>;

  void line(int depth, std::string_view text) {
    out_.append(static_cast<size_t>(depth) * 2, ' ');
    out_ += text;
    out_ += '\n';
  }

  std::string fresh(std::string_view name) {
    std::string made = hlo::unique_name(taken_, next_suffix_, name);
    taken_.emplace(made, true);
    return "%" + made;
  }

  static std::vector<std::string> types_of(const std::vector<Shape>& shapes) {
    std::vector<std::string> types;
    for (const Shape& shape : shapes) types.push_back(value_type(shape));
    return types;
  }

  void check_shape(const Instr& instr) const {
    for (const Shape& leaf : hlo::leaves_of(instr.shape())) {
      if (!leaf.is_static()) refuse(instr, "{} is not of known size", tensor::to_string(leaf));
      if (leaf.type() == tensor::Type::opaque) refuse(instr, "an opaque value has no type");
    }
  }

  void function(const Computation& computation, const std::string& name) {
    taken_.clear();
    next_suffix_.clear();
    Values values;
    std::vector<std::string> parameters;
    size_t number = 0;
    for (const Instr* parameter : computation.parameters()) {
      check_shape(*parameter);
      for (const Shape& leaf : hlo::leaves_of(parameter->shape())) {
        values[parameter].push_back(fresh(fmt::format("arg{}", number++)));
        parameters.push_back(values[parameter].back() + ": " + value_type(leaf));
      }
    }
    check_shape(*computation.root());
    const std::vector<std::string> results = types_of(hlo::leaves_of(computation.root()->shape()));
    line(1, fmt::format("func.func {} @{}({}) -> ({}) {{", name == "main" ? "public" : "private",
                        name, fmt::join(parameters, ", "), fmt::join(results, ", ")));
    body(computation, values, 2);
    const Names& root = values.at(computation.root());
    line(2, root.empty() ? "\"func.return\"() : () -> ()"
                         : fmt::format("\"func.return\"({}) : ({}) -> ()", fmt::join(root, ", "),
                                       fmt::join(results, ", ")));
    line(1, "}");
  }

  // Writes all instructions; parameters have their names already.
  void body(const Computation& computation, Values& values, int depth) {
    if (depth > kDeepestRegion) throw Refusal{"regions nested too deeply"};
    for (const Instr* instr : computation.instrs()) {
      if (instr->is(Opcode::parameter)) continue;
      if (++operations_ > kMostOperations) throw Refusal{"more than 10 million operations"};
      check_shape(*instr);
      values[instr] = instruction(*instr, values, depth);
    }
  }

  static Names joined(const Instr& instr, const Values& values) {
    Names names;
    for (const Instr* operand : instr.operands())
      for (const std::string& name : values.at(operand)) names.push_back(name);
    return names;
  }
  static std::vector<Shape> operand_leaves(const Instr& instr) {
    std::vector<Shape> leaves;
    for (const Instr* operand : instr.operands())
      for (Shape& leaf : hlo::leaves_of(operand->shape())) leaves.push_back(std::move(leaf));
    return leaves;
  }

  Names instruction(const Instr& instr, const Values& values, int depth) {
    switch (instr.opcode()) {
      case Opcode::tuple:
        return joined(instr, values);
      case Opcode::get_tuple_element: {
        const Shape& from = instr.operand(0)->shape();
        size_t begin = 0;
        for (int64_t i = 0; i < instr.tuple_index(); ++i)
          begin += hlo::leaf_count(from.elements()[static_cast<size_t>(i)]);
        const Names& all = values.at(instr.operand(0));
        const auto first = all.begin() + static_cast<int64_t>(begin);
        return {first, first + static_cast<int64_t>(hlo::leaf_count(instr.shape()))};
      }
      case Opcode::constant:
        return constant(instr, instr.literal(), depth);
      case Opcode::bitcast:
        return bitcast(instr, values, depth);
      case Opcode::rng:
        return rng(instr, values, depth);
      case Opcode::topk:
        if (!instr.attrs_as<hlo::TopKAttrs>().largest) refuse(instr, "of the smallest elements");
        break;
      case Opcode::custom_call:
        if (!instr.called().empty()) return call(instr, values, depth);
        break;
      case Opcode::call:
      case Opcode::fusion:
        return call(instr, values, depth);
      case Opcode::dot:
      case Opcode::convolution:
        if (instr.operand(0)->shape().type() != instr.operand(1)->shape().type())
          return of_one_type(instr, values, depth);
        break;
      case Opcode::while_:
      case Opcode::conditional:
        return control(instr, values, depth);
      default:
        break;
    }
    const Form form = form_of(instr.opcode());
    if (form == Form::refused) refuse(instr, "StableHLO has no such operation");
    if (form == Form::same_value) return values.at(instr.operand(0));
    std::vector<Region> regions;
    for (const Computation* called : instr.called()) regions.push_back({called, {}});
    return operation(instr, operation_of(instr.opcode()), joined(instr, values), regions,
                     stablehlo_attrs(instr), depth);
  }

  // A computation written inline: its parameters are block arguments, or values from outside.
  struct Region {
    const Computation* computation;
    std::vector<Names> outside;  // by parameter; none: arguments
  };

  void region(const Region& region, int depth) {
    const Computation& computation = *region.computation;
    Values values;
    std::vector<std::string> arguments;
    for (const Instr* parameter : computation.parameters()) {
      const auto number = static_cast<size_t>(parameter->parameter_number());
      if (!region.outside.empty()) {
        values[parameter] = region.outside.at(number);
        continue;
      }
      for (const Shape& leaf : hlo::leaves_of(parameter->shape())) {
        values[parameter].push_back(fresh(parameter->name()));
        arguments.push_back(values[parameter].back() + ": " + value_type(leaf));
      }
    }
    if (!arguments.empty()) line(depth, fmt::format("^bb0({}):", fmt::join(arguments, ", ")));
    body(computation, values, depth + 1);
    const Instr* root = computation.root();
    line(depth + 1,
         fmt::format("\"stablehlo.return\"({}) : ({}) -> ()", fmt::join(values.at(root), ", "),
                     fmt::join(types_of(hlo::leaves_of(root->shape())), ", ")));
  }

  // %x:2 = "name"(…) ({ … }) {…} : (…) -> (…)
  Names operation(const Instr& instr, const std::string& name, const Names& operands,
                  const std::vector<Region>& regions, const std::string& attrs, int depth,
                  bool takes_operands = true) {
    const std::vector<Shape> leaves = hlo::leaves_of(instr.shape());
    const std::string made = fresh(instr.name());
    Names results;
    for (size_t i = 0; i < leaves.size(); ++i)
      results.push_back(leaves.size() == 1 ? made : fmt::format("{}#{}", made, i));
    std::string head = leaves.empty() ? "" : made;
    if (leaves.size() > 1) head += fmt::format(":{}", leaves.size());
    if (!head.empty()) head += " = ";
    head += fmt::format("\"{}\"({})", name, fmt::join(operands, ", "));
    if (!regions.empty()) {
      line(depth, head + " ({");
      for (size_t i = 0; i < regions.size(); ++i) {
        if (i > 0) line(depth, "}, {");
        region(regions[i], depth);
      }
      head = "})";
    }
    if (!attrs.empty()) head += " {" + attrs + "}";
    const std::vector<std::string> from =
        takes_operands ? types_of(operand_leaves(instr))
                       : std::vector<std::string>{value_type(instr.operand(0)->shape())};
    const std::vector<std::string> to = types_of(leaves);
    line(depth, fmt::format("{} : ({}) -> {}", head, fmt::join(from, ", "),
                            to.size() == 1 ? to[0] : fmt::format("({})", fmt::join(to, ", "))));
    return results;
  }

  Names constant(const Instr& instr, const tensor::Literal& value, int depth) {
    if (instr.attrs_as<hlo::ConstantAttrs>().elided) refuse(instr, "its values were left out");
    if (value.shape().is_tuple()) {
      Names names;
      for (const tensor::Literal& element : value.elements())
        for (std::string& name : constant(instr, element, depth)) names.push_back(std::move(name));
      return names;
    }
    const std::string made = fresh(instr.name()), type = value_type(value.shape());
    line(depth, fmt::format("{} = \"stablehlo.constant\"() {{value = {} : {}}} : () -> {}", made,
                            dense(value), type, type));
    return {made};
  }

  // StableHLO has no product of different types: converts both operands to the result's type.
  Names of_one_type(const Instr& instr, const Values& values, int depth) {
    Names operands;
    std::vector<std::string> types;
    for (const Instr* operand : instr.operands()) {
      Shape wide = operand->shape();
      wide.set_type(instr.shape().type());
      types.push_back(value_type(wide));
      operands.push_back(fresh(operand->name()));
      line(depth, fmt::format("{} = \"stablehlo.convert\"({}) : ({}) -> {}", operands.back(),
                              values.at(operand)[0], value_type(operand->shape()), types.back()));
    }
    const std::string made = fresh(instr.name());
    line(depth,
         fmt::format("{} = \"{}\"({}) {{{}}} : ({}) -> {}", made, operation_of(instr.opcode()),
                     fmt::join(operands, ", "), stablehlo_attrs(instr), fmt::join(types, ", "),
                     value_type(instr.shape())));
    return {made};
  }

  // Reinterprets the bytes as another array; with default layouts that is a reshape.
  Names bitcast(const Instr& instr, const Values& values, int depth) {
    const Shape &from = instr.operand(0)->shape(), &to = instr.shape();
    if (!from.layout_or_default().is_row_major() || !to.layout_or_default().is_row_major())
      refuse(instr, "between layouts");
    Names value = joined(instr, values);
    Shape seen = from;
    if (from.type() != to.type()) {
      // For wider or narrower elements a dimension is removed or added; else the shape stays.
      const int from_bits = tensor::type_bits(from.type()), to_bits = tensor::type_bits(to.type());
      std::vector<int64_t> extents = from.extents();
      if (from_bits > to_bits) extents.push_back(from_bits / to_bits);
      if (from_bits < to_bits && !extents.empty()) extents.pop_back();
      seen = Shape::array(to.type(), extents);
      if (seen.bytes() != from.bytes()) refuse(instr, "of parts of elements");
      const std::string made = fresh(instr.name());
      line(depth, fmt::format("{} = \"stablehlo.bitcast_convert\"({}) : ({}) -> {}", made, value[0],
                              value_type(from), value_type(seen)));
      value = {made};
    }
    if (seen.extents() == to.extents()) return value;
    const std::string made = fresh(instr.name());
    line(depth, fmt::format("{} = \"stablehlo.reshape\"({}) : ({}) -> {}", made, value[0],
                            value_type(seen), value_type(to)));
    return {made};
  }

  // StableHLO takes the shape as a third operand.
  Names rng(const Instr& instr, const Values& values, int depth) {
    Names operands = joined(instr, values);
    const std::vector<int64_t> extents = instr.shape().extents();
    const auto shape = tensor::Literal::from<int64_t>(
        Shape::array(tensor::Type::s64, {instr.shape().rank()}), extents);
    const std::string name = fresh("shape"), type = value_type(shape.shape());
    line(depth, fmt::format("{} = \"stablehlo.constant\"() {{value = {} : {}}} : () -> {}", name,
                            dense(shape), type, type));
    const std::string made = fresh(instr.name()), scalar = value_type(instr.operand(0)->shape());
    line(depth, fmt::format("{} = \"stablehlo.rng\"({}, {}, {}) {{{}}} : ({}, {}, {}) -> {}", made,
                            operands[0], operands[1], name, stablehlo_attrs(instr), scalar, scalar,
                            type, value_type(instr.shape())));
    return {made};
  }

  Names call(const Instr& instr, const Values& values, int depth) {
    const Computation* called = instr.called()[0];
    auto [found, is_new] = functions_.try_emplace(called);
    if (is_new) {
      found->second = hlo::unique_name(function_names_, function_suffix_, called->name());
      function_names_.emplace(found->second, true);
      called_.push_back(called);
    }
    return operation(instr, "func.call", joined(instr, values), {},
                     fmt::format("callee = @{}", found->second), depth);
  }

  Names control(const Instr& instr, const Values& values, int depth) {
    std::vector<Region> regions;
    for (const Computation* called : instr.called()) regions.push_back({called, {}});
    if (instr.is(Opcode::while_))
      return operation(instr, "stablehlo.while", joined(instr, values), regions, "", depth);
    // Branches read their operands from outside.
    for (size_t i = 0; i < regions.size(); ++i)
      regions[i].outside = {values.at(instr.operand(i + 1))};
    const bool is_if = instr.operand(0)->shape().type() == tensor::Type::pred;
    return operation(instr, is_if ? "stablehlo.if" : "stablehlo.case", values.at(instr.operand(0)),
                     regions, "", depth, false);
  }

  const hlo::Module& module_;
  std::string out_;
  int64_t operations_ = 0;
  std::unordered_map<std::string, bool> taken_, function_names_ = {{"main", true}};
  std::unordered_map<std::string, int64_t> next_suffix_, function_suffix_;
  std::unordered_map<const Computation*, std::string> functions_;
  std::vector<const Computation*> called_;
};

}  // namespace

Result<std::string> to_stablehlo(const hlo::Module& module) {
  try {
    return Writer(module).write();
  } catch (const Refusal& refusal) {
    return user_error("{}", refusal.message);
  }
}

}  // namespace heddle::exports
