// IndexCheck: an operator whose positions must be in a range, and where to find them. ONNX makes a
// position outside its range an error; HLO clamps it. So the ONNX importer records which values are
// positions, and the runtime checks them.
//
// Positions held by an input are checked before a run. For computed positions the graph has a
// hidden output, after its other ones: for each range the largest `position - low`, as u64 modulo
// 2^64. If it is above `high - low`, that position is out of range, and the value identifies it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tensor/shape.h"

namespace heddle::tensor {

struct IndexRange {  // inclusive; low <= 0 <= high
  int64_t low = 0, high = 0;
  bool contains(int64_t index) const { return low <= index && index <= high; }
  bool operator==(const IndexRange&) const = default;
};

struct IndexCheck {
  std::string node;                // for error messages: "node 'emb/Gather' (Gather)"
  std::vector<IndexRange> ranges;  // one: for all elements; more: for successive elements in turn
  int64_t input = -1;              // the input that holds the positions; -1: they are computed
  // If only a slice of the input is positions: the slice, by dimension; a limit of -1 is the
  // extent.
  std::vector<int64_t> starts, limits;
  bool operator==(const IndexCheck&) const = default;
};

// Number of checks that have a hidden output.
int64_t hidden_outputs(std::span<const IndexCheck> checks);
// For a check on computed positions: u64, a scalar if there is one range.
Shape hidden_shape(const IndexCheck& check);

// Errors are the user's: the first element of the array that is out of range, with its index.
// `input`: its name; `data`: a dense array of integers, at any alignment.
Status check_indices(const IndexCheck& check, std::string_view input, Type type,
                     std::span<const int64_t> dims, const void* data);
// The same for the contents of a hidden output.
Status check_computed(const IndexCheck& check, const void* hidden);

}  // namespace heddle::tensor
