// Products of f16 and bf16 accumulate in f32 anyway: if every element is used often, both operands
// are converted to f32 once, and the result back. The values are the same. With AVX2, f16 products
// take 1.2 to 1.5 times as long without it; predicted times do not model the cost of a conversion.
#include "fuse/groups.h"
#include "fuse/passes.h"
#include "hlo/builder.h"
#include "schedule/gemm.h"

namespace heddle::fuse {

namespace {

// With fewer uses of an element, storing it again, twice as wide, does not pay.
constexpr int64_t kLeastUses = 32;

bool is_small(const Instr* x) {
  return x->shape().type() == tensor::Type::f16 || x->shape().type() == tensor::Type::bf16;
}

// Whether it is of the GEMM family, and every element of both operands is used often.
bool is_worth_it(Instr* instr, const target::Target& target) {
  const stage::PlacedFusion placed = place_alone(instr, target);
  if (!stage::is_gemm(placed)) return false;
  const stage::GemmTile& tile = *std::get<stage::Row>(placed.schedule.nodes[0]).gemm();
  if (tile.record.word() > 1) return false;  // its instruction multiplies small floats
  const stage::GemmShape& shape = tile.shape;
  return shape.m_extent * shape.y_extent >= kLeastUses && shape.n_extent >= kLeastUses;
}

void widen(Instr* instr) {
  hlo::Builder b(instr->parent());
  std::vector<Instr*> operands;
  for (Instr* operand : instr->operands())
    operands.push_back(b.convert(operand, tensor::Type::f32));
  const tensor::Shape wide = tensor::Shape::array(tensor::Type::f32, instr->shape().extents());
  Instr* product = b.make(instr->opcode(), operands, instr->attrs(), {}, &wide);
  Instr* narrow = b.convert(product, instr->shape().type());
  b.check();
  instr->parent()->replace_all_uses(instr, narrow);
  instr->parent()->remove(instr);
}

bool widen_in(const Covered& covered, const target::Target& target) {
  if (covered.is_body) return false;  // loop-invariant operands would be converted every time
  std::vector<Instr*> found;
  for (Instr* instr : covered.computation->instrs()) {
    const bool product = is_product(instr);
    if (!product || instr->operands().size() != 2) continue;
    const bool sums_in_f32 = is_small(instr) || instr->shape().type() == tensor::Type::f32;
    if (sums_in_f32 && (is_small(instr->operand(0)) || is_small(instr->operand(1))) &&
        is_worth_it(instr, target))
      found.push_back(instr);
  }
  for (Instr* instr : found) widen(instr);
  if (!found.empty()) covered.computation->sort();
  return !found.empty();
}

}  // namespace

Result<bool> widen_products(hlo::Module& module, const Context& context) {
  bool changed = false;
  for (const Covered& covered : covered_computations(module))
    changed |= widen_in(covered, *context.target);
  return changed;
}

}  // namespace heddle::fuse
