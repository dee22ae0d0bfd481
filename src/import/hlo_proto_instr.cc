// Computations and instructions of HLO protos.
#include "import/hlo_proto_module.h"

#include "import/hlo_proto_attrs.h"
#include "import/hlo_proto_literal.h"
#include "import/hlo_proto_notes.h"

namespace heddle::import {
namespace {

using hlo::Attrs;
using hlo::Computation;
using hlo::Instr;
using hlo::Opcode;
using tensor::Literal;
using tensor::Shape;

// Limit on the memory of invented values; the same as in hlo's parser.
constexpr int64_t kMostInventedBytes = int64_t{1} << 30;

bool is_async_end(Opcode opcode) {
  return opcode == Opcode::async_update || opcode == Opcode::async_done;
}

// XLA lists a while's body first.
void order_called(Opcode opcode, std::vector<Computation*>& called) {
  if (opcode == Opcode::while_ && called.size() == 2) std::swap(called[0], called[1]);
}

}  // namespace

template <typename T>
std::vector<T*> HloModuleReader::found(const Ints& ids, const std::unordered_map<int64_t, T*>& all,
                                       const char* what) {
  std::vector<T*> out;
  for (const int64_t id : ids) {
    const auto known = all.find(id);
    if (known == all.end()) fail("{} {} does not stand before its use", what, id);
    out.push_back(known->second);
  }
  return out;
}

hlo::ConstantAttrs HloModuleReader::constant(HloReader& message, const Shape& shape) {
  hlo::ConstantAttrs attrs;
  const bool has_value =
      message.message(8, false, [&](HloReader& m) { attrs.value = read_literal(m, owner_); });
  if (!has_value) {  // as {...} in text
    attrs.elided = true;
    const int64_t bytes = shape.bytes();
    if (bytes > kMostInventedBytes - invented_bytes_)
      fail("constants without values have more than {} bytes", kMostInventedBytes);
    invented_bytes_ += bytes;
    attrs.value = value_or_throw(hlo::parse_literal("{...}", shape));
  } else if (!attrs.value.shape().compatible(shape.without_layout())) {
    fail("its value is {}, its shape {}", tensor::to_string(attrs.value.shape(), false),
         tensor::to_string(shape, false));
  }
  return attrs;
}

Attrs HloModuleReader::attributes(HloReader& message, Opcode opcode, const Shape& shape,
                                  const std::vector<Instr*>& operands) {
  if (opcode == Opcode::constant) return constant(message, shape);
  Attrs attrs = hlo::default_attrs(hlo::opcode_info(opcode).attrs_index);
  const tensor::Type type = operands.empty() ? tensor::Type::tuple : operands[0]->shape().type();
  std::visit(AttrFields<HloReader>{message, opcode, type}, attrs);
  if (auto* dims = std::get_if<hlo::DimensionsAttrs>(&attrs);
      dims && opcode == Opcode::map && dims->dimensions.empty() && !operands.empty())
    for (int64_t d = 0; d < operands[0]->shape().rank(); ++d) dims->dimensions.push_back(d);
  return attrs;
}

void HloModuleReader::notes(HloReader& message, Instr* instr) {
  TextParts facts;
  annotation_fields(message, instr->annotations(), facts);
  for (const auto& [key, value] : facts) {
    if (Status read = hlo::read_fact(key, value, &instr->facts()); !read)
      fail("{}", read.error().message);
  }
  for (auto& [key, value] : instr->annotations())
    if (key == "metadata") instr->add_nodes(hlo::take_op_name(&value));
  std::erase_if(instr->annotations(), [](const auto& item) {
    return item.first == "metadata" && (item.second.empty() || item.second == "{}");
  });
  static constexpr std::pair<int, std::string_view> kLeftOut[] = {{82, "statistics"},
                                                                  {88, "original_value"}};
  for (const auto& [field, what] : kLeftOut)
    message.message(field, false, [&](HloReader& inner) {
      if (inner.has(1) || inner.has(2)) inner.lose(what);
    });
}

void HloModuleReader::instruction(HloReader& message, Computation* computation, Scope& scope) {
  std::string text;
  message.bytes(2, text);
  const std::optional<Opcode> opcode = hlo::opcode_from_text(text);
  if (!opcode) fail("unknown opcode {}", quoted(text));
  std::optional<Shape> shape = shape_field(message, 3, nullptr);
  if (!shape) fail("it has no shape");
  Ints ids;
  message.ints(36, ids);
  std::vector<Instr*> operands = found(ids, scope.instrs, "operand");
  const hlo::OpcodeInfo& info = hlo::opcode_info(*opcode);
  const int count = static_cast<int>(operands.size());
  if (count < info.least_operands || (info.most_operands >= 0 && count > info.most_operands))
    fail("{} has {} operands", text, count);
  message.ints(38, ids);
  std::vector<Computation*> called = found(ids, computations_, "computation");
  order_called(*opcode, called);
  if (is_async_end(*opcode) && called.empty()) called = operands[0]->called();
  Attrs attrs = attributes(message, *opcode, *shape, operands);
  std::string name;
  message.bytes(1, name);
  message.ints(37, ids);
  const std::vector<Instr*> before = found(ids, scope.instrs, "control predecessor");
  Instr* instr = computation->add(*opcode, std::move(*shape), std::move(operands), std::move(attrs),
                                  std::move(called), name);
  for (Instr* each : before) computation->add_control_edge(each, instr);
  notes(message, instr);
  int64_t id = 0;
  message.integer(35, id);
  if (!scope.instrs.emplace(id, instr).second) fail("a second instruction of id {}", id);
}

void HloModuleReader::computation(HloReader& message) {
  std::string name;
  message.bytes(1, name);
  int64_t id = 0, root = 0;
  message.integer(5, id);
  message.integer(6, root);
  Computation* made = module_->add_computation(name);
  Scope& scope = scopes_[made];
  message.each(2, 0, [&](HloReader& m, size_t place) {
    try {
      instruction(m, made, scope);
    } catch (Failure& failure) {
      std::string own;
      m.bytes(1, own);
      failure.error.message = fmt::format("computation {}, instruction {} ({}): {}", quoted(name),
                                          place, quoted(own), failure.error.message);
      throw;
    }
  });
  const auto found_root = scope.instrs.find(root);
  if (found_root == scope.instrs.end())
    fail("computation {} has no instruction of id {}, its root", quoted(name), root);
  made->set_root(found_root->second);
  message.bytes(8, made->execution_thread);
  if (made->execution_thread == "main") made->execution_thread.clear();
  const std::vector<Instr*>& parameters = made->parameters();
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i]->parameter_number() != static_cast<int64_t>(i))
      fail("computation {}: parameter {} is missing or there twice", quoted(name), i);
  // Registered only after reading, so that a computation cannot call itself.
  if (!computations_.emplace(id, made).second) fail("a second computation of id {}", id);
}

// Applies the order of a schedule, which must keep operands before their users.
void HloModuleReader::schedule(HloReader& message) {
  message.each(1, 0, [&](HloReader& entry, size_t) {
    int64_t id = 0;
    entry.integer(1, id);
    Computation* computation = found<Computation>({id}, computations_, "scheduled computation")[0];
    Ints ids;
    entry.message(2, false, [&](HloReader& m) { m.ints(1, ids); });
    std::vector<Instr*> order = found(ids, scopes_[computation].instrs, "scheduled instruction");
    std::unordered_map<const Instr*, bool> seen;
    for (const Instr* instr : order) {
      bool ready = !seen[instr];
      for (const Instr* each : instr->operands()) ready = ready && seen[each];
      for (const Instr* each : instr->control_predecessors()) ready = ready && seen[each];
      if (!ready)
        fail("the schedule of {} has {} twice or before what it needs", quoted(computation->name()),
             quoted(instr->name()));
      seen[instr] = true;
    }
    if (order.size() != computation->instrs().size())
      fail("the schedule of {} has {} instructions of {}", quoted(computation->name()),
           order.size(), computation->instrs().size());
    computation->reorder(std::move(order));
  });
}

}  // namespace heddle::import
