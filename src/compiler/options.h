// Private to compiler: options as the parts of a compilation read them.
#pragma once

#include <string>

#include "compiler/compiler.h"
#include "fuse/fuse.h"

namespace heddle::compiler {

// Of a compilation that fuses.
fuse::Mode fuse_mode(const Options& options);
plan::Options plan_options(const Options& options);
// As a program says them (program::Program::options).
std::string options_text(const Options& options);

}  // namespace heddle::compiler
