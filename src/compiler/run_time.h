// The predicted time of a run of a fused module, from the schedules of its kernels, as `heddle
// dryrun` computes it: for decisions before kernels are built.
#pragma once

#include <functional>
#include <vector>

#include "hlo/module.h"
#include "target/target.h"

namespace heddle::compiler {

// The sum over all commands, without those that depend on constants alone. A loop counts its known
// trips (else one), a branch its longest side.
double predicted_run_ns(const hlo::Module& fused, const target::Target& target, bool fast_forms);

// The time of a loop fusion whose steps take `step_ns` each.
double loop_kernel_ns(const hlo::Computation& fused, const target::Target& target,
                      const std::function<double(const hlo::Instr* step)>& step_ns);
// The time of kernels that are joined into one.
double joined_kernel_ns(const std::vector<double>& parts, const target::Target& target);

}  // namespace heddle::compiler
