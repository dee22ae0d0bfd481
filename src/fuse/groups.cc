#include "fuse/groups.h"

#include <algorithm>

namespace heddle::fuse {

bool is_unpack(const Instr* instr) {
  return std::any_of(instr->annotations().begin(), instr->annotations().end(),
                     [](const auto& annotation) { return annotation.first == kUnpack; });
}

bool is_duplicable(const Instr* instr) {
  if (is_unpack(instr)) return true;
  switch (instr->opcode()) {
    case Opcode::broadcast: case Opcode::iota: case Opcode::reshape: case Opcode::bitcast:
    case Opcode::slice: case Opcode::transpose: case Opcode::copy: return true;
    case Opcode::constant: return instr->shape().is_scalar();
    default: return instr->shape().is_scalar() && has_trait(instr->opcode(), hlo::elementwise);
  }
}

std::unordered_set<const Instr*> find_once(const Computation& computation) {
  std::unordered_set<const Instr*> constant, once;
  for (const Instr* instr : computation.instrs()) {
    if (instr->is(Opcode::constant)) {
      constant.insert(instr);
      continue;
    }
    if (instr->operands().empty() || !has_trait(instr->opcode(), hlo::pure) ||
        instr->shape().is_tuple())
      continue;
    if (!std::all_of(instr->operands().begin(), instr->operands().end(),
                     [&](const Instr* operand) { return constant.count(operand) > 0; }))
      continue;
    constant.insert(instr);
    bool from_scalars = std::all_of(
        instr->operands().begin(), instr->operands().end(),
        [&](const Instr* operand) { return operand->shape().is_scalar() && !once.count(operand); });
    // Views and broadcasts are index maps to whoever reads them.
    bool map_only = instr->is(Opcode::broadcast) || instr->is(Opcode::reshape) ||
                    instr->is(Opcode::bitcast) || is_unpack(instr);
    if (!from_scalars && !map_only) once.insert(instr);
  }
  return once;
}

std::unique_ptr<hlo::Module> extract(const std::vector<Instr*>& members,
                                     const std::function<bool(const Instr*)>& leaves) {
  auto module = std::make_unique<hlo::Module>("candidate");
  Computation* computation = module->add_computation("candidate");
  module->set_entry(computation);
  std::unordered_map<const Instr*, Instr*> copies;
  int64_t parameters = 0;
  auto value_of = [&](Instr* operand) {
    auto known = copies.find(operand);
    if (known != copies.end()) return known->second;
    Instr* copy = nullptr;
    if (operand->is(Opcode::constant) && operand->shape().is_scalar()) {
      copy = computation->add(Opcode::constant, operand->shape(), {}, operand->attrs());
    } else {
      copy = computation->add(Opcode::parameter, operand->shape().without_layout(), {},
                              hlo::ParameterAttrs{parameters++});
    }
    copies.emplace(operand, copy);
    return copy;
  };
  std::vector<Instr*> outputs;
  for (Instr* member : members) {
    std::vector<Instr*> operands;
    for (Instr* operand : member->operands()) operands.push_back(value_of(operand));
    std::vector<Computation*> called;
    for (const Computation* callee : member->called())
      called.push_back(module->clone_computation(*callee));
    copies[member] = computation->add(member->opcode(), member->shape().without_layout(), operands,
                                      member->attrs(), called, member->name());
    if (leaves(member)) outputs.push_back(copies[member]);
  }
  std::vector<tensor::Shape> shapes;
  for (Instr* output : outputs) shapes.push_back(output->shape());
  computation->set_root(outputs.size() == 1
                            ? outputs[0]
                            : computation->add(Opcode::tuple, tensor::Shape::make_tuple(shapes),
                                               outputs));
  return module;
}

schedule::PlacedFusion place_alone(Instr* instr, const target::Target& target) {
  std::unique_ptr<hlo::Module> alone = extract({instr}, [](const Instr*) { return true; });
  return schedule::place(*alone->entry(), target);
}

}  // namespace heddle::fuse
