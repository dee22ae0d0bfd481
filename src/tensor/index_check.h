// IndexCheck: an operator that takes positions within a range only, and where to find what it is
// given. ONNX makes a position outside its range an error; HLO clamps it. So the importer of ONNX
// says which values are positions of what, and whoever runs the program compares.
//
// Positions that an input holds are compared before a run. Of those that are computed the graph
// has a hidden output, behind its other ones: for each range the largest of `position - low`, as
// u64 modulo 2^64. It is above `high - low` where one of them is out of range, and tells which.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tensor/shape.h"

namespace heddle::tensor {

struct IndexRange {  // both ends belong to it; low <= 0 <= high
  int64_t low = 0, high = 0;
  bool contains(int64_t index) const { return low <= index && index <= high; }
  bool operator==(const IndexRange&) const = default;
};

struct IndexCheck {
  std::string node;                // as errors name it: "node 'emb/Gather' (Gather)"
  std::vector<IndexRange> ranges;  // one: of all elements; more: element by element in turn
  int64_t input = -1;              // that holds the positions; -1: they are computed
  // Of an input of which a box is positions: the box, by dimension; a limit of -1 is the extent.
  std::vector<int64_t> starts, limits;
  bool operator==(const IndexCheck&) const = default;
};

// How many of them have a hidden output.
int64_t hidden_outputs(std::span<const IndexCheck> checks);
// Of a check on computed positions: u64, a scalar where there is one range.
Shape hidden_shape(const IndexCheck& check);

// Errors are the user's: the first element of the array that is out of range, with its place.
// `input`: its name; `data`: a dense array of integers, anywhere in memory.
Status check_indices(const IndexCheck& check, std::string_view input, Type type,
                     std::span<const int64_t> dims, const void* data);
// The same of what a hidden output holds.
Status check_computed(const IndexCheck& check, const void* hidden);

}  // namespace heddle::tensor
