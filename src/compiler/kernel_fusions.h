// Private to compiler: the fusions of a module that become kernels, and what they store how.
#pragma once

#include <vector>

#include "hlo/module.h"
#include "target/target.h"

namespace heddle::compiler {

// Callees first; not those inside of another fusion.
std::vector<const hlo::Instr*> kernel_fusions(const hlo::Module& module);

// Leaves that only the caller reads, and that are far larger than the second cache: a streaming
// store saves reading the line first. A flag an output; empty: none.
std::vector<bool> streamed_outputs(const hlo::Instr& fusion, const target::Target& target);
// Whether all results of a table fusion together are far larger than the cache; then, of a fusion
// inside of it, the leaves that only the caller reads.
bool streams_inside(const hlo::Computation& table, const target::Target& target);
std::vector<bool> streamed_outputs_inside(const hlo::Instr& fusion);

}  // namespace heddle::compiler
