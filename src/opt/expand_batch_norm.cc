// expand_batch_norm: batch normalisation as reductions and elementwise operators. Narrow floats are
// computed in f32. The variance is the mean square of the distances from the mean (two passes over
// the data), which avoids cancellation.
#include <numeric>

#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

class Expander {
 public:
  Expander(Instr* norm, hlo::Builder& b) : norm_(*norm), b_(b) {
    const auto& attrs = norm->attrs_as<hlo::BatchNormAttrs>();
    feature_ = attrs.feature_index;
    epsilon_ = attrs.epsilon;
    const Shape& x = norm->operand(0)->shape();
    const bool narrow = tensor::type_bits(x.type()) < 32;
    type_ = narrow ? Type::f32 : x.type();
    for (const Instr* operand : norm->operands())
      if (operand->shape().type() == Type::f64) type_ = Type::f64;
    extents_ = x.extents();
    for (int64_t d = 0; d < x.rank(); ++d)
      if (d != feature_) others_.push_back(d);
    count_ = 1;
    for (int64_t d : others_) count_ *= static_cast<double>(x.dim(d));
  }

  Instr* expand() {
    switch (norm_.opcode()) {
      case Opcode::batch_norm_inference:
        return as(normalized(operand(0), operand(3), operand(4), operand(1), operand(2)), 0);
      case Opcode::batch_norm_training:
        return training();
      default:
        return gradient();
    }
  }

 private:
  Instr* operand(size_t i) { return b_.convert(norm_.operand(i), type_); }
  // Converts to the type of operand i.
  Instr* as(Instr* x, size_t i) { return b_.convert(x, norm_.operand(i)->shape().type()); }
  Instr* wide(Instr* per_feature) { return b_.broadcast(per_feature, extents_, {feature_}); }
  Instr* binary(Opcode opcode, Instr* x, Instr* y) { return b_.binary(opcode, x, y); }
  Instr* sum(Instr* x) { return b_.reduce(Opcode::add, x, others_); }
  Instr* by_count(Instr* x) { return binary(Opcode::divide, x, b_.full(x->shape(), count_)); }
  Instr* inverse_deviation(Instr* variance) {
    return b_.unary(Opcode::rsqrt,
                    binary(Opcode::add, variance, b_.full(variance->shape(), epsilon_)));
  }
  // (x - mean) * (scale / sqrt(variance + epsilon)) + offset. The factor is per feature: if the
  // statistics are constants it is folded.
  Instr* normalized(Instr* x, Instr* mean, Instr* variance, Instr* scale, Instr* offset) {
    Instr* factor = binary(Opcode::multiply, scale, inverse_deviation(variance));
    Instr* centered = binary(Opcode::subtract, x, wide(mean));
    return binary(Opcode::add, binary(Opcode::multiply, centered, wide(factor)), wide(offset));
  }

  Instr* training() {
    Instr* x = operand(0);
    Instr* mean = by_count(sum(x));
    Instr* centered = binary(Opcode::subtract, x, wide(mean));
    Instr* variance = by_count(sum(binary(Opcode::multiply, centered, centered)));
    Instr* out = normalized(x, mean, variance, operand(1), operand(2));
    return b_.tuple({as(out, 0), as(mean, 1), as(variance, 1)});
  }

  // With n = (x - mean) / deviation: doffset = sum(g), dscale = sum(g * n),
  // dx = scale / deviation * (g - doffset / count - n * dscale / count).
  Instr* gradient() {
    Instr *g = operand(4), *inverse = inverse_deviation(operand(3));
    Instr* centered = binary(Opcode::subtract, operand(0), wide(operand(2)));
    Instr* n = binary(Opcode::multiply, centered, wide(inverse));
    Instr *doffset = sum(g), *dscale = sum(binary(Opcode::multiply, g, n));
    Instr* rest = binary(Opcode::subtract, g, wide(by_count(doffset)));
    rest = binary(Opcode::subtract, rest, binary(Opcode::multiply, n, wide(by_count(dscale))));
    Instr* dx = binary(Opcode::multiply, wide(binary(Opcode::multiply, operand(1), inverse)), rest);
    return b_.tuple({as(dx, 0), as(dscale, 1), as(doffset, 1)});
  }

  Instr& norm_;
  hlo::Builder& b_;
  int64_t feature_ = 0;
  double epsilon_ = 0, count_ = 1;
  Type type_ = Type::f32;
  Ints extents_, others_;
};

}  // namespace

Result<bool> expand_batch_norm(hlo::Module& module, const PassContext& context) {
  return rewrite_module(
      module, context, "expand_batch_norm",
      [](Instr* instr, hlo::Builder& b) -> Rewriter::Proposal {
        if (!instr->operand(0)->shape().is_static()) return {};
        return {Expander(instr, b).expand(), "batch_norm"};
      },
      [](const Instr* instr) {
        return instr->is(Opcode::batch_norm_grad) || instr->is(Opcode::batch_norm_inference) ||
               instr->is(Opcode::batch_norm_training);
      });
}

}  // namespace heddle::opt
