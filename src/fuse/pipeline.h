// The pipelines of this folder, as text (pass/pipeline.h); the reasons for the order are in
// pipeline.cc.
#pragma once

#include <string>

#include "fuse/passes.h"

namespace heddle::fuse {

// The pipeline that makes fusions of a module's operators, by mode.
std::string pipeline_for(Mode mode, target::DeviceKind kind);

// The pipeline before it, for a CPU: prepares operands of products, and packs constant ones.
// `relaxed`: also for Winograd's algorithm.
std::string packing_pipeline(bool relaxed);

// Runs passes of this folder as pass/run.h says.
Result<pass::RunReport> run(Covers& covers, std::string_view pipeline, const Context& context,
                            const pass::RunOptions& options = {});

}  // namespace heddle::fuse
