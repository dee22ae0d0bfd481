#include "plan/host_call.h"

#include <memory>
#include <unordered_map>

#include "hlo/text.h"

namespace heddle::plan {
namespace {

using hlo::Instr;
using hlo::Opcode;
using tensor::Shape;

// A value of `shape`: parameters at its leaves, tuples above.
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
  // Callees first, as a text reads best; one copy each, however often it is called.
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
  options.annotations = instr.is(hlo::Opcode::custom_call);  // whose function is told of its own
  for (const auto& [key, value] : instr.annotations())
    if (options.annotations && key == "backend_config")
      root->annotations().emplace_back(key, value);
  return hlo::to_string(module, options);
}

}  // namespace heddle::plan
