// Operators of ai.onnx.ml on columns of numbers: Scaler, Normalizer, Imputer, FeatureVectorizer,
// ZipMap.
#include <algorithm>
#include <cmath>

#include "import/onnx_ml.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

// One number, or one per entry of the last dimension.
Instr* per_feature(Op& op, Type type, const std::vector<double>& values, const Ints& extents,
                   const char* what) {
  const auto count = static_cast<int64_t>(values.size());
  const int64_t features = extents.empty() ? 1 : extents.back();
  if (count != 1 && count != features)
    op.fail("{} has {} numbers, wanted 1 or {}", what, count, features);
  Instr* list = ml::constant_list(op, type, values, {count});
  if (count == 1) return splat(op, reshape(op, list, {}), extents);
  return broadcast_along(op, list, extents, static_cast<int64_t>(extents.size()) - 1);
}

Outputs scaler(Op& op) {
  const std::vector<double> offset = ml::doubles(op.floats_attr("offset")),
                            scale = ml::doubles(op.floats_attr("scale"));
  Instr* x = op.b.convert(op.in(0), Type::f32);
  const Ints extents = x->shape().extents();
  if (!offset.empty())
    x = op.b.binary(Opcode::subtract, x, per_feature(op, Type::f32, offset, extents, "offset"));
  if (!scale.empty())
    x = op.b.binary(Opcode::multiply, x, per_feature(op, Type::f32, scale, extents, "scale"));
  return {x};
}

Outputs normalizer(Op& op) {
  const std::string norm = op.string_attr("norm", "MAX");
  if (norm != "MAX" && norm != "L1" && norm != "L2")
    op.fail("norm is {}, wanted MAX, L1 or L2", quoted(norm));
  const Ints given = op.shape(0).extents();
  Instr* x = ml::table_input(op, 0, Type::f32);
  const Ints extents = x->shape().extents();
  Instr* size = nullptr;
  if (norm == "MAX") {
    size = op.b.reduce(Opcode::maximum, x, {1});
  } else {
    Instr* parts = norm == "L1" ? op.b.unary(Opcode::abs, x) : op.b.binary(Opcode::multiply, x, x);
    size = op.b.reduce(Opcode::add, parts, {1});
    if (norm == "L2") size = op.b.unary(Opcode::sqrt, size);
  }
  Instr* nothing = compare(op, Direction::eq, size, 0);
  size = op.b.select(nothing, op.b.full(size->shape(), 1), size);
  Instr* y = op.b.binary(Opcode::divide, x, broadcast_back(op, size, extents, {1}));
  return {reshape(op, y, given)};
}

Outputs imputer(Op& op) {
  const bool real = tensor::is_float(op.type(0));
  std::vector<double> with = ml::doubles(op.floats_attr("imputed_value_floats"));
  const Ints integers = op.ints_attr("imputed_value_int64s");
  const double replaced_float = op.float_attr("replaced_value_float", 0);
  const int64_t replaced_int = op.int_attr("replaced_value_int64", 0);
  if (with.empty() == integers.empty() || real == with.empty())
    op.fail("X is {}: wanted imputed_value_{}", to_string(op.shape(0)), real ? "floats" : "int64s");
  Instr* x = op.in(0);
  const Ints extents = x->shape().extents();
  if (!real) with.assign(integers.begin(), integers.end());
  Instr* values = per_feature(op, op.type(0), with, extents, "imputed_value");
  Instr* missing = nullptr;
  if (real && std::isnan(replaced_float)) {
    missing = op.b.compare(Direction::ne, x, x);
  } else {
    missing =
        compare(op, Direction::eq, x, real ? replaced_float : static_cast<double>(replaced_int));
  }
  return {op.b.select(missing, values, x)};
}

// Inputs side by side, each cut or zero-padded to its width.
Outputs feature_vectorizer(Op& op) {
  const Ints widths = op.ints_attr("inputdimensions");
  if (!widths.empty() && widths.size() != op.inputs())
    op.fail("inputdimensions has {} entries for {} inputs", widths.size(), op.inputs());
  std::vector<Instr*> parts;
  for (size_t i = 0; i < op.inputs(); ++i) {
    Instr* x = ml::table_input(op, i, Type::f32);
    const int64_t has = x->shape().dim(1), width = widths.empty() ? has : widths[i];
    op.check_extents({x->shape().dim(0), width});
    if (width < has) x = ml::columns(op, x, 0, width);
    if (width > has) x = op.b.pad(x, op.b.scalar(Type::f32, 0), {0, 0}, {0, width - has}, {});
    parts.push_back(x);
  }
  return {parts.size() == 1 ? parts[0] : op.b.concatenate(parts, 1)};
}

// A list of maps from labels to scores is represented by the table of scores, with its columns in
// the labels' order.
Outputs zip_map(Op& op) {
  const ml::Labels labels = ml::labels_attr(op, "classlabels_int64s", "classlabels_strings");
  Instr* x = ml::table_input(op, 0, Type::f32);
  if (x->shape().dim(1) != labels.count())
    op.fail("X is {}, there are {} class labels", to_string(op.shape(0)), labels.count());
  std::string columns;
  constexpr int64_t kMostNamed = 8;
  for (int64_t i = 0; i < std::min(labels.count(), kMostNamed); ++i) {
    const auto at = static_cast<size_t>(i);
    columns += (i > 0 ? ", " : "") + (labels.are_strings() ? quoted(labels.strings[at])
                                                           : std::to_string(labels.numbers[at]));
  }
  op.note(fmt::format("{}: the maps are one table of scores, its columns are {}{}", op.describe(),
                      columns, labels.count() > kMostNamed ? ", ..." : ""));
  return {x};
}

constexpr OpEntry kOps[] = {
    {"ai.onnx.ml.FeatureVectorizer", 1, -1, feature_vectorizer},
    {"ai.onnx.ml.Imputer", 1, 1, imputer},
    {"ai.onnx.ml.Normalizer", 1, 1, normalizer},
    {"ai.onnx.ml.Scaler", 1, 1, scaler},
    {"ai.onnx.ml.ZipMap", 1, 1, zip_map, false},
};

}  // namespace

std::span<const OpEntry> ml_feature_ops() { return kOps; }

}  // namespace heddle::import
