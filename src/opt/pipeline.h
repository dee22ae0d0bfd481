// The default pipelines. Text, as pass/pipeline.h reads it; the reasons for the order are in
// pipeline.cc.
#pragma once

#include <string>

#include "hlo/opcode.h"
#include "target/target.h"

namespace heddle::opt {

enum class Level { O0, O1, O2 };

// O0: what correctness needs. O1: and simplification to a fixpoint. O2: and what changes rounding.
// `kind`: what it is compiled for; CPUs compute running sums by scans, GPUs by blocks.
// `on_primitives`: more passes of O2 in front of what simplifies, each with a comma behind it.
std::string pipeline_for(Level level, target::DeviceKind kind = target::DeviceKind::cpu,
                         const std::string& on_primitives = "");

// Of a module that has been through the pipeline of O1 or O2 and was changed in places: simplifies
// what that left.
std::string cleanup_pipeline();

// Operators that no pipeline leaves behind (on static shapes): calls (but for those of
// lazy_calls.h, which wait until the module is fused) and fusions, batch
// normalisation, bitcasts, copies and what else has a meaning for placement and order only.
bool is_lowered(hlo::Opcode opcode);

}  // namespace heddle::opt
