// Private to api: the programs that heddle calibrate measures, as HLO text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hlo/opcode.h"
#include "tensor/type.h"

namespace heddle::api {

std::string copy_text(int64_t elems);
// Sums of rows: almost nothing is written.
std::string sum_text(int64_t rows, int64_t columns);
// `count` kernels in a row.
std::string row_text(int64_t elems, int count);
// The sum of op(|x| * a + b) for `count` different a and b, over an array in the first-level cache:
// independent operations, as in a kernel with independent elements.
std::string operator_text(const std::string& op, int count);
// Operators of hlo/ops.def that take many cycles, and two that represent the cheap ones.
std::vector<hlo::Opcode> measured_operators();
// A product of rows by a constant of k rows, which is packed before it runs.
std::string product_text(tensor::Type a, tensor::Type b, tensor::Type sums, int64_t rows,
                         int64_t columns, int64_t k);

// Memory-bound kernels, whose predictions are compared with measurements.
struct SampleText {
  std::string name, text;
};
std::vector<SampleText> samples();

}  // namespace heddle::api
