// batch-norm-training, -inference and -grad, in f64.
#include <cmath>

#include "interp/evaluator.h"
#include "interp/walk.h"

namespace heddle::interp {

using hlo::Instr;
using hlo::Opcode;

namespace {

using Values = std::vector<double>;

// Maps each element of x to its feature; `inner` successive elements have the same feature.
struct Features {
  int64_t count, inner = 1;
  Features(const Literal& x, int64_t feature_index) : count(x.shape().dim(feature_index)) {
    for (int64_t d = feature_index + 1; d < x.shape().rank(); ++d) inner *= x.shape().dim(d);
  }
  size_t of(size_t i) const { return static_cast<size_t>(static_cast<int64_t>(i) / inner % count); }
};

Result<Literal> literal_of(const Shape& shape, const Values& values) {
  HEDDLE_ASSIGN_OR_RETURN(Literal result, Literal::make(shape));
  set_values(result, values);
  return result;
}

Values means(const Features& features, const Values& x, double n) {
  Values result(static_cast<size_t>(features.count));
  for (size_t i = 0; i < x.size(); ++i) result[features.of(i)] += x[i];
  for (double& value : result) value /= n;
  return result;
}

Values normalized(const Features& features, const Values& x, const Values& mean,
                  const Values& variance, double epsilon) {
  Values result(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t f = features.of(i);
    result[i] = (x[i] - mean[f]) / std::sqrt(variance[f] + epsilon);
  }
  return result;
}

Result<Literal> scaled_and_offset(const Features& features, const Shape& shape, Values x,
                                  const Values& scale, const Values& offset) {
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = x[i] * scale[features.of(i)] + offset[features.of(i)];
  return literal_of(shape, x);
}

// dx = scale / sqrt(var + eps) * (g - mean(g) - xhat * mean(g * xhat)),
// dscale = sum(g * xhat), doffset = sum(g), xhat being normalized x.
Result<Literal> gradient(const Features& features, const Operands& operands, double epsilon,
                         double n) {
  const Values scale = values_as<double>(operands[1]), variance = values_as<double>(operands[3]);
  const Values g = values_as<double>(operands[4]);
  const Values xhat = normalized(features, values_as<double>(operands[0]),
                                 values_as<double>(operands[2]), variance, epsilon);
  Values dscale(scale.size()), doffset(scale.size()), dx(g.size());
  for (size_t i = 0; i < g.size(); ++i) {
    dscale[features.of(i)] += g[i] * xhat[i];
    doffset[features.of(i)] += g[i];
  }
  for (size_t i = 0; i < g.size(); ++i) {
    const size_t f = features.of(i);
    dx[i] = scale[f] / std::sqrt(variance[f] + epsilon) *
            (g[i] - doffset[f] / n - xhat[i] * dscale[f] / n);
  }
  HEDDLE_ASSIGN_OR_RETURN(Literal out_x, literal_of(operands[0].shape(), dx));
  HEDDLE_ASSIGN_OR_RETURN(Literal out_scale, literal_of(operands[1].shape(), dscale));
  HEDDLE_ASSIGN_OR_RETURN(Literal out_offset, literal_of(operands[1].shape(), doffset));
  return Literal::tuple({std::move(out_x), std::move(out_scale), std::move(out_offset)});
}

}  // namespace

Result<Literal> eval_batch_norm(Evaluator&, const Instr& instr, Operands& operands) {
  const auto& attrs = instr.attrs_as<hlo::BatchNormAttrs>();
  const Features features(operands[0], attrs.feature_index);
  const double n = static_cast<double>(operands[0].elems()) / static_cast<double>(features.count);
  if (instr.is(Opcode::batch_norm_grad)) return gradient(features, operands, attrs.epsilon, n);

  const Values x = values_as<double>(operands[0]);
  const Values scale = values_as<double>(operands[1]), offset = values_as<double>(operands[2]);
  if (instr.is(Opcode::batch_norm_inference)) {
    return scaled_and_offset(features, operands[0].shape(),
                             normalized(features, x, values_as<double>(operands[3]),
                                        values_as<double>(operands[4]), attrs.epsilon),
                             scale, offset);
  }
  const Values mean = means(features, x, n);
  Values squares(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double distance = x[i] - mean[features.of(i)];
    squares[i] = distance * distance;
  }
  const Values variance = means(features, squares, n);
  HEDDLE_ASSIGN_OR_RETURN(
      Literal out,
      scaled_and_offset(features, operands[0].shape(),
                        normalized(features, x, mean, variance, attrs.epsilon), scale, offset));
  HEDDLE_ASSIGN_OR_RETURN(Literal out_mean, literal_of(operands[1].shape(), mean));
  HEDDLE_ASSIGN_OR_RETURN(Literal out_variance, literal_of(operands[1].shape(), variance));
  return Literal::tuple({std::move(out), std::move(out_mean), std::move(out_variance)});
}

}  // namespace heddle::interp
