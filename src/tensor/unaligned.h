// Literals whose elements lie at an address that is no multiple of their size: views of a model
// file, in which nothing is aligned. A large one is not copied when it is made (Literal::view):
// most are read once, by whoever brings them into a layout. What reads bytes, or single elements by
// the functions of Literal, need not care; what reads `values()` must ask for `element_aligned`.
#pragma once

#include "tensor/literal.h"

namespace heddle::tensor {

// Views of at least this many bytes are left where they lie.
inline constexpr int64_t kLeastUnalignedBytes = 64 << 10;

bool is_element_aligned(const Literal& literal);  // of a tuple: all of it

// The same value, copied where it is not aligned.
Literal element_aligned(const Literal& literal);

}  // namespace heddle::tensor
