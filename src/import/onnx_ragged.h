// Private to import: sequences that are ragged (Value::Ragged).
#pragma once

#include "import/onnx_op.h"

namespace heddle::import {

// ConcatFromSequence of one, along its dimension of several lengths.
Outputs join_ragged(Op& op);

}  // namespace heddle::import
