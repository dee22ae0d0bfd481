// The last word on mixed precision by cost: the module as f32 and as the plan has it, both fused,
// by their whole runs. A plan knows values and products alone; what conversions cost in kernels,
// and what else becomes of them, shows only here.
#pragma once

#include <string>

#include "compiler/compile_options.h"
#include "compiler/pipeline.h"
#include "hlo/module.h"
#include "target/target.h"

namespace heddle::compiler {

// Less is not worth what 16 bits cost in accuracy.
inline constexpr double kLeastMixedGain = 0.03;
inline constexpr const char* kF32Record = "f32";  // of tuning: the module was faster in f32

struct MixedVerdict {
  MixedTimes times;
  FusedModule fused;  // of the two the one to be compiled
};

// Of an optimised module in f32, and the same with words of `type`. Where tuning measured both
// programs, its record decides.
Result<MixedVerdict> compare_runs(const hlo::Module& f32, const hlo::Module& mixed,
                                  const std::string& type, const Options& options,
                                  const target::Target& target);

}  // namespace heddle::compiler
