// The `virtual` device: memory of its own with a capacity, several streams and events, faults on
// demand. It runs what it is given on the host, later and in the most hostile order that streams
// and events allow, and reports races. It is the test bed of streams, events and errors.
//
// - Memory: what allocate() gives is filled with a pattern (NaNs), so that a read of what nobody
//   wrote shows. Copies from the host take their bytes at once; copies to the host are there after
//   wait().
// - Order: by seeds that are even nothing runs before wait() or is_done(), by odd ones now and then
//   some of it at once. Again and again one stream of those that can go on is chosen by the seed:
//   at random, or one is starved as long as another can run, and the tasks of a launch run in two
//   shuffled parts. Calls back come from within the function that found them due.
// - Races: every access has a vector clock (by streams). Two accesses of overlapping bytes, at
//   least one of them writing, of which none happens before the other are an error of wait(), in
//   whatever order they ran. Launches whose accesses are not told are not checked.
// - Faults: see VirtualFaults. After one that is not about memory, nor a single stream's, all
//   functions fail until the device is gone: what it was asked for can still be released.
// - Leaks: memory, streams or events that were not given back when it is destroyed are a failed
//   check.
//
// Thread-safe: one lock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/device.h"

namespace heddle::runtime {

// By number, from 1, of what is counted; 0: never.
struct VirtualFaults {
  int64_t no_memory_at = 0;   // allocation
  int64_t lost_event_at = 0;  // recorded event: nobody sees it happen
  int64_t lost_at = 0;        // launch or copy: the device is gone from there on
  int64_t slow_stream = 0;    // stream (1 is the first that was made): runs only when no other can
  int64_t lost_stream = 0;    // stream: it takes nothing
  bool operator==(const VirtualFaults&) const = default;
};

struct VirtualOptions {
  std::string name = "virtual";
  int64_t capacity_bytes = int64_t{1} << 40;
  int64_t streams = 4;  // most that can be made
  int64_t workers = 2;  // copies of scratch, used in turn
  uint64_t seed = 0;
  VirtualFaults faults;
};

// "NAME,capacity=1048576,streams=2,seed=7,no-memory=3,lost-event=1,lost=9,slow=1,lost-stream=2":
// the name as it is, the others left out or in any order. Error (user): an unknown key, what is no
// number.
Result<VirtualOptions> parse_virtual(std::string_view text);

struct VirtualCounts {
  int64_t launches = 0, copies = 0, records = 0, waits = 0;  // waits: of streams for events
  int64_t allocations = 0, used_bytes = 0, peak_bytes = 0;
  int64_t live_streams = 0, live_events = 0;
  int64_t races = 0, calls = 0;  // calls: asked for by call_on()
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
