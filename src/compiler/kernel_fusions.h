// Private to compiler: the fusions of a module that become kernels, and what they store how.
#pragma once

#include <unordered_map>
#include <vector>

#include "hlo/module.h"
#include "target/target.h"

namespace heddle::compiler {

// Callees first; not those inside of another fusion.
std::vector<const hlo::Instr*> kernel_fusions(const hlo::Module& module);

// Leaves that only the caller reads, and that are far larger than the second cache (of a table: all
// together): a streaming store saves reading the line first. A flag an output; empty: none.
std::vector<bool> streamed_outputs(const hlo::Instr& fusion, const target::Target& target);
// The same of the parts of a fusion of fusions whose outputs are `streamed`: leaves that no other
// part reads.
using StreamedParts = std::unordered_map<const hlo::Instr*, std::vector<bool>>;
StreamedParts streamed_parts(const hlo::Computation& computation,
                             const std::vector<bool>& streamed);

}  // namespace heddle::compiler
