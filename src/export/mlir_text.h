// Pieces of MLIR text: types, constants, lists.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "tensor/literal.h"

namespace heddle::exports {

// "f32", "i1", "ui8", "complex<f64>", "f8E4M3FN".
std::string element_type(tensor::Type type);
// "tensor<2x3xf32>", "!stablehlo.token". For arrays of known sizes and tokens.
std::string value_type(const tensor::Shape& shape);
// "dense<…>", without the type. Large ones as the hexadecimal digits of their bytes.
std::string dense(const tensor::Literal& literal);
std::string array_of(const std::vector<int64_t>& numbers);  // "array<i64: 1, 2>"
std::string brackets(const std::vector<int64_t>& numbers);  // "[1, 2]"
std::string pairs_of(
    const std::vector<std::pair<int64_t, int64_t>>& rows);  // "dense<…> : tensor<nx2xi64>"

}  // namespace heddle::exports
