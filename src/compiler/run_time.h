// What a run of a fused module is predicted to take, from the places of its kernels: the clock of
// `heddle dryrun`, for decisions that come before kernels are made.
#pragma once

#include <functional>
#include <vector>

#include "hlo/module.h"
#include "target/target.h"

namespace heddle::compiler {

// One after the other; what depends on constants alone is not in it. Of a loop all trips that are
// known, of a branch the longest side.
double predicted_run_ns(const hlo::Module& fused, const target::Target& target, bool fast_forms);

// Of a fusion that is a loop, whose steps take `step_ns` each.
double loop_kernel_ns(const hlo::Computation& fused, const target::Target& target,
                      const std::function<double(const hlo::Instr* step)>& step_ns);
// Of kernels that are joined to one.
double joined_kernel_ns(const std::vector<double>& parts, const target::Target& target);

}  // namespace heddle::compiler
