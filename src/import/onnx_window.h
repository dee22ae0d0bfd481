// The window attributes that convolutions and pools share: kernel_shape, strides, dilations, pads,
// auto_pad, ceil_mode.
#pragma once

#include "import/onnx_op.h"

namespace heddle::import {

struct Spatial {
  Ints kernel, strides, dilations, low, high;  // one a spatial dimension
  Ints output;                                 // extents
  size_t rank() const { return kernel.size(); }
  hlo::Window window() const;  // over the spatial dimensions only
};

// `extents`: of the spatial dimensions of the input. `kernel`: of the weights, or empty: the
// attribute kernel_shape is required. Reads and checks the attributes; windows that ceil_mode adds
// are in `high`.
Spatial read_spatial(Op& op, const Ints& extents, Ints kernel);

// Attributes as lists of positive numbers, one a spatial dimension.
Ints positive_attr(Op& op, const char* name, size_t rank, const Ints& otherwise);

}  // namespace heddle::import
