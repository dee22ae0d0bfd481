// TensorProto to Literal. Data is viewed in place if its encoding is that of a Literal, else copied
// (typed fields, packed 4-bit values, nonstandard booleans, misaligned bytes).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "import/mapped_file.h"
#include "import/onnx_proto.h"
#include "tensor/literal.h"
#include "tensor/vocabulary.h"

namespace heddle::import {

// Higher ranks are refused everywhere: no model has them, and they cost time.
constexpr int64_t kMaxRank = 32;

// Whether no extent is negative and their product is at most `most`, counting extents of 0 as 1: so
// no partial product of a shape overflows, not even for an empty value.
bool sensible_extents(const std::vector<int64_t>& extents, int64_t most);

// Element type of TensorProto.DataType; throws Failure for undefined, unknown and string.
tensor::Type element_type(int64_t data_type, std::string_view what);

// The inverse; nothing: no equivalent type.
std::optional<int64_t> data_type_number(tensor::Type type);

// Access to a model's tensors.
struct TensorSource {
  std::shared_ptr<const MappedFile> file;  // the model file; null: `owner` holds the bytes
  std::shared_ptr<const void> owner;       // keeps the model's bytes alive
  ExternalFiles* external = nullptr;
  int64_t bytes_left = 0;  // budget for all constants together; counted down
  int64_t max_elems = 0;   // for a tensor without data in the file (empty ones)
  std::shared_ptr<tensor::Vocabulary> vocabulary;  // null: strings are errors
};

// TensorProto.DataType of strings.
constexpr int64_t kStringType = 8;

// Strings become ids. Throws Failure; the message begins with `what`.
tensor::Literal to_literal(const proto::Tensor& tensor, TensorSource& source,
                           std::string_view what);

// A known value with another shape of the same number of elements; no copy.
tensor::Literal reshaped(const tensor::Literal& literal, const std::vector<int64_t>& extents);

}  // namespace heddle::import
