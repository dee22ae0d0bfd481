// heddle's log as Python's.
#pragma once

#include <nanobind/nanobind.h>

namespace heddle::python {

// _core._set_log(most): what is kept for deliver_log, by the levels of heddle_info.h.
void define_log(nanobind::module_& module);

// Hands what has come to heddle._log.deliver. Messages come from any thread, some of which must not
// wait for the interpreter's lock; so they are kept until a call returns that has it. Quick where
// there are none; never throws.
void deliver_log();

// Delivers at the end of a scope, however it ends. The interpreter's lock is held then.
struct LogDelivery {
  LogDelivery() = default;
  ~LogDelivery() { deliver_log(); }
  LogDelivery(const LogDelivery&) = delete;
  LogDelivery& operator=(const LogDelivery&) = delete;
};

}  // namespace heddle::python
