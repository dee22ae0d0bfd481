// Which passes of this folder a target wants, as text (pass/pipeline.h).
#pragma once

#include <string>

#include "target/target.h"

namespace heddle::precision {

// What turns a quantised model's products into those of integers, between primitives and the rest
// of opt's pipeline. Empty: the target multiplies floats as fast.
std::string integer_pipeline(const target::Target& target);

}  // namespace heddle::precision
