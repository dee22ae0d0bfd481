// Names that an option may give and that a table has: misspelt ones are refused before any work,
// with the nearest that there is.
#pragma once

#include <string>

#include "base/error.h"

namespace heddle::tools {

// Passes and rewrites ("algebraic.add_zero"), with commas between.
Status check_disabled(const std::string& names);
// A pipeline of passes over modules, "a,{b,c}*", and the words that stand for pipelines.
Status check_passes(const std::string& pipeline);
// A point of a compilation or a pass.
Status check_stop(const std::string& point);
// "host", a name, or a file (something with a dot or a slash in it).
Status check_target(const std::string& name);

}  // namespace heddle::tools
