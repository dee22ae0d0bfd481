// Branches of a recording: independent commands are put on different streams while they are
// recorded, so that a replay may run them concurrently (program/streams.h chooses them).
#pragma once

#include <memory>
#include <vector>

#include "program/program.h"
#include "program/streams.h"
#include "runtime/device.h"

namespace heddle::runtime {

// Used by one command list. The functions that return bool (false: the device failed) are called
// while the device records, for the commands [first, end) of one recording, in the order of their
// declarations.
class Branches {
 public:
  // For the program's run section. Null: one branch is as good, or the device has too few streams.
  static std::unique_ptr<Branches> make(const Device& device, const program::Program& program);
  ~Branches();
  Branches(const Branches&) = delete;

  // Whether the commands use more than one branch. False if one of them must run alone (a loop, a
  // branch, a command of the host).
  bool divide(size_t first, size_t end) const;

  bool fork(size_t first, size_t end);
  // Called before and after the launches and copies of each command.
  bool begin(size_t command, size_t first);
  heddle_hal_stream* stream(size_t command) const { return streams_[of(command)]; }
  bool end(size_t command);
  // Work that is recorded next waits for all branches.
  bool join(size_t first, size_t end);

 private:
  Branches(const Device& device, program::StreamPlan plan);
  bool take();
  size_t of(size_t command) const { return static_cast<size_t>(plan_.stream[command]); }
  std::vector<bool> used(size_t first, size_t end) const;
  bool record(heddle_hal_stream* stream, heddle_hal_event* event) const;
  bool wait(heddle_hal_stream* stream, heddle_hal_event* event) const;

  Device device_;
  program::StreamPlan plan_;
  std::vector<heddle_hal_stream*> streams_;
  std::vector<heddle_hal_event*> events_;  // by command; null: nothing waits for it
  std::vector<heddle_hal_event*> ends_;    // by stream
  heddle_hal_event* begin_ = nullptr;
};

}  // namespace heddle::runtime
