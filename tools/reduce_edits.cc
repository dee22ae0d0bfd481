#include "reduce_edits.h"

#include <algorithm>
#include <set>

#include "hlo/builder.h"

namespace heddle::tools {
namespace {

using hlo::Computation;
using hlo::Instr;
using hlo::Module;
using hlo::Opcode;
using hlo::Shape;
using tensor::Literal;
using tensor::Type;

bool is_structure(const Instr& instr) {
  switch (instr.opcode()) {
    case Opcode::parameter:
    case Opcode::constant:
    case Opcode::tuple:
    case Opcode::get_tuple_element:
      return true;
    default:
      return false;
  }
}

int64_t elems_of(const Shape& shape) {
  if (shape.is_array()) return shape.elems();
  int64_t total = 0;
  for (const Shape& element : shape.elements()) total += elems_of(element);
  return total;
}

bool is_plain_data(const Shape& shape) {
  if (shape.is_array()) return shape.is_static();
  return shape.is_tuple() &&
         std::all_of(shape.elements().begin(), shape.elements().end(), is_plain_data);
}

Computation* computation_of(Module& module, int64_t id) {
  for (const auto& computation : module.computations())
    if (computation->id() == id) return computation.get();
  return nullptr;
}

Instr* instr_of(const Computation& computation, int64_t id) {
  for (Instr* instr : computation.instrs())
    if (instr->id() == id) return instr;
  return nullptr;
}

bool is_plainest(const Instr& instr) {
  if (!hlo::has_trait(instr.opcode(), hlo::elementwise)) return true;
  return instr.is(Opcode::negate) || instr.is(Opcode::add) || is_structure(instr);
}

// A value that comes from nowhere: a parameter of the entry, ones elsewhere. A truth is false: as
// the condition of a loop it ends it.
Instr* free_value(Computation* computation, const Shape& shape) {
  if (shape.is_tuple()) {
    std::vector<Instr*> elements;
    for (const Shape& element : shape.elements())
      elements.push_back(free_value(computation, element));
    return computation->add(Opcode::tuple, shape, std::move(elements));
  }
  if (computation == computation->module()->entry())
    return computation->add(
        Opcode::parameter, shape.without_layout(), {},
        hlo::ParameterAttrs{static_cast<int64_t>(computation->parameters().size())});
  Literal one(Shape::scalar(shape.type()));
  if (tensor::is_complex(shape.type()))
    one.set_complex(0, 1);
  else
    one.set_f64(0, shape.type() == Type::pred ? 0 : 1);
  Instr* scalar = computation->add(Opcode::constant, one.shape(), {}, hlo::ConstantAttrs{one});
  if (shape.rank() == 0) return scalar;
  return computation->add(Opcode::broadcast, shape, {scalar}, hlo::DimensionsAttrs{});
}

std::vector<Instr*> outputs_of(const Computation& entry) {
  if (entry.root()->is(Opcode::tuple)) return entry.root()->operands();
  return {entry.root()};
}

void set_outputs(Computation* entry, const std::vector<Instr*>& outputs) {
  if (outputs.size() == 1) return entry->set_root(outputs[0]);
  std::vector<Shape> shapes;
  for (const Instr* output : outputs) shapes.push_back(output->shape());
  entry->set_root(entry->add(Opcode::tuple, Shape::make_tuple(shapes), outputs));
}

// The outputs without `dropped`; in their place, or with `cut`, what those read.
std::vector<Instr*> outputs_without(const Computation& entry, const std::set<int64_t>& dropped,
                                    bool cut) {
  const auto is_dropped = [&](const Instr* instr) { return dropped.contains(instr->id()); };
  std::vector<Instr*> kept;
  for (Instr* output : outputs_of(entry))
    if (!is_dropped(output)) kept.push_back(output);
  if (!kept.empty() && !cut) return kept;
  for (Instr* instr : entry.instrs()) {
    if (is_dropped(instr) || is_structure(*instr) || instr->users().empty()) continue;
    if (!is_plain_data(instr->shape())) continue;
    const bool ends_here =
        std::all_of(instr->users().begin(), instr->users().end(),
                    [&](const Instr* user) { return is_dropped(user) || user == entry.root(); });
    if (ends_here && std::find(kept.begin(), kept.end(), instr) == kept.end())
      kept.push_back(instr);
  }
  return kept;
}

}  // namespace

ModuleSize size_of(const Module& module) {
  ModuleSize size;
  for (const auto& computation : module.computations()) {
    for (const Instr* instr : computation->instrs()) {
      ++size.instructions;
      size.extras += static_cast<int64_t>(instr->annotations().size() + !instr->nodes().empty() +
                                          instr->control_predecessors().size());
      const int64_t elems = elems_of(instr->shape());
      size.elems += elems;
      size.operators += !is_structure(*instr);
      if (instr->is(Opcode::constant) && elems > 1) size.constant_elems += elems;
      size.opcodes += !is_plainest(*instr);
    }
  }
  size.extras += static_cast<int64_t>(module.header.size() + module.input_output_alias.size());
  size.outputs = static_cast<int64_t>(outputs_of(*module.entry()).size());
  return size;
}

std::vector<int64_t> droppable(const Computation& computation) {
  std::vector<int64_t> ids;
  for (const Instr* instr : computation.instrs())
    if (!instr->is(Opcode::parameter) && !instr->is(Opcode::constant) &&
        !(instr == computation.root() && instr->is(Opcode::tuple)))
      ids.push_back(instr->id());
  return ids;
}

std::vector<int64_t> large_constants(const Module& module) {
  std::vector<int64_t> ids;
  for (const Instr* instr : module.entry()->instrs())
    if (instr->is(Opcode::constant) && instr->shape().is_array() && instr->shape().elems() > 1)
      ids.push_back(instr->id());
  return ids;
}

bool drop_instrs(Module& module, int64_t computation_id, const std::vector<int64_t>& ids,
                 bool cut) {
  Computation* computation = computation_of(module, computation_id);
  if (computation == nullptr) return false;
  const std::set<int64_t> dropped(ids.begin(), ids.end());
  const bool is_entry = computation == module.entry();
  if (is_entry) {
    const std::vector<Instr*> outputs = outputs_without(*computation, dropped, cut);
    if (outputs.empty()) return false;
    if (outputs != outputs_of(*computation)) set_outputs(computation, outputs);
  }
  const std::vector<Instr*> instrs = computation->instrs();
  for (Instr* instr : instrs) {
    if (!dropped.contains(instr->id())) continue;
    const bool needed = instr == computation->root() ||
                        std::any_of(instr->users().begin(), instr->users().end(),
                                    [&](const Instr* u) { return !dropped.contains(u->id()); });
    if (!needed) continue;
    if (!is_plain_data(instr->shape())) return false;
    computation->replace_all_uses(instr, free_value(computation, instr->shape()));
  }
  return true;
}

bool bypass(Module& module, int64_t computation_id, int64_t id, size_t operand) {
  Computation* computation = computation_of(module, computation_id);
  Instr* instr = computation == nullptr ? nullptr : instr_of(*computation, id);
  if (instr == nullptr || operand >= instr->operands().size()) return false;
  Instr* source = instr->operand(operand);
  if (!source->shape().compatible(instr->shape()) || is_structure(*instr)) return false;
  if (source->is(Opcode::constant) || source->is(Opcode::parameter))
    if (instr == computation->root()) return false;
  computation->replace_all_uses(instr, source);
  return true;
}

bool free_constants(Module& module, const std::vector<int64_t>& ids) {
  Computation* entry = module.entry();
  bool changed = false;
  for (int64_t id : ids) {
    Instr* constant = instr_of(*entry, id);
    if (constant == nullptr || constant == entry->root()) continue;
    entry->replace_all_uses(constant, free_value(entry, constant->shape()));
    changed = true;
  }
  return changed;
}

bool take_region(Module& module, int64_t computation_id, int64_t id, size_t number) {
  Computation* computation = computation_of(module, computation_id);
  Instr* instr = computation == nullptr ? nullptr : instr_of(*computation, id);
  if (instr == nullptr) return false;
  const bool loop = instr->is(Opcode::while_);
  if (!loop && !instr->is(Opcode::conditional)) return false;
  if (number >= (loop ? 1 : instr->called().size())) return false;
  Computation* taken = instr->called()[loop ? 1 : number];
  Instr* argument = instr->operand(loop ? 0 : number + 1);
  Instr* call =
      computation->add(Opcode::call, instr->shape(), {argument}, hlo::CallAttrs{}, {taken});
  computation->replace_all_uses(instr, call);
  return true;
}

bool plainest(Module& module, int64_t computation_id, int64_t id) {
  Computation* computation = computation_of(module, computation_id);
  Instr* instr = computation == nullptr ? nullptr : instr_of(*computation, id);
  if (instr == nullptr || is_plainest(*instr)) return false;
  const Type type = instr->shape().type();
  if (tensor::is_complex(type) || type == Type::pred) return false;
  for (const Instr* operand : instr->operands())
    if (!operand->shape().compatible(instr->shape())) return false;
  const size_t count = instr->operands().size();
  if (count == 0 || count > 2) return false;
  Instr* plain = computation->add(count == 1 ? Opcode::negate : Opcode::add, instr->shape(),
                                  instr->operands());
  computation->replace_all_uses(instr, plain);
  return true;
}

bool drop_extras(Module& module) {
  module.input_output_alias.clear();
  module.entry_layout.reset();
  module.states.clear();
  module.symbols.clear();
  module.header.clear();
  const Instr bare;
  for (const auto& computation : module.computations())
    for (Instr* instr : computation->instrs()) instr->copy_notes(bare);
  return true;
}

bool fix_input(Module& module, int64_t parameter, const Literal& value) {
  Computation* entry = module.entry();
  Instr* instr = entry->parameters().at(static_cast<size_t>(parameter));
  if (!instr->shape().is_array() || instr == entry->root()) return false;
  Instr* constant =
      entry->add(Opcode::constant, value.shape(), {}, hlo::ConstantAttrs{value}, {}, instr->name());
  entry->replace_all_uses(instr, constant);
  return true;
}

void clean(Module& module) {
  module.entry_layout.reset();  // it would have to follow every cut
  for (const auto& computation : module.computations()) computation->remove_dead();
  Computation* entry = module.entry();
  for (size_t i = entry->parameters().size(); module.input_output_alias.empty() && i-- > 0;) {
    const Instr* parameter = entry->parameters()[i];
    if (parameter->users().empty() && parameter->control_successors().empty() &&
        parameter != entry->root())
      entry->remove_parameter(static_cast<int64_t>(i));
  }
  module.remove_dead_computations();
}

}  // namespace heddle::tools
