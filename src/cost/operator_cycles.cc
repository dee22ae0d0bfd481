#include "cost/operator_cycles.h"

#include <string>

namespace heddle::cost {

namespace {

// The operator whose cycles are used for its class.
std::string_view measured_for(hlo::CostClass cost) {
  switch (cost) {
    case hlo::CostClass::divide:
      return "div";
    case hlo::CostClass::function:
      return "log";
    case hlo::CostClass::call:
      return "pow";
    default:
      return "add";
  }
}

}  // namespace

double operator_cycles(hlo::Opcode opcode, bool fast, const target::Target& target) {
  const hlo::OpcodeInfo& info = opcode_info(opcode);
  const std::string key(info.kernel_op.empty() ? info.text : info.kernel_op);
  auto found = target.cycles.end();
  if (fast) found = target.cycles.find(key + "_fast");
  if (found == target.cycles.end()) found = target.cycles.find(key);
  if (found == target.cycles.end())
    found = target.cycles.find(std::string(measured_for(info.cost)));
  return found == target.cycles.end() ? 1 : found->second;
}

}  // namespace heddle::cost
