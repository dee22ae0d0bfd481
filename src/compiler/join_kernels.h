// Private to compiler: the kernel of a fusion of fusions (hlo/join.h), of those of its parts.
#pragma once

#include "compiler/pending.h"
#include "hlo/join.h"
#include "stitch/stitch.h"
#include "target/target.h"

namespace heddle::compiler {

// The kernels of its parts in one. A part stands in the first phases in which all that it reads is
// there; parts that do not wait for each other share phases. Values between the parts are
// workspaces.
//
// Join::phases: the parts' groups stand in the phases as they are. Join::table: the kernels become
// inner kernels (kernel.h), one for all that differ in extents only, their launches rows of tables;
// neighbouring phases of little work (cost::kSerialFlops, kSerialBytes) are one, in which the rows
// go one after the other. `run`: for the pass open_extents, by which kernels become one.
stitch::Stitched join_kernels(const hlo::Computation& computation, hlo::Join join,
                              const std::string& name, const target::Target& target,
                              const stitch::KernelOf& kernel_of, const RunPass& run);

}  // namespace heddle::compiler
