// The default pipelines. Text, as pass/pipeline.h reads it; the reasons for the order are in
// pipeline.cc.
#pragma once

#include <string>

namespace heddle::opt {

enum class Level { O0, O1, O2 };

// O0: what correctness needs. O1: and simplification to a fixpoint. O2: and what changes rounding.
std::string pipeline_for(Level level);

}  // namespace heddle::opt
