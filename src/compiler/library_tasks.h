// What tuning measures of a vendor library: every product and convolution that it can do, with what
// our kernel does behind it, against our own best.
#pragma once

#include <memory>
#include <vector>

#include "compiler/tune.h"

namespace heddle::compiler {

// Appends a task for each. Nothing where options.library is "none" or the library is not here. The
// module is consumed.
Status add_library_tasks(std::unique_ptr<hlo::Module> module, const target::Target& target,
                         const Options& options, std::vector<TuneTask>* tasks);

}  // namespace heddle::compiler
