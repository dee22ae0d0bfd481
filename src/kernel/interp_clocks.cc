#include "kernel/interp_clocks.h"

namespace heddle::kernel {

void InterpClocks::begin_block(int subgroups) {
  ++block_;
  epoch_ = 0;
  subgroup_ = 0;
  subgroup_epochs_.assign(static_cast<size_t>(subgroups), 0);
  running_ = true;
}

// Other blocks are other tasks: races with them are found by task tags.
bool InterpClocks::before(const Seen::Event& event, int lane) const {
  if (event.block != block_ || event.epoch < epoch_) return true;
  if (event.subgroup != subgroup_) return false;
  if (event.subgroup_epoch < subgroup_epochs_[static_cast<size_t>(subgroup_)]) return true;
  return event.lane == lane && lane >= 0;
}

InterpClocks::Seen::Event InterpClocks::now(int lane) const {
  return {block_, epoch_, subgroup_epochs_[static_cast<size_t>(subgroup_)],
          static_cast<int16_t>(subgroup_), static_cast<int16_t>(lane)};
}

bool InterpClocks::load(Seen& seen, int lane) const {
  const bool raced = !before(seen.store, lane);
  const Seen::Event earlier = seen.load;
  seen.load = now(lane);
  // Several readers between two barriers: a store must come after all of them.
  if (earlier.block != block_ || earlier.epoch != epoch_) return raced;
  if (earlier.subgroup != subgroup_) {
    seen.load.subgroup = -1;
  } else if (earlier.subgroup_epoch == seen.load.subgroup_epoch && earlier.lane != lane) {
    seen.load.lane = kAllLanes;
  }
  return raced;
}

bool InterpClocks::store(Seen& seen, int lane) const {
  const bool raced = !before(seen.store, lane) || !before(seen.load, lane);
  seen.store = now(lane);
  seen.load = {};
  return raced;
}

}  // namespace heddle::kernel
