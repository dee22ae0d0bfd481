// What the instructions of a fused module launch.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"
#include "program/program.h"

namespace heddle::plan {

// What a fusion instruction launches. The kernel's global buffers are, in order: the fusion's
// operands (by parameter number), its output leaves, then `workspace_bytes` temporaries that live
// for this launch only.
struct KernelUse {
  program::Kernel kernel;  // equal names are one kernel
  std::vector<int64_t> workspace_bytes;
  // Output leaf i may overwrite operand in_place[i] where that dies here; -1: not.
  std::vector<int> in_place;
  // It is operand in_place[i] but for a part, which alone is stored: it must lie there. Where
  // missing: not.
  std::vector<bool> in_part;
  std::vector<int64_t> dims;  // its run-time dimensions here
};
using Kernels = std::unordered_map<const hlo::Instr*, KernelUse>;

}  // namespace heddle::plan
