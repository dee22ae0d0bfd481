// Private to compiler: the kernel of a composite that is a table (hlo/composite.h).
#pragma once

#include <functional>

#include "compiler/pending.h"
#include "hlo/module.h"
#include "stitch/stitch.h"
#include "target/target.h"

namespace heddle::compiler {

// The kernels of the fusions inside become inner kernels (kernel.h), one for all that differ in
// extents only, and their launches rows of tables. A row stands in the first phases in which all
// that it reads is there; neighbouring phases whose work is small are one, in which the rows go one
// after the other (`is_small`, of operations and bytes). Values between the fusions are workspaces.
struct TableLimits {
  int64_t flops = 0, bytes = 0;
};
// `run`: for the pass open_extents, by which kernels become one.
stitch::Stitched make_table(const hlo::Computation& computation, const std::string& name,
                            const target::Target& target, const TableLimits& small,
                            const stitch::KernelOf& kernel_of, const RunPass& run);

}  // namespace heddle::compiler
