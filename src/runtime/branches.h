// Branches of a recording: commands that do not depend on one another are on streams of their own
// while they are recorded, so that a replay may run them side by side (program/streams.h says
// which).
#pragma once

#include <memory>
#include <vector>

#include "program/program.h"
#include "program/streams.h"
#include "runtime/device.h"

namespace heddle::runtime {

// Of one command list. The functions that say whether all went well are called while the device
// records, for the commands [first, end) of one recording, in the order in which they stand here.
class Branches {
 public:
  // Of the program's run. Null: one branch is as good, or the device has no streams for them.
  static std::unique_ptr<Branches> make(const Device& device, const program::Program& program);
  ~Branches();
  Branches(const Branches&) = delete;

  // Whether they are on more than one branch. None of them may be a loop, a branch or what else
  // stands alone.
  bool divide(size_t first, size_t end) const;

  bool fork(size_t first, size_t end);
  // Before and behind the launches and copies of each.
  bool begin(size_t command, size_t first);
  heddle_hal_stream* stream(size_t command) const { return streams_[of(command)]; }
  bool end(size_t command);
  // What is recorded next is behind all of them.
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
