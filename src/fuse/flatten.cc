#include "fuse/flatten.h"

#include <algorithm>
#include <optional>

namespace heddle::fuse {

using hlo::Instr;
using hlo::Opcode;

namespace {

bool is_scalar(const Instr* instr) {
  return instr->shape().is_array() && instr->shape().rank() == 0;
}

// The extents of all its arrays; none: they differ, or an operator asks where an element is.
std::optional<std::vector<int64_t>> common_extents(const hlo::Computation& fusion) {
  std::optional<std::vector<int64_t>> common;
  for (const Instr* instr : fusion.instrs()) {
    if (instr->is(Opcode::tuple) && instr == fusion.root()) continue;
    if (!instr->shape().is_array() || !instr->shape().is_static()) return std::nullopt;
    if (instr->is(Opcode::reduce)) {
      if (!is_scalar(instr) || instr->operands().size() != 2) return std::nullopt;
      continue;
    }
    if (is_scalar(instr)) {
      if (!hlo::has_trait(instr->opcode(), hlo::elementwise) && !instr->operands().empty())
        return std::nullopt;
      continue;
    }
    if (instr->is(Opcode::bitcast_convert)) return std::nullopt;
    const bool plain =
        instr->is(Opcode::parameter) ||
        (instr->is(Opcode::broadcast) && is_scalar(instr->operand(0))) ||
        (hlo::has_trait(instr->opcode(), hlo::elementwise) && !instr->operands().empty());
    if (!plain || (common && *common != instr->shape().extents())) return std::nullopt;
    common = instr->shape().extents();
  }
  return common;
}

}  // namespace

bool flatten(hlo::Computation* fusion) {
  const auto extents = common_extents(*fusion);
  if (!extents || extents->size() < 2) return false;
  int64_t elems = 1;
  for (int64_t extent : *extents) elems *= extent;
  for (Instr* instr : fusion->instrs()) {
    if (instr->is(Opcode::reduce)) {
      instr->mutable_attrs_as<hlo::DimensionsAttrs>().dimensions = {0};
    } else if (instr->shape().is_array() && !is_scalar(instr)) {
      instr->set_shape(tensor::Shape::array(instr->shape().type(), {elems}));
    }
  }
  Instr* root = fusion->root();
  if (!root->is(Opcode::tuple)) return true;
  std::vector<tensor::Shape> shapes;
  for (const Instr* operand : root->operands()) shapes.push_back(operand->shape());
  root->set_shape(tensor::Shape::make_tuple(shapes));
  return true;
}

}  // namespace heddle::fuse
