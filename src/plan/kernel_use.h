// What a fused module launches: a kernel and its arguments for each fusion instruction.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"
#include "program/program.h"

namespace heddle::plan {

// The launch of a fusion instruction. The kernel's global buffers are, in order: the fusion's
// operands (by parameter number), its output leaves, then `workspace_bytes` temporaries that live
// for this launch only.
struct KernelUse {
  program::Kernel kernel;  // equal names mean the same kernel
  std::vector<int64_t> workspace_bytes;
  // Output leaf i may overwrite operand in_place[i] if that dies here; -1: it may not.
  std::vector<int> in_place;
  // Output leaf i equals operand in_place[i] except for the part that is stored, so it must use its
  // memory. Missing entries: false.
  std::vector<bool> in_part;
  std::vector<int64_t> dims;  // run-time dimensions of this launch
};
using Kernels = std::unordered_map<const hlo::Instr*, KernelUse>;

}  // namespace heddle::plan
