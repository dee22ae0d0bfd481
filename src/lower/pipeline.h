// The default pipelines of kernel passes, as text (pass/pipeline.h).
#pragma once

#include <string_view>

#include "kernel/kernel.h"
#include "lower/passes.h"
#include "pass/run.h"

namespace heddle::lower {

// The passes that a stitched kernel goes through on a device of this kind.
std::string_view pipeline_for(target::DeviceKind kind);

// Runs a pipeline over a kernel: verifies, dumps ("<dump_name>_<number>_<pass>.kernel"), counts,
// disables and bisects as pass/run.h says. Errors: an unknown name (user); a pass that breaks the
// kernel (machine, "internal error").
Result<pass::RunReport> run(kernel::Kernel& kernel, std::string_view pipeline,
                            const Context& context, const pass::RunOptions& options = {});

}  // namespace heddle::lower
