// The kernel interpreter: runs a kernel on host memory, slowly and with all checks. It proves what
// a schedule claims: no access out of bounds, no read of unwritten memory or registers, no race
// between tasks of a phase or between threads of a block (blocks.h), each output element stored;
// and counts operations and accesses.
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
  // Groups with threads: a request is one statement's access for all lanes of a subgroup; in global
  // memory consecutive accesses to neighbours that one access of a lane can do are one request.
  // Scratch: passes over the banks, one per request without conflicts. Global: 32-byte sectors
  // touched, and the fewest that hold the bytes.
  int64_t requests = 0, bank_passes = 0, sectors = 0, least_sectors = 0;
};

struct InterpReport {
  std::vector<std::string> faults;    // empty: clean; at most 20, each with where
  std::vector<BufferCounts> buffers;  // by BufferId
  std::vector<int64_t> op_counts;     // by Op: evaluations per active lane
  int64_t barriers = 0, prefetches = 0;
  int64_t subgroup_barriers = 0;
  // Of interpret_sample(): by place in `memory`, which elements were stored; empty for inputs.
  std::vector<std::vector<bool>> stored;

  int64_t bank_conflicts() const;  // passes beyond one per request, all scratch buffers
  // Sectors touched over the fewest possible, all global buffers; 1: every access is coalesced.
  double sector_excess() const;
};

// `memory[i]` is global buffer i (row-major, whole bytes per element). `out` buffers are treated as
// unwritten at the start. Functions are computed in double and rounded once. Tasks run in the order
// of `seed` (0: ascending), so that a hidden dependence between tasks shows.
InterpReport interpret(const Kernel& kernel, const std::vector<void*>& memory,
                       const std::vector<int64_t>& dims = {}, uint64_t seed = 0);

// The same for a kernel that takes too long to run whole: of the last phase at most `most_tasks`
// tasks, the first, the last, and others chosen by `seed`. Elements that these do not store are no
// fault. Earlier phases run whole, since the last one may read all their results. most_tasks >= 2.
InterpReport interpret_sample(const Kernel& kernel, const std::vector<void*>& memory,
                              int64_t most_tasks, uint64_t seed,
                              const std::vector<int64_t>& dims = {});

}  // namespace heddle::kernel
