// Private to compiler: the fusions of a module that become kernels, and their streamed outputs.
#pragma once

#include <unordered_map>
#include <vector>

#include "hlo/module.h"
#include "target/target.h"

namespace heddle::compiler {

// Callees first; without fusions inside another fusion.
std::vector<const hlo::Instr*> kernel_fusions(const hlo::Module& module);

// Leaves that only the caller reads and that are far larger than L2 (of a table: all leaves, if
// together they are): a streaming store saves reading the line first. One flag per output; empty:
// none.
std::vector<bool> streamed_outputs(const hlo::Instr& fusion, const target::Target& target);
// The same for the parts of a fusion of fusions whose outputs are `streamed`: leaves that no other
// part reads.
using StreamedParts = std::unordered_map<const hlo::Instr*, std::vector<bool>>;
StreamedParts streamed_parts(const hlo::Computation& computation,
                             const std::vector<bool>& streamed);

}  // namespace heddle::compiler
