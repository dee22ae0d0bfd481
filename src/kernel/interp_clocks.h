// When the threads of a block touch an element, told by clocks. Threads meet only at barriers, of
// the block or of a subgroup, so the clock of a thread is two numbers: how many barriers its block
// and its subgroup have passed. Two accesses of one element by two threads, one of them a store,
// are a race where no barrier lies between them that both have passed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::kernel {

inline constexpr int kSubgroupLanes = 32;

class InterpClocks {
 public:
  static constexpr int kAllLanes = -1;  // a load that the subgroup does as one

  // What was done last with an element, or with a byte of scratch.
  struct Seen {
    struct Event {
      uint32_t block = 0, epoch = 0, subgroup_epoch = 0;
      int16_t subgroup = 0;  // -1: several
      int16_t lane = 0;      // -1: several
    };
    Event store, load;
  };

  void begin_block(int subgroups);
  void end_block() { running_ = false; }
  bool running() const { return running_; }
  void enter(int subgroup) { subgroup_ = subgroup; }
  int subgroup() const { return subgroup_; }
  void block_barrier() { ++epoch_; }
  void subgroup_barrier() { ++subgroup_epochs_[static_cast<size_t>(subgroup_)]; }

  // True: a race with an earlier access. The running subgroup does it.
  bool load(Seen& seen, int lane) const;
  bool store(Seen& seen, int lane) const;

 private:
  bool before(const Seen::Event& event, int lane) const;
  Seen::Event now(int lane) const;

  bool running_ = false;
  uint32_t block_ = 0, epoch_ = 0;
  int subgroup_ = 0;
  std::vector<uint32_t> subgroup_epochs_;
};

}  // namespace heddle::kernel
