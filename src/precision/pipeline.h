// Which passes of this folder a target wants, as text (pass/pipeline.h).
#pragma once

#include <string>

#include "target/target.h"

namespace heddle::precision {

// What keeps a quantised model's products in few bits, between primitives and the rest of opt's
// pipeline: packed weights are read as they are, and products are those of integers where the
// target multiplies these faster than floats.
std::string integer_pipeline(const target::Target& target);

}  // namespace heddle::precision
