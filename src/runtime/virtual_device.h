// The `virtual` device: its own memory with a capacity, several streams and events, faults on
// demand. It runs work on the host, later and in the most hostile order that streams and events
// allow, and reports races. It is the test bed for streams, events and errors.
//
// - Memory: allocate() fills memory with a pattern (NaNs), so that a read of unwritten memory
//   shows. Copies from the host read their bytes at once; copies to the host are complete after
//   wait().
// - Order: with an even seed nothing runs before wait() or is_done(), with an odd one some work
//   runs immediately. The seed chooses the next stream among those that can go on: at random, or
//   one is starved as long as another can run; the tasks of a launch run in two shuffled parts.
//   Callbacks are made at the end of the device function that made them due.
// - Races: accesses carry vector clocks (by stream). Two accesses of overlapping bytes, at least
//   one of them a write, that are not ordered are an error of wait(), whatever order they ran in.
//   Launches without `accesses` are not checked.
// - Faults: see VirtualFaults. After a fault that is not one of memory or of a single stream, all
//   functions fail until the device is destroyed; memory, streams and events can still be released.
// - Leaks: memory, streams or events that were not released when the device is destroyed are a
//   failed check.
//
// Thread-safe: one lock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/device.h"

namespace heddle::runtime {

// Each fault hits the n-th of what the comment names, counted from 1; 0: never.
struct VirtualFaults {
  int64_t no_memory_at = 0;   // allocation
  int64_t lost_event_at = 0;  // recorded event: never happens
  int64_t lost_at = 0;        // launch or copy: from there on the device is lost
  int64_t slow_stream = 0;    // stream (1: created first): runs only when no other can
  int64_t lost_stream = 0;    // stream: refuses all work
  bool operator==(const VirtualFaults&) const = default;
};

struct VirtualOptions {
  std::string name = "virtual";
  int64_t capacity_bytes = int64_t{1} << 40;
  int64_t streams = 4;  // most that can be created
  int64_t workers = 2;  // scratch areas, chosen at random
  uint64_t seed = 0;
  VirtualFaults faults;
};

// "NAME,capacity=1048576,streams=2,seed=7,no-memory=3,lost-event=1,lost=9,slow=1,lost-stream=2":
// the name first, then any of the others in any order. Error (user): an unknown key, a value that
// is not a number.
Result<VirtualOptions> parse_virtual(std::string_view text);

struct VirtualCounts {
  int64_t launches = 0, copies = 0, records = 0, waits = 0;  // waits: of streams for events
  int64_t allocations = 0, used_bytes = 0, peak_bytes = 0;
  int64_t live_streams = 0, live_events = 0;
  int64_t races = 0, calls = 0;  // calls: requested by call_on()
};

class VirtualDevice {
 public:
  explicit VirtualDevice(VirtualOptions options = {});
  ~VirtualDevice();
  VirtualDevice(const VirtualDevice&) = delete;
  const Device& device() const { return *device_; }
  VirtualCounts counts() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::unique_ptr<Device> device_;
};

}  // namespace heddle::runtime
