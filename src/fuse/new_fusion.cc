#include "fuse/new_fusion.h"

#include "hlo/views.h"

namespace heddle::fuse {

using tensor::Shape;

Instr* NewFusion::parameter(Instr* value) {
  Instr*& known = values[value];
  if (known) return known;
  hlo::ParameterAttrs attrs{static_cast<int64_t>(operands.size())};
  operands.push_back(value);
  return known = computation->add(Opcode::parameter, value->shape().without_layout(), {}, attrs, {},
                                  fmt::format("p{}", attrs.number));
}

Instr* NewFusion::inside(Instr* value) {
  if (!value->is(Opcode::constant) || !value->shape().is_scalar()) return parameter(value);
  Instr*& known = values[value];
  if (!known) known = computation->add(Opcode::constant, value->shape(), {}, value->attrs());
  return known;
}

Instr* NewFusion::value_of(Instr* value, const std::function<bool(const Instr*)>& is_part) {
  if (const auto known = values.find(value); known != values.end()) return known->second;
  if (!hlo::is_view_or_element(value) || !is_part(hlo::behind_views_and_elements(value)))
    return parameter(value);
  Instr* from = value_of(value->operand(0), is_part);
  return values[value] = computation->add(value->opcode(), value->shape().without_layout(), {from},
                                          value->attrs());
}

void NewFusion::add_part(const Instr* part, const std::function<bool(const Instr*)>& is_part) {
  std::vector<Instr*> read;
  for (Instr* operand : part->operands()) read.push_back(value_of(operand, is_part));
  Instr* made = computation->add(Opcode::fusion, part->shape(), read, part->attrs(), part->called(),
                                 part->name());
  made->add_nodes(part->nodes());
  values[part] = made;
}

std::vector<Instr*> NewFusion::add_to(Computation* parent, const std::string& name) const {
  std::vector<Shape> shapes;
  for (const Instr* output : outputs) shapes.push_back(output->shape());
  const bool single = outputs.size() == 1;
  computation->set_root(
      single ? outputs[0] : computation->add(Opcode::tuple, Shape::make_tuple(shapes), outputs));
  computation->remove_dead();
  Instr* fusion = parent->add(Opcode::fusion, computation->root()->shape(), operands,
                              hlo::FusionAttrs{}, {computation}, name);
  hlo::set_join(fusion, join);
  if (single) return {fusion};
  std::vector<Instr*> elements;
  for (size_t i = 0; i < outputs.size(); ++i)
    elements.push_back(parent->add(Opcode::get_tuple_element, shapes[i], {fusion},
                                   hlo::TupleIndexAttrs{static_cast<int64_t>(i)}, {},
                                   outputs[i]->name()));
  return elements;
}

}  // namespace heddle::fuse
