// Detects races between threads of a block by clocks. Threads synchronise only at barriers, of the
// block or of a subgroup, so the clock of a thread is two numbers: how many barriers its block and
// its subgroup have passed. Two accesses of one element by two threads, one of them a store, are a
// race if no barrier that both have passed is between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::kernel {

inline constexpr int kSubgroupLanes = 32;

class InterpClocks {
 public:
  static constexpr int kAllLanes = -1;  // a uniform load of the subgroup

  // The last accesses to an element, or to a byte of scratch.
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

  // An access of the running subgroup. True: a race with an earlier access.
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
