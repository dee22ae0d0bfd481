// requantize: a value that is divided by a constant scale and rounded is scaled once, at its first
// factor, instead of twice:
//
//   round(max(x * a + b, 0) / s)   =>   round(max(x * (a / s) + b / s, 0))
//
// The result may round to the next integer if it was within a few ulp of the middle between two.
#include "opt/match.h"
#include "opt/rewriter.h"
#include "precision/passes.h"
#include "precision/quantized_value.h"

namespace heddle::precision {
namespace {

using hlo::Builder;
using hlo::Opcode;
using hlo::Shape;
using tensor::Literal;
using tensor::Type;

// A constant number for all elements, or constant slices.
std::optional<PerSlice> constant_slices(Instr* x) {
  std::optional<PerSlice> slices = per_slice(x);
  if (!slices || !opt::is_constant_expression(slices->value)) return std::nullopt;
  return slices;
}

bool is_positive(const PerSlice& slices) {
  const Literal* values = opt::constant_of(slices.value);
  if (!values) return false;
  for (int64_t i = 0; i < values->elems(); ++i)
    if (!(values->get_f64(i) > 0)) return false;
  return true;
}

class Scaling {
 public:
  Scaling(PerSlice factor, Builder& b) : factor_(factor), b_(b) {}

  // Whether `x` can absorb the factor without an additional multiplication.
  bool takes(Instr* x, int depth = 0) const {
    constexpr int kDeep = 32;
    if (depth++ > kDeep) return false;
    if (const std::optional<PerSlice> slices = constant_slices(x)) return fits(*slices);
    if (x->users().size() != 1) return false;
    switch (x->opcode()) {
      case Opcode::multiply:
      case Opcode::divide: {
        const std::optional<PerSlice> scale = constant_slices(x->operand(1));
        return (scale && fits(*scale)) || takes(x->operand(0), depth);
      }
      case Opcode::add:
      case Opcode::subtract:
      case Opcode::maximum:
      case Opcode::minimum:
        return takes(x->operand(0), depth) && takes(x->operand(1), depth);
      default:
        return false;
    }
  }

  Instr* build(Instr* x) {
    const Ints extents = x->shape().extents();
    if (const std::optional<PerSlice> slices = constant_slices(x))
      return spread(*combined(Opcode::multiply, *slices, factor_, b_), extents, b_);
    if (!x->is(Opcode::multiply) && !x->is(Opcode::divide))
      return b_.binary(x->opcode(), build(x->operand(0)), build(x->operand(1)));
    const std::optional<PerSlice> scale = constant_slices(x->operand(1));
    if (!scale || !fits(*scale)) return b_.binary(x->opcode(), build(x->operand(0)), x->operand(1));
    const PerSlice both =
        *combined(x->is(Opcode::divide) ? Opcode::divide : Opcode::multiply, factor_, *scale, b_);
    return b_.binary(Opcode::multiply, x->operand(0), spread(both, extents, b_));
  }

 private:
  bool fits(const PerSlice& slices) const {
    return slices.dim < 0 || factor_.dim < 0 || slices.dim == factor_.dim;
  }

  PerSlice factor_;
  Builder& b_;
};

opt::Rewriter::Proposal visit(Instr* x, Builder& b) {
  Instr* quotient = x->operand(0);
  if (!quotient->is(Opcode::divide) || !opt::are_static_arrays(quotient) ||
      quotient->shape().type() != Type::f32 || quotient->users().size() != 1)
    return {};
  const std::optional<PerSlice> scale = constant_slices(quotient->operand(1));
  if (!scale || !is_positive(*scale)) return {};
  Instr* value = quotient->operand(0);
  Instr* one = b.full(scale->value->shape(), 1);
  const PerSlice factor{b.binary(Opcode::divide, one, scale->value), scale->dim};
  Scaling scaling(factor, b);
  if (scaling.takes(value)) return {b.unary(x->opcode(), scaling.build(value)), "into_sums"};
  Instr* scaled = b.binary(Opcode::multiply, value, spread(factor, value->shape().extents(), b));
  return {b.unary(x->opcode(), scaled), "by_product"};
}

}  // namespace

Result<bool> requantize(hlo::Module& module, const PassContext& context) {
  return opt::rewrite_module(module, context, "requantize", visit, [](const Instr* instr) {
    return instr->is(Opcode::round_nearest_even);
  });
}

}  // namespace heddle::precision
