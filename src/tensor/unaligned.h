// Literals whose elements are not aligned to their size: views of a model file, in which nothing is
// aligned. Large ones are not copied when made (Literal::view): most are read once, when packed
// into a layout. Code that reads bytes, or single elements by the functions of Literal, works
// unchanged; code that reads `values()` must use `element_aligned`.
#pragma once

#include "tensor/literal.h"

namespace heddle::tensor {

// Views of at least this many bytes are not copied.
inline constexpr int64_t kLeastUnalignedBytes = 64 << 10;

bool is_element_aligned(const Literal& literal);  // for a tuple: all leaves

// The same value, copied if not aligned.
Literal element_aligned(const Literal& literal);

}  // namespace heddle::tensor
