// The pipelines of this folder, as text (pass/pipeline.h); the reasons for the order are in
// pipeline.cc.
#pragma once

#include <string>

#include "fuse/passes.h"

namespace heddle::fuse {

// What makes fusions of a module's operators, by the way of fusing.
std::string pipeline_for(Mode mode, target::DeviceKind kind);

// In front of it, for a cpu: what products by constants are made of. `relaxed`: Winograd's
// algorithm, too.
std::string packing_pipeline(bool relaxed);

// Runs passes of this folder as pass/run.h says.
Result<pass::RunReport> run(Covers& covers, std::string_view pipeline, const Context& context,
                            const pass::RunOptions& options = {});

}  // namespace heddle::fuse
