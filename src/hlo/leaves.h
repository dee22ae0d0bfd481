// Arrays inside tuple values, and the instructions that make them.
#pragma once

#include <vector>

#include "hlo/module.h"

namespace heddle::hlo {

// The arrays of a shape, in order, including those of nested tuples.
std::vector<tensor::Shape> leaves_of(const tensor::Shape& shape);

size_t leaf_count(const tensor::Shape& shape);

// Of the tuple that an element is taken from: the number of the element's first leaf.
size_t first_leaf_of(const Instr* element);

// Inside of a fusion: what makes this leaf of its value.
const Instr* root_of_leaf(const Instr* fusion, size_t leaf);

// Leaf number `leaf` of the value of `maker`.
struct Origin {
  const Instr* maker;
  size_t leaf = 0;
  bool operator==(const Origin&) const = default;
};

// The origin of an array: follows reshapes, bitcasts, copies and tuple elements back.
Origin origin_of(const Instr* value);

}  // namespace heddle::hlo
