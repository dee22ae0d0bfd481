// Stores a decoder's caches in fewer bits (--kv-cache). If an output is an input with something
// appended (concatenate) or written into it (dynamic-update-slice), it is a cache of keys or
// values. Input and output become bf16, or s8 with an f32 scale for each row; appended rows are
// rounded once, and readers of the cache widen it on the fly.
#pragma once

#include <string>

#include "base/error.h"
#include "import/onnx.h"

namespace heddle::import {

// `type`: "bf16" or "int8"; empty or "f32": no change. For s8, the scales are inputs and outputs
// after all others, named NAME.scale, with the cache's shape but 1 for the length of a row; a row
// runs along the last dimension, or along the one before if the cache grows along the last. The
// caller must not pass scales that are 0 or not finite. Errors (user): another type; no f32 input
// is a cache.
Status narrow_caches(const std::string& type, Imported* model);

}  // namespace heddle::import
