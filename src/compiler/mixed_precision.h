// Mixed precision in a compilation (precision/mixed_plan.h): the module is fused once to see what
// is kept in memory, what is then decided is written into the module as it was.
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

// Options::precision is a type that this makes, loss_scale "none", "auto", a power of two that f32
// holds, or empty. Error: the user's.
Status check_precision(const Options& options);

// `module` is simplified and not fused. Does nothing where all is in f32 and no scale is asked for.
// Notes are added to `notes`; `report` may be null. Error (user): a scale is asked for, and the
// module is no step of training. What comes back is `module` fused, where that was needed to
// decide.
Result<std::optional<FusedModule>> mix_precision(std::unique_ptr<hlo::Module>* module,
                                                 const Options& options,
                                                 const target::Target& target,
                                                 std::vector<std::string>* notes, Report* report);

// As fusion will have it, but for packed weights, which a plan says nothing of.
Result<std::unique_ptr<hlo::Module>> fused_copy(const hlo::Module& module, const Options& options,
                                                const target::Target& target);

// Fusions of `fused` that do nothing but convert (and move) what a run computes.
int count_cast_kernels(const hlo::Module& fused);

}  // namespace heddle::compiler
