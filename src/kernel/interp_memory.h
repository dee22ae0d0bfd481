// The interpreter's memory: the kernel's buffers, and shadow state for every element.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernel/interp.h"
#include "kernel/interp_clocks.h"
#include "kernel/interp_traffic.h"
#include "kernel/kernel.h"

namespace heddle::kernel {

enum class Hazard : uint8_t { none, unwritten, overwritten, pending, race, thread_race };

class InterpMemory {
 public:
  // Precondition: kernel verified, `memory` and `dims` of the right length, extents not negative.
  // `problems`: faults of the memory itself; empty if there are none.
  InterpMemory(const Kernel& kernel, const std::vector<void*>& memory,
               const std::vector<int64_t>& dims, std::vector<std::string>& problems);

  struct View {
    Space space = Space::global;
    Access access = Access::in;
    Type type = Type::f32;
    int size = 4;  // bytes per element
    int lanes = 0;
    std::vector<int64_t> extents, strides;
    int64_t elems = 0;
    char* data = nullptr;        // global, scratch
    uint32_t owner = 0;          // its tag in `Shadow::owner` and in scratch stamps
    size_t region = 0;           // global
    int64_t first_byte = 0;      // scratch
    uint64_t* cells = nullptr;   // registers: [element][lane]
    uint32_t* stamps = nullptr;  // registers
    int64_t of_subgroup = 0;     // registers: cells of one subgroup
  };
  const View& view(BufferId id) const { return views_[id.index()]; }

  void begin_phase(int64_t tasks);  // tasks are numbered from 0 in it
  void begin_task(int64_t task);
  // Groups with threads: the subgroup of the registers and accesses that follow; 0 after the block.
  void enter_subgroup(int subgroup);
  InterpClocks& clocks() { return clocks_; }
  const InterpClocks& clocks() const { return clocks_; }
  // Later accesses are not merged with earlier ones.
  void begin_accesses() { ++run_; }
  // A request of a subgroup for these elements. In global memory it is merged with the one before
  // if both are neighbours that one access of a lane can cover (interp_traffic.h).
  void count_traffic(BufferId id, std::vector<int64_t>& elements);

  // One element; `at` must be in bounds. Counts the access; the value is moved even if there is a
  // hazard.
  Hazard load(const View& view, BufferId id, int64_t at, int lane, uint64_t& value);
  Hazard store(const View& view, BufferId id, int64_t at, int lane, uint64_t value);
  Hazard mark_pending(const View& view, int64_t at, int lane);  // scratch: until complete()
  void complete(const View& view, BufferId id, int64_t at, uint64_t value, int lane = 0);
  uint64_t peek(const View& view, int64_t at) const;  // global: the value, not counted

  // By BufferId; and the elements of `out` buffers that were never stored.
  std::vector<BufferCounts> counts() const;
  std::vector<std::string> never_stored() const;
  std::vector<std::vector<bool>> stored() const;  // of global buffers; empty for inputs

 private:
  struct Shadow {
    uint32_t writer = 0, reader = 0;  // tasks, by tag
    uint32_t owner = 0;               // the buffer through which it was stored last; 0: none
  };
  struct Count {
    uint32_t loads = 0, stores = 0;
  };

  bool thread_race(std::vector<InterpClocks::Seen>& seen, int64_t first, int64_t count, int lane,
                   bool storing);
  void lay_out(const Buffer& buffer, View& view, const std::vector<int64_t>& dims);
  void place_global(size_t index, const std::vector<void*>& memory,
                    std::vector<std::string>& problems);

  const Kernel& kernel_;
  std::vector<View> views_;
  std::vector<std::vector<Shadow>> regions_;
  InterpClocks clocks_;
  std::vector<std::vector<InterpClocks::Seen>> seen_;  // by region; grown on demand
  std::vector<InterpClocks::Seen> scratch_seen_;       // per byte
  struct Traffic {
    int64_t requests = 0, bank_passes = 0, sectors = 0, least_sectors = 0;
    // The last request to global memory: where each lane's bytes begin, and how many it has.
    std::vector<int64_t> last_begins;
    int64_t last_bytes = 0, last_run = -1;
    Sectors last;
  };
  bool widens(const Traffic& traffic, const std::vector<int64_t>& bytes, int64_t size) const;
  std::vector<Traffic> traffic_;  // by BufferId
  int64_t run_ = 0;               // number of the current run of consecutive accesses
  int64_t subgroup_ = 0;
  std::vector<std::vector<Count>> counts_;  // by BufferId
  std::vector<char> scratch_;
  std::vector<uint32_t> scratch_stamps_;  // per byte
  std::vector<std::vector<uint64_t>> cells_;
  std::vector<std::vector<uint32_t>> stamps_;
  uint32_t phase_tag_ = 1, phase_end_ = 1;  // tags of the phase: phase_tag_ + 1 + task
  uint32_t task_tag_ = 0;
  uint32_t scratch_base_ = 0, task_stamp_ = 0;
};

// "[3, 17]" of a row-major offset.
std::string element_text(const InterpMemory::View& view, int64_t at);

}  // namespace heddle::kernel
