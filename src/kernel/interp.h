// The kernel interpreter: runs a kernel on host memory, slowly and suspiciously. It proves what a
// schedule claims: no access out of bounds, no read of memory or registers that nobody wrote, no
// race between tasks of a phase or between threads of a block (blocks.h), each output element
// stored; and counts what was done.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernel/kernel.h"

namespace heddle::kernel {

struct BufferCounts {
  int64_t loads = 0, stores = 0;  // elements
  int64_t max_loads_per_elem = 0, max_stores_per_elem = 0;
  int64_t distinct_loaded = 0, distinct_stored = 0;
  // Groups with threads: requests are what one statement asks for all lanes of a subgroup; in
  // global memory also several in a row, of neighbours that make one access of a lane. Scratch:
  // passes over the banks, one a request where none conflict. Global: 32-byte sectors that were
  // touched, and as many as the bytes would fill.
  int64_t requests = 0, bank_passes = 0, sectors = 0, least_sectors = 0;
};

struct InterpReport {
  std::vector<std::string> faults;    // empty: clean; at most 20, each with where
  std::vector<BufferCounts> buffers;  // by BufferId
  std::vector<int64_t> op_counts;     // by Op: evaluations per active lane
  int64_t barriers = 0, prefetches = 0;
  int64_t subgroup_barriers = 0;
  // Of interpret_sample(): by place in `memory`, which elements were stored; of inputs empty.
  std::vector<std::vector<bool>> stored;

  int64_t bank_conflicts() const;  // passes beyond one a request, all scratch buffers
  // Sectors touched over the fewest possible, all global buffers; 1: every access is coalesced.
  double sector_excess() const;
};

// `memory[i]` is global buffer i (row-major, whole bytes an element). `out` buffers are treated as
// unwritten at the start. Functions are computed in double and rounded once. Tasks run in the order
// of `seed` (0: ascending), so that a hidden dependence between tasks shows.
InterpReport interpret(const Kernel& kernel, const std::vector<void*>& memory,
                       const std::vector<int64_t>& dims = {}, uint64_t seed = 0);

// The same for a kernel that is too long to run whole: of the last phase `most_tasks` tasks at
// most, the first, the last, and of the others those that `seed` chooses. What they do not store is
// no fault. Earlier phases run whole: what all of their tasks stored is read. most_tasks >= 2.
InterpReport interpret_sample(const Kernel& kernel, const std::vector<void*>& memory,
                              int64_t most_tasks, uint64_t seed,
                              const std::vector<int64_t>& dims = {});

}  // namespace heddle::kernel
