// Tuning tasks for a vendor library: every product and convolution that it can compute, with the
// epilogue of our kernel, against our best kernel.
#pragma once

#include <memory>
#include <vector>

#include "compiler/tune.h"

namespace heddle::compiler {

// Appends a task for each. Does nothing if options.library is "none" or the library is not
// available. The module is consumed.
Status add_library_tasks(std::unique_ptr<hlo::Module> module, const target::Target& target,
                         const Options& options, std::vector<TuneTask>* tasks);

}  // namespace heddle::compiler
