// stitch: a placed schedule becomes a kernel (architecture.md; stages.md). It may not refuse: what
// place() accepted has a kernel.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "schedule/place.h"
#include "target/target.h"

namespace heddle::stitch {

// The kernel's global buffers are flat: the fusion's inputs, its outputs, then workspaces for
// values that cross a phase.
struct Stitched {
  kernel::Kernel kernel;
  std::vector<int64_t> workspace_bytes;
  // Output i may overwrite input in_place[i] (each element is read before it is written, by the
  // task that writes it); -1: no such input.
  std::vector<int> in_place;
  // Output i is input in_place[i] but for a part of it, which alone is stored: it must lie there.
  // Where missing: not.
  std::vector<bool> in_part;
  // By output, where there is a choice: all such inputs. Any will do, for one output each.
  std::vector<std::vector<int>> may_overwrite;
  int64_t flops = 0, min_bytes = 0;  // of one launch
  // By phase and group: plain loop nests, which lower/ may rearrange (lower/passes.h).
  std::vector<std::vector<bool>> nests;
  // By phase, where there are several: operations, and bytes that it touches at most.
  std::vector<int64_t> phase_flops, phase_bytes;
};

// Some output may lie in an input's memory.
bool may_overwrite(const Stitched& stitched);
// The inputs that an output may overwrite, the chosen one first.
std::vector<int> overwritable(const Stitched& stitched, size_t output);

// The kernel is as the schedule says, for lower/ to finish; a GPU's still has vectors for threads.
// `streamed`: outputs (by leaf) that nobody reads soon and that are too large for the caches: they
// are stored past them. Their memory is 64-byte aligned.
Stitched stitch(const stage::PlacedFusion& placed, const std::string& name,
                const target::Target& target, const std::vector<bool>& streamed = {});

// The kernel of a loop fusion (hlo/loop_trips.h), of those of the fusions in its bodies: a group a
// loop, one task each.
using KernelOf = std::function<const Stitched&(const hlo::Instr* fusion)>;
Stitched stitch_loop(const hlo::Computation& computation, const std::string& name,
                     const target::Target& target, const KernelOf& kernel_of);

}  // namespace heddle::stitch
