// Errors on their way to Python.
#pragma once

#include <string>

#include "heddle.h"

namespace heddle::python {

// Becomes an exception of that class in heddle/errors.py.
struct Failure {
  const char* kind;
  std::string message;
};

[[noreturn]] void fail(const char* kind, std::string message);
// Throws the status, which is then freed. NULL: nothing.
void check(heddle_status* status);
// An exception of Python's that is already set is thrown on.
void check_python(bool ok);
void register_failures();

}  // namespace heddle::python
