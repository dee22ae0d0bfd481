// Values as a layout puts them in memory, and back. Row X6: padding_value.
#pragma once

#include "base/error.h"
#include "tensor/layout.h"
#include "tensor/literal.h"

namespace heddle::tensor {

// The memory of `value` under `layout`: a rank-1 literal of padded_elems elements, one after the
// other as they lie; padding holds `padding`, a scalar of the same type (zero where none is given).
// Errors: a layout that is not one of the value's shape, or too large for memory.
Result<Literal> pack(const Literal& value, const Layout& layout);
Result<Literal> pack(const Literal& value, const Layout& layout, const Literal& padding);

// The inverse: `memory` has padded_elems elements of the type of `shape`, a static array.
Result<Literal> unpack(const Literal& memory, const Shape& shape, const Layout& layout);

}  // namespace heddle::tensor
