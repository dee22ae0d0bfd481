#include "fuse/loop_fusion.h"

namespace heddle::fuse {

using tensor::Shape;

Instr* LoopFusion::parameter(Instr* value) {
  Instr*& known = parameters[value];
  if (known) return known;
  hlo::ParameterAttrs attrs{static_cast<int64_t>(operands.size())};
  operands.push_back(value);
  return known = computation->add(Opcode::parameter, value->shape().without_layout(), {}, attrs, {},
                                  fmt::format("p{}", attrs.number));
}

std::vector<Instr*> LoopFusion::add_to(Computation* parent, const std::string& name) const {
  std::vector<Shape> shapes;
  for (const Instr* output : outputs) shapes.push_back(output->shape());
  const bool single = outputs.size() == 1;
  computation->set_root(
      single ? outputs[0] : computation->add(Opcode::tuple, Shape::make_tuple(shapes), outputs));
  computation->remove_dead();
  Instr* fusion = parent->add(Opcode::fusion, computation->root()->shape(), operands,
                              hlo::FusionAttrs{}, {computation}, name);
  if (single) return {fusion};
  std::vector<Instr*> values;
  for (size_t i = 0; i < outputs.size(); ++i)
    values.push_back(parent->add(Opcode::get_tuple_element, shapes[i], {fusion},
                                 hlo::TupleIndexAttrs{static_cast<int64_t>(i)}));
  return values;
}

}  // namespace heddle::fuse
