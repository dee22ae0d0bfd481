// Ctrl-C while heddle works and Python's own handler has to wait.
#pragma once

#include "heddle.h"

namespace heddle::python {

// While one of these lives on the main thread, the signal also ends the run of `context` (NULL: of
// none) and is seen by asked(). On other threads, and where Python does not handle the signal,
// it does nothing.
class Interrupt {
 public:
  explicit Interrupt(heddle_context* context);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  static bool asked();
  bool was_asked() const;

 private:
  bool active_ = false;
};

}  // namespace heddle::python
