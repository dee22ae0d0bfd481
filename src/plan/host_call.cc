#include "plan/host_call.h"

#include <map>
#include <memory>
#include <unordered_map>

#include "hlo/configuration.h"
#include "hlo/text.h"

namespace heddle::plan {
namespace {

using hlo::Instr;
using hlo::Opcode;
using tensor::Shape;

// A value of `shape`, built from one parameter per leaf.
Instr* add_operand(hlo::Computation& entry, const Shape& shape, int64_t& next_parameter) {
  if (!shape.is_tuple()) {
    hlo::ParameterAttrs attrs;
    attrs.number = next_parameter++;
    return entry.add(Opcode::parameter, shape, {}, attrs, {}, "arg" + std::to_string(attrs.number));
  }
  std::vector<Instr*> elements;
  for (const Shape& element : shape.elements())
    elements.push_back(add_operand(entry, element, next_parameter));
  return entry.add(Opcode::tuple, shape, std::move(elements));
}

}  // namespace

std::string host_module_text(const Instr& instr) {
  hlo::Module module(instr.name());
  // Callees come first in the text; each is copied once, however often it is called.
  std::unordered_map<const hlo::Computation*, hlo::Computation*> copies;
  std::vector<hlo::Computation*> called;
  for (const hlo::Computation* computation : instr.called()) {
    auto [copy, added] = copies.try_emplace(computation, nullptr);
    if (added) copy->second = module.clone_computation(*computation);
    called.push_back(copy->second);
  }
  hlo::Computation* entry = module.add_computation("main");
  module.set_entry(entry);
  std::vector<Instr*> operands;
  int64_t next_parameter = 0;
  for (const Instr* operand : instr.operands())
    operands.push_back(add_operand(*entry, operand->shape().without_layout(), next_parameter));
  Instr* root = entry->add(instr.opcode(), instr.shape().without_layout(), std::move(operands),
                           instr.attrs(), std::move(called), instr.name());
  entry->set_root(root);
  hlo::PrintOptions options;
  options.max_nodes = 0;
  options.annotations = instr.is(hlo::Opcode::custom_call);  // its function may read them
  hlo::copy_configuration(instr, *root);
  return hlo::to_string(module, options);
}

std::string packed_module_text(const Node& node) {
  hlo::Module module(node.instr->name());
  std::vector<std::vector<hlo::Computation*>> called;
  for (const Node& member : node.packed) {
    called.emplace_back();
    for (const hlo::Computation* computation : member.instr->called())
      called.back().push_back(module.clone_computation(*computation));
  }
  hlo::Computation* entry = module.add_computation("main");
  module.set_entry(entry);
  std::map<StorageId, Instr*> values;
  for (const Leaf& leaf : node.operands) {
    hlo::ParameterAttrs attrs;
    attrs.number = std::ssize(values);
    values[leaf.storage] = entry->add(Opcode::parameter, leaf.shape.without_layout(), {}, attrs, {},
                                      "arg" + std::to_string(attrs.number));
  }
  // The value of a leaf, reshaped to the leaf's shape.
  auto value_of = [&](const Leaf& leaf) {
    const Shape shape = leaf.shape.without_layout();
    Instr* value = values.at(leaf.storage);
    return value->shape() == shape ? value : entry->add(Opcode::reshape, shape, {value});
  };
  bool is_configured = false;
  for (size_t m = 0; m < node.packed.size(); ++m) {
    const Node& member = node.packed[m];
    const Instr& instr = *member.instr;
    size_t next = 0;
    auto operand = [&](auto& self, const Shape& shape) -> Instr* {
      if (!shape.is_tuple()) return value_of(member.operands[next++]);
      std::vector<Instr*> elements;
      for (const Shape& element : shape.elements()) elements.push_back(self(self, element));
      return entry->add(Opcode::tuple, shape.without_layout(), std::move(elements));
    };
    std::vector<Instr*> operands;
    for (const Instr* one : instr.operands()) operands.push_back(operand(operand, one->shape()));
    Instr* made = entry->add(instr.opcode(), instr.shape().without_layout(), std::move(operands),
                             instr.attrs(), std::move(called[m]), instr.name());
    hlo::copy_configuration(instr, *made);
    is_configured |= !hlo::configuration(instr).empty();
    for (size_t r = 0; r < member.results.size(); ++r)
      values[member.results[r].storage] =
          instr.shape().is_tuple()
              ? entry->add(Opcode::get_tuple_element, member.results[r].shape.without_layout(),
                           {made}, hlo::TupleIndexAttrs{static_cast<int64_t>(r)})
              : made;
  }
  std::vector<Instr*> results;
  std::vector<Shape> shapes;
  for (const Leaf& leaf : node.results) {
    results.push_back(value_of(leaf));
    shapes.push_back(results.back()->shape());
  }
  entry->set_root(entry->add(Opcode::tuple, Shape::make_tuple(std::move(shapes)), results));
  hlo::PrintOptions options;
  options.annotations = is_configured;
  return hlo::to_string(module, options);
}

}  // namespace heddle::plan
