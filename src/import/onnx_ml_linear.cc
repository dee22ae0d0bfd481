// Linear models of ai.onnx.ml: a product and its epilogue.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "import/onnx_ml.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

using ml::Transform;

Instr* positive(Op& op, Instr* score, double than) {
  Instr* more = compare(op, Direction::gt, score, than);
  return op.b.convert(reshape(op, more, {score->shape().dim(0)}), Type::s32);
}

Outputs linear_regressor(Op& op) {
  const int64_t targets = op.int_attr("targets", 1);
  const Transform transform = ml::transform_attr(op);
  Instr* x = ml::table_input(op, 0, Type::f32);
  Instr* y = ml::times_rows(op, x, op.floats_attr("coefficients"), targets, "coefficients");
  y = ml::add_row(op, y, op.floats_attr("intercepts"), "intercepts");
  if (targets == 1 && transform != Transform::probit) return {y};
  return {ml::transformed(op, y, transform)};
}

Outputs linear_classifier(Op& op) {
  op.ignore({"multi_class"});
  const ml::Labels labels = ml::labels_attr(op, "classlabels_ints", "classlabels_strings");
  const Transform transform = ml::transform_attr(op);
  const std::vector<float> coefficients = op.floats_attr("coefficients"),
                           intercepts = op.floats_attr("intercepts");
  Instr* x = ml::table_input(op, 0, Type::f32);
  const int64_t width = std::max<int64_t>(x->shape().dim(1), 1);
  const auto targets = static_cast<int64_t>(
      intercepts.empty() ? coefficients.size() / static_cast<size_t>(width) : intercepts.size());
  Instr* scores = ml::times_rows(op, x, coefficients, targets, "coefficients");
  scores = ml::add_row(op, scores, intercepts, "intercepts");
  if (targets > 1) {
    if (labels.count() != targets)
      op.fail("{} class labels for {} scores", labels.count(), targets);
    return {ml::labels_at(op, labels, ml::argmax(op, scores)),
            ml::transformed(op, scores, transform)};
  }
  // A single score for two classes: it is the second one's.
  if (labels.count() != 2) op.fail("{} class labels for one score, wanted 2", labels.count());
  Output label = ml::labels_at(op, labels, positive(op, scores, 0));
  if (transform == Transform::probit)
    op.fail("post_transform is PROBIT, which gives one score for two classes");
  Instr* other = nullptr;
  if (transform == Transform::logistic) {
    other = op.b.unary(Opcode::logistic, op.b.unary(Opcode::negate, scores));
    scores = op.b.unary(Opcode::logistic, scores);
  } else {
    other = op.b.binary(Opcode::subtract, op.b.full(scores->shape(), 1), scores);
  }
  return {label, op.b.concatenate({other, scores}, 1)};
}

constexpr OpEntry kOps[] = {
    {"ai.onnx.ml.LinearClassifier", 1, 1, linear_classifier},
    {"ai.onnx.ml.LinearRegressor", 1, 1, linear_regressor},
};

}  // namespace

std::span<const OpEntry> ml_linear_ops() { return kOps; }

}  // namespace heddle::import
