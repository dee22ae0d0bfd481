// Arrays of values that are tuples, and who makes them.
#pragma once

#include <vector>

#include "hlo/module.h"

namespace heddle::hlo {

// The arrays of a shape, in order: those of a tuple's tuples too.
std::vector<tensor::Shape> leaves_of(const tensor::Shape& shape);

size_t leaf_count(const tensor::Shape& shape);

// Leaf number `leaf` of what `maker` makes.
struct Origin {
  const Instr* maker;
  size_t leaf = 0;
  bool operator==(const Origin&) const = default;
};

// Of an array: through what moves nothing (reshapes, bitcasts, copies) and elements of tuples.
Origin origin_of(const Instr* value);

}  // namespace heddle::hlo
