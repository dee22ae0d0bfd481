// Recordings of what a command list issues again and again with the same addresses: a device puts a
// whole stretch of commands on its stream in one call (hal.h), which on a GPU costs the host as
// much as one or two launches.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/device.h"

namespace heddle::runtime {

// Fewer commands are issued one by one: a recording of one costs as much as the command.
constexpr size_t kFewestRecorded = 2;

// Of one command list, and of one thread at a time.
class Recordings {
 public:
  explicit Recordings(const Device& device) : device_(device), on_(device.has_recordings()) {}
  ~Recordings() { clear(0); }
  Recordings(const Recordings&) = delete;

  // Whether the device records, and has never failed to.
  bool on() const { return on_; }
  // Forgets all; from here on there are so many stretches.
  void clear(size_t stretches);

  // Puts a stretch on the device that is about to be issued with these addresses. False: the caller
  // issues it one by one, as it does when the addresses are new. The second time `issue` is called
  // while the device records; it says whether all went well. Where recording fails, on() becomes
  // false.
  bool run(size_t stretch, std::span<void* const> addresses, const std::function<bool()>& issue);

 private:
  struct Kept {
    std::vector<void*> addresses;               // that it was issued with
    heddle_hal_recording* recording = nullptr;  // null: that was once
    int64_t used = 0;                           // when last; 0: never
  };
  struct Stretch {
    Kept kept[2];  // a loop exchanges its states between two memories
    int64_t made = 0, replays = 0;
  };
  bool record(Stretch& stretch, Kept& kept, const std::function<bool()>& issue);
  bool replay(Stretch& stretch, const Kept& kept);
  void drop(Kept& kept);

  Device device_;
  bool on_;
  int64_t now_ = 0;
  std::vector<Stretch> stretches_;
};

}  // namespace heddle::runtime
