#include "cost/operator_cycles.h"

#include <string>

namespace heddle::cost {

double operator_cycles(hlo::Opcode opcode, bool fast, const target::Target& target) {
  using enum hlo::Opcode;
  std::string key = "add";
  switch (opcode) {
    case exponential:
      key = "exp";
      break;
    case exponential_minus_one:
      key = "expm1";
      break;
    case logistic:
      key = "logistic";
      break;
    case tanh:
      key = "tanh";
      break;
    case erf:
      key = "erf";
      break;
    case log:
      key = "log";
      break;
    case log_plus_one:
      key = "log1p";
      break;
    case power:
      key = "pow";
      break;
    case sqrt:
      key = "sqrt";
      break;
    case rsqrt:
      key = "rsqrt";
      break;
    case cbrt:
      key = "cbrt";
      break;
    case divide:
      key = "div";
      break;
    case sine:
    case cosine:
      key = "sin";
      break;
    case tan:
    case atan2:
    case remainder:
      key = "pow";
      break;
    case multiply:
      key = "mul";
      break;
    case maximum:
    case minimum:
      key = "max";
      break;
    case hlo::Opcode::compare:
      key = "compare";
      break;
    case select:
      key = "select";
      break;
    case convert:
      key = "convert";
      break;
    case floor:
    case ceil:
    case round_nearest_even:
      key = "floor";
      break;
    default:
      break;
  }
  auto found = target.cycles.end();
  if (fast) found = target.cycles.find(key + "_fast");
  if (found == target.cycles.end()) found = target.cycles.find(key);
  return found == target.cycles.end() ? 1 : found->second;
}

}  // namespace heddle::cost
