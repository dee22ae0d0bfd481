// The passes of this folder that a target needs, as text (pass/pipeline.h).
#pragma once

#include <string>

#include "target/target.h"

namespace heddle::precision {

// Passes that keep a quantised model's products in few bits; they run between the conversion to
// primitives and the rest of opt's pipeline: packed weights are read directly, and products use
// integers if the target multiplies these faster than floats.
std::string integer_pipeline(const target::Target& target);

}  // namespace heddle::precision
