// The default pipelines as text (syntax: pass/pipeline.h); the reasons for the order are in
// pipeline.cc.
#pragma once

#include <string>

#include "hlo/opcode.h"
#include "target/target.h"

namespace heddle::opt {

enum class Level { O0, O1, O2 };

// O0: what correctness needs. O1: also simplification to a fixpoint. O2: also passes that change
// rounding. `kind`: the target; CPUs compute running sums by scans, GPUs by blocks.
// `on_primitives`: additional passes at O2 before simplification, each followed by a comma.
std::string pipeline_for(Level level, target::DeviceKind kind = target::DeviceKind::cpu,
                         const std::string& on_primitives = "");

// For a module that went through the pipeline of O1 or O2 and was then changed in places:
// simplifies the changed parts.
std::string cleanup_pipeline();

// Operators that no pipeline leaves in a module (on static shapes): calls (except those of
// lazy_calls.h, which stay until the module is fused) and fusions, batch normalisation, bitcasts,
// copies and other operators that only affect placement and order.
bool is_lowered(hlo::Opcode opcode);

}  // namespace heddle::opt
