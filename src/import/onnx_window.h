// The window attributes common to convolutions and pools: kernel_shape, strides, dilations, pads,
// auto_pad, ceil_mode.
#pragma once

#include "import/onnx_op.h"

namespace heddle::import {

struct Spatial {
  Ints kernel, strides, dilations, low, high;  // one per spatial dimension
  Ints output;                                 // extents
  size_t rank() const { return kernel.size(); }
  hlo::Window window() const;  // over the spatial dimensions only
};

// `extents`: the input's spatial dimensions. `kernel`: the weights' ones, or empty: then the
// attribute kernel_shape is required. Reads and checks the attributes; `high` includes windows
// added by ceil_mode.
Spatial read_spatial(Op& op, const Ints& extents, Ints kernel);

// Attributes as lists of positive numbers, one per spatial dimension.
Ints positive_attr(Op& op, const char* name, size_t rank, const Ints& otherwise);

}  // namespace heddle::import
