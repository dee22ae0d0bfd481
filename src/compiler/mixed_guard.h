// The final decision on mixed precision by cost: compares whole runs of the module in f32 and with
// the plan applied, both fused. A plan prices only values and products; the cost of conversions in
// kernels, and their other effects, show only here.
#pragma once

#include <string>

#include "compiler/compile_options.h"
#include "compiler/pipeline.h"
#include "hlo/module.h"
#include "target/target.h"

namespace heddle::compiler {

// A smaller gain is not worth the loss of accuracy.
inline constexpr double kLeastMixedGain = 0.03;
inline constexpr const char* kF32Record = "f32";  // of tuning: the module was faster in f32

struct MixedVerdict {
  MixedTimes times;
  FusedModule fused;  // the one of the two to compile
};

// `f32`: an optimised module; `mixed`: the same with values of `type`. If tuning has measured both
// programs, its record decides.
Result<MixedVerdict> compare_runs(const hlo::Module& f32, const hlo::Module& mixed,
                                  const std::string& type, const Options& options,
                                  const target::Target& target);

}  // namespace heddle::compiler
