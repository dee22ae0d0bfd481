// Left operands whose rows are contracted (gradients of weights) are transposed first if every
// element is used often. The values are the same. With AVX2 such products take 1.1 to 3 times as
// long without it; predicted times do not model the cache lines that a tile loses.
#include "fuse/groups.h"
#include "fuse/passes.h"
#include "hlo/builder.h"

namespace heddle::fuse {

namespace {

// Elements used less often do not pay for a copy; shorter rows are close enough together.
constexpr int64_t kLeastUses = 256, kLeastRowBytes = 2048, kLeastSum = 32;

// Whether it contracts the rows of its left operand: a tile reads a few elements of every row, each
// from a different cache line, which leaves the first cache before the next tile needs the rest of
// it.
bool is_worth_it(const Instr* instr) {
  if (!instr->is(Opcode::dot) || !instr->shape().is_array() || !instr->shape().is_static())
    return false;
  const auto& attrs = instr->attrs_as<hlo::DotAttrs>();
  const tensor::Shape& left = instr->operand(0)->shape();
  if (!attrs.lhs_batch_dims.empty() || attrs.lhs_contracting_dims != hlo::Ints{0} ||
      left.rank() != 2 || left.elems() == 0)
    return false;
  return left.dim(0) >= kLeastSum && left.bytes() / left.dim(0) >= kLeastRowBytes &&
         instr->shape().elems() / left.dim(1) >= kLeastUses;
}

void turn(Instr* instr) {
  hlo::Builder b(instr->parent());
  hlo::DotAttrs attrs = instr->attrs_as<hlo::DotAttrs>();
  attrs.lhs_contracting_dims = {1};
  Instr* product = b.make(Opcode::dot, {b.transpose(instr->operand(0), {1, 0}), instr->operand(1)},
                          attrs, {}, &instr->shape());
  b.check();
  instr->parent()->replace_all_uses(instr, product);
  instr->parent()->remove(instr);
}

bool turn_in(Computation* computation) {
  std::vector<Instr*> found;
  for (Instr* instr : computation->instrs())
    if (is_worth_it(instr)) found.push_back(instr);
  for (Instr* instr : found) turn(instr);
  if (!found.empty()) computation->sort();
  return !found.empty();
}

}  // namespace

Result<bool> turn_products(hlo::Module& module, const Context&) {
  bool changed = false;
  for (const Covered& covered : covered_computations(module))
    changed |= turn_in(covered.computation);
  return changed;
}

}  // namespace heddle::fuse
