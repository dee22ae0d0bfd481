// Casts to and from strings, for values known at import.
#pragma once

#include "import/onnx_op.h"

namespace heddle::import {

Outputs cast_to_text(Op& op);
Outputs cast_from_text(Op& op, Type to);

}  // namespace heddle::import
