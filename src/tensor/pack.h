// Converts values to the memory order of a layout, and back.
#pragma once

#include "base/error.h"
#include "tensor/layout.h"
#include "tensor/literal.h"

namespace heddle::tensor {

// The memory of `value` under `layout`: a rank-1 literal of padded_elems elements in memory order;
// padding holds `padding`, a scalar of the same type (zero if none is given). Errors: a layout that
// does not fit the value's shape, or is too large for memory.
Result<Literal> pack(const Literal& value, const Layout& layout);
Result<Literal> pack(const Literal& value, const Layout& layout, const Literal& padding);

// The inverse: `memory` has padded_elems elements of the type of `shape`, a static array.
Result<Literal> unpack(const Literal& memory, const Shape& shape, const Layout& layout);

}  // namespace heddle::tensor
