#include "api/small_stage.h"

#include <algorithm>

#include "hlo/module.h"

namespace heddle::api {
namespace {

using hlo::Instr;
using hlo::Mapping;
using hlo::Opcode;

// Where it stays interpreted, a run must not be felt.
constexpr int64_t kMostOperators = 24, kMostRounded = 12, kMostWork = 1 << 10;

// Elements that are looked at; more than kMostWork: it is not known how many.
int64_t work_of(const Instr& instr) {
  constexpr int64_t kUnknown = kMostWork + 1;
  if (!instr.shape().is_array()) return kUnknown;
  int64_t elems = instr.shape().elems();
  switch (instr.opcode()) {
    case Opcode::reduce:
      return instr.operand(0)->shape().elems();
    case Opcode::reduce_window:
      for (const hlo::WindowDim& dim : instr.attrs_as<hlo::WindowAttrs>().window.dims)
        elems = std::min(elems * std::min(dim.size, kUnknown), kUnknown);
      return elems;
    case Opcode::gather:
    case Opcode::dynamic_slice:
      return elems;
    default:
      break;
  }
  switch (hlo::opcode_info(instr.opcode()).mapping) {
    case Mapping::same:
    case Mapping::broadcast:
    case Mapping::permute:
    case Mapping::regroup:
    case Mapping::affine:
    case Mapping::join:
    case Mapping::generate:
      return instr.called().empty() ? elems : kUnknown;
    default:
      return kUnknown;
  }
}

// Every compiled form of it gives the same bits.
bool is_exact(const Instr& instr) {
  const auto is_rounded = [](const Instr* value) {
    return tensor::is_float(value->shape().type()) || tensor::is_complex(value->shape().type());
  };
  if (hlo::opcode_info(instr.opcode()).narrowing == hlo::Narrowing::exact) return true;
  if (instr.is(Opcode::compare)) return true;
  const auto& operands = instr.operands();
  return !is_rounded(&instr) && std::none_of(operands.begin(), operands.end(), is_rounded);
}

}  // namespace

SmallStage small_stage(const hlo::Module& module) {
  int64_t operators = 0, work = 0;
  bool exact = true;
  for (const Instr* instr : module.entry()->instrs()) {
    if (instr->is(Opcode::parameter) || instr->is(Opcode::constant) || instr->is(Opcode::tuple))
      continue;
    if (!hlo::has_trait(instr->opcode(), hlo::pure)) return SmallStage::no;
    work += work_of(*instr);
    if (++operators > kMostOperators || work > kMostWork) return SmallStage::no;
    exact = exact && is_exact(*instr);
  }
  if (exact) return SmallStage::exact;
  return operators <= kMostRounded ? SmallStage::rounded : SmallStage::no;
}

}  // namespace heddle::api
