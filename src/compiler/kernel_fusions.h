// Private to compiler: the fusions of a module that become kernels, and what they store how.
#pragma once

#include <vector>

#include "hlo/module.h"
#include "target/target.h"

namespace heddle::compiler {

// Callees first; not those inside of another fusion.
std::vector<const hlo::Instr*> kernel_fusions(const hlo::Module& module);

// Leaves that only the caller reads, and that are far larger than the second cache (of a table: all
// together): a streaming store saves reading the line first. A flag an output; empty: none.
std::vector<bool> streamed_outputs(const hlo::Instr& fusion, const target::Target& target);
// Of a part of such a fusion, whose outputs are `streamed`: those leaves that no other part reads.
std::vector<bool> streamed_outputs_of_part(const hlo::Instr& part,
                                           const std::vector<bool>& streamed);

}  // namespace heddle::compiler
