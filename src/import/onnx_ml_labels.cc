// Operators of ai.onnx.ml that look values up: LabelEncoder, CategoryMapper, OneHotEncoder.
#include <algorithm>
#include <cmath>
#include <map>

#include "import/onnx_ml.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

// A list of keys or values: numbers, or strings as ids.
struct Column {
  Literal values;
  bool text = false;
};

Column text_column(Op& op, const std::vector<std::string>& texts) {
  return {op.text_literal(texts, {static_cast<int64_t>(texts.size())}), true};
}

Column float_column(const std::vector<float>& values) {
  return {
      Literal::from<float>(Shape::array(Type::f32, {static_cast<int64_t>(values.size())}), values),
      false};
}

// Whichever of <kind>_tensor, <kind>_strings, <kind>_int64s, <kind>_floats is given.
Column column_attr(Op& op, const std::string& kind) {
  if (const proto::Tensor* tensor = op.tensor_attr(kind + "_tensor")) {
    Literal values = op.tensor_value(*tensor, kind + "_tensor");
    return {reshaped(values, {values.elems()}), tensor->data_type == kStringType};
  }
  if (op.has_attr(kind + "_strings")) return text_column(op, op.strings_attr(kind + "_strings"));
  if (op.has_attr(kind + "_int64s")) return {ints_literal(op.ints_attr(kind + "_int64s")), false};
  if (op.has_attr(kind + "_floats")) return float_column(op.floats_attr(kind + "_floats"));
  op.fail("one of {}_tensor, {}_strings, {}_int64s and {}_floats is wanted", kind, kind, kind,
          kind);
}

int64_t key_at(const Literal& keys, int64_t i) {
  return tensor::is_float(keys.type()) ? ml::order_key(keys.get_f64(i), keys.type())
                                       : keys.get_s64(i);
}

// Maps input 0 by the table: `otherwise` if no key is equal. If keys are equal the last one counts.
Outputs look_up(Op& op, const Column& keys, const Column& values, const Literal& otherwise) {
  Instr* x = op.in(0);
  if (op.is_text(0) != keys.text || x->shape().type() != keys.values.type())
    op.fail("X is {}{}, the keys are {}{}", op.is_text(0) ? "strings " : "", to_string(op.shape(0)),
            keys.text ? "strings " : "", to_string(keys.values.shape()));
  if (keys.values.elems() != values.values.elems())
    op.fail("{} keys and {} values", keys.values.elems(), values.values.elems());
  if (otherwise.elems() != 1 || otherwise.type() != values.values.type())
    op.fail("the default is {}, the values are {}", to_string(otherwise.shape()),
            to_string(values.values.shape()));
  std::map<int64_t, int64_t> last;
  for (int64_t i = 0; i < keys.values.elems(); ++i) {
    // Before opset 4 NaN does not equal any key.
    const bool real = tensor::is_float(keys.values.type());
    if (real && op.opset() < 4 && std::isnan(keys.values.get_f64(i))) continue;
    last[key_at(keys.values, i)] = i;
  }
  Ints distinct;
  const auto count = static_cast<int64_t>(last.size());
  Literal table(Shape::array(values.values.type(), {count + 1}));
  for (const auto& [key, place] : last) {
    table.set_bits(static_cast<int64_t>(distinct.size()), values.values.get_bits(place));
    distinct.push_back(key);
  }
  table.set_bits(count, otherwise.get_bits(0));
  if (tensor::is_float(x->shape().type())) x = ml::order_keys(op, x);
  Output y = op.b.take(op.b.constant(table), ml::find_keys(op, x, distinct), 0);
  return {values.text ? Output::text(y) : y};
}

Literal text_default(Op& op, const char* name) {
  return op.text_literal({op.string_attr(name, "_Unused")}, {1});
}

// Before opset 2: one list of strings, mapped to or from their indices.
Outputs old_label_encoder(Op& op) {
  const std::vector<std::string> classes = op.strings_attr("classes_strings");
  const Column strings = text_column(op, classes);
  const Column places{ints_literal(range(0, static_cast<int64_t>(classes.size()))), false};
  const Literal number = ints_literal({op.int_attr("default_int64", -1)});
  const Literal string = text_default(op, "default_string");
  return op.is_text(0) ? look_up(op, strings, places, number)
                       : look_up(op, places, strings, string);
}

Outputs label_encoder(Op& op) {
  if (op.opset() < 2) return old_label_encoder(op);
  const Column keys = column_attr(op, "keys"), values = column_attr(op, "values");
  op.ignore({"default_float", "default_int64", "default_string", "default_tensor"});
  if (const proto::Tensor* tensor = op.tensor_attr("default_tensor"))
    return look_up(op, keys, values, op.tensor_value(*tensor, "default_tensor"));
  if (values.text) return look_up(op, keys, values, text_default(op, "default_string"));
  Literal otherwise(Shape::array(values.values.type(), {1}));
  if (tensor::is_float(values.values.type())) {
    otherwise.set_f64(0, op.float_attr("default_float", -0.0));
  } else {
    otherwise.set_s64(0, op.int_attr("default_int64", -1));
  }
  return look_up(op, keys, values, otherwise);
}

Outputs category_mapper(Op& op) {
  const Column strings = text_column(op, op.strings_attr("cats_strings"));
  const Column numbers{ints_literal(op.ints_attr("cats_int64s")), false};
  const Literal number = ints_literal({op.int_attr("default_int64", -1)});
  const Literal string = text_default(op, "default_string");
  return op.is_text(0) ? look_up(op, strings, numbers, number)
                       : look_up(op, numbers, strings, string);
}

// A new last dimension, 1 at the category's index.
Outputs one_hot_encoder(Op& op) {
  const bool text = op.is_text(0);
  const Literal categories = text ? text_column(op, op.strings_attr("cats_strings")).values
                                  : ints_literal(op.ints_attr("cats_int64s"));
  op.ignore({"cats_strings", "cats_int64s"});
  const int64_t count = categories.elems();
  if (count == 0) op.fail("cats_{} is missing", text ? "strings" : "int64s");
  std::map<int64_t, int64_t> first;
  for (int64_t i = 0; i < count; ++i) first.emplace(categories.get_s64(i), i);
  if (static_cast<int64_t>(first.size()) != count) op.fail("a category is there twice");
  Ints keys;
  for (int64_t i = 0; i < count; ++i) keys.push_back(categories.get_s64(i));
  Instr* place = ml::find_keys(op, op.in(0), keys);
  // Without `zeros` an unknown category is an error.
  if (op.int_attr("zeros", 1) == 0) op.demand(place, {{0, count - 1}});
  Ints extents = place->shape().extents();
  const Ints dims = range(0, static_cast<int64_t>(extents.size()));
  extents.push_back(count);
  op.check_extents(extents);
  Instr* hot = op.b.compare(Direction::eq, op.b.broadcast(place, extents, dims),
                            iota(op, Type::s32, extents, static_cast<int64_t>(dims.size())));
  return {op.b.convert(hot, Type::f32)};
}

constexpr OpEntry kOps[] = {
    {"ai.onnx.ml.CategoryMapper", 1, 1, category_mapper, true, Text::read},
    {"ai.onnx.ml.LabelEncoder", 1, 1, label_encoder, true, Text::read},
    {"ai.onnx.ml.OneHotEncoder", 1, 1, one_hot_encoder, true, Text::read},
};

}  // namespace

std::span<const OpEntry> ml_label_ops() { return kOps; }

}  // namespace heddle::import
