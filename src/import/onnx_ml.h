// Shared by the operators of ai.onnx.ml: the transforms of scores, the labels of classes.
#pragma once

#include <string>
#include <vector>

#include "import/onnx_emit.h"

namespace heddle::import::ml {

enum class Transform { none, softmax, logistic, softmax_zero, probit };
Transform transform_attr(Op& op);
// For scores [rows, classes].
Instr* transformed(Op& op, Instr* scores, Transform transform);

// classlabels_*: either numbers or strings.
struct Labels {
  std::vector<int64_t> numbers;
  std::vector<std::string> strings;
  bool are_strings() const { return !strings.empty(); }
  int64_t count() const {
    return static_cast<int64_t>(are_strings() ? strings.size() : numbers.size());
  }
};
Labels labels_attr(Op& op, const char* numbers, const char* strings);
// The label at each position; positions must be in range.
Output labels_at(Op& op, const Labels& labels, Instr* positions);
// s32[rows]: the first class with the largest score.
Instr* argmax(Op& op, Instr* scores);

// Maps a number (f32, f64) to an integer of its width in the order of the type's values: -0 is 0,
// neighbours differ by 1, NaN is last.
int64_t order_key(double x, Type type);
Instr* order_keys(Op& op, Instr* x);
// s32: the index of each element of x in `keys`, which are distinct; keys.size() if absent.
Instr* find_keys(Op& op, Instr* x, const Ints& keys);

// A numeric input as [rows, features] in `type`; a vector is one row.
Instr* table_input(Op& op, size_t input, Type type);
// x [rows, K] times the transposed rows of weights [targets, K]; and the addition of one number per
// column, if there are any.
Instr* times_rows(Op& op, Instr* x, const std::vector<float>& weights, int64_t targets,
                  const char* what);
Instr* add_row(Op& op, Instr* x, const std::vector<float>& values, const char* what);
// x[:, from:to]
Instr* columns(Op& op, Instr* x, int64_t from, int64_t to);
// A list of numbers as a constant.
Instr* constant_list(Op& op, Type type, const std::vector<double>& values, const Ints& extents);
std::vector<double> doubles(const std::vector<float>& values);

}  // namespace heddle::import::ml
