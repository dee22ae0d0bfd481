// Mixed precision in a compilation (precision/mixed_plan.h): the module is fused once to find the
// values kept in memory; the decisions are then applied to the unfused module.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/compile_options.h"
#include "compiler/mixed_guard.h"
#include "hlo/module.h"
#include "target/target.h"

namespace heddle::compiler {

// Checks that Options::precision is a supported type and that loss_scale is "none", "auto", a power
// of two that f32 holds, or empty. Error: user.
Status check_precision(const Options& options);

// `module` must be simplified and not fused. Does nothing if all is f32 and no scale is requested.
// Notes are added to `notes`; `report` may be null. Error (user): a scale is requested, and the
// module is not a training step. Returns `module` fused, if that was needed to decide.
Result<std::optional<FusedModule>> mix_precision(std::unique_ptr<hlo::Module>* module,
                                                 const Options& options,
                                                 const target::Target& target,
                                                 std::vector<std::string>* notes, Report* report);

// A copy fused as for the compilation, but without packed weights, which plans ignore, and chains.
Result<std::unique_ptr<hlo::Module>> fused_copy(const hlo::Module& module, const Options& options,
                                                const target::Target& target);

// The number of fusions of `fused` that only convert values computed in a run.
int count_cast_kernels(const hlo::Module& fused);

}  // namespace heddle::compiler
