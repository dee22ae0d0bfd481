// Private to compiler: the kernel of a fusion of fusions (hlo/join.h), from those of its parts.
#pragma once

#include "compiler/pending.h"
#include "hlo/join.h"
#include "stitch/stitch.h"
#include "target/target.h"

namespace heddle::compiler {

// Joins the kernels of the parts. A part begins in the first phase in which all its inputs are
// available; independent parts share phases. Values between the parts are workspaces.
//
// Join::phases: the parts' groups are copied unchanged. Join::table: the kernels become inner
// kernels (kernel.h), one for all that differ only in extents, and their launches become rows of
// tables; adjacent phases of little work (cost::kSerialFlops, kSerialBytes) are merged and run
// their rows in order. `run`: for the pass open_extents, by which kernels are shared.
stitch::Stitched join_kernels(const hlo::Computation& computation, hlo::Join join,
                              const std::string& name, const target::Target& target,
                              const stitch::KernelOf& kernel_of, const RunPass& run);

}  // namespace heddle::compiler
