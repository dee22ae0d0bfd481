// Caches of a decoder kept in fewer bits (--kv-cache): what an output is an input with something
// appended to (concatenate), or put into (dynamic-update-slice), is a cache of keys or values.
// Input and output become bf16, or s8 with an f32 scale for each row; what is appended is rounded
// once, and what reads the cache widens it as it reads.
#pragma once

#include <string>

#include "base/error.h"
#include "import/onnx.h"

namespace heddle::import {

// `type`: "bf16" or "int8"; empty or "f32": nothing is changed. Of s8, the scales are inputs and
// outputs behind all others, NAME.scale, of the cache's shape with 1 for the length of a row; a row
// runs along the last dimension, along the one before where the cache grows along the last; a scale
// that is 0 or not finite is the caller's. Errors (user): another type; no input of f32 is a cache.
Status narrow_caches(const std::string& type, Imported* model);

}  // namespace heddle::import
