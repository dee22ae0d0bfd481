// Recordings of stretches of a command list that are issued repeatedly with the same addresses: one
// call puts a whole stretch on the device's stream (hal.h), which on a GPU costs the host as much
// as one or two launches.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/device.h"

namespace heddle::runtime {

// Shorter stretches are issued one by one: replaying one command costs as much as issuing it.
constexpr size_t kFewestRecorded = 2;

// For one command list; used by one thread at a time.
class Recordings {
 public:
  explicit Recordings(const Device& device) : device_(device), on_(device.has_recordings()) {}
  ~Recordings() { clear(0); }
  Recordings(const Recordings&) = delete;

  // Whether the device can record and no recording or replay has failed.
  bool on() const { return on_; }
  // Drops all recordings; from now on there are so many stretches.
  void clear(size_t stretches);

  // Runs a stretch with these addresses. False: the caller must issue it one by one; so it is when
  // the addresses are new. The second time `issue` is called while the device records; it returns
  // whether everything could be issued. If recording fails, on() becomes false.
  bool run(size_t stretch, std::span<void* const> addresses, const std::function<bool()>& issue);

 private:
  struct Kept {
    std::vector<void*> addresses;               // of the stretch when it was issued
    heddle_hal_recording* recording = nullptr;  // null: issued only once so far
    int64_t used = 0;                           // time of last use; 0: never
  };
  struct Stretch {
    Kept kept[2];  // two: a loop swaps its states between two buffers
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
