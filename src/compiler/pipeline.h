// What an optimised module goes through until its operators are kernels, as
// text (pass/pipeline.h).
#pragma once

#include <string>

#include "compiler/compiler.h"

namespace heddle::compiler {

std::string fusing_pipeline(const Options& options, const target::Target& target);

}  // namespace heddle::compiler
