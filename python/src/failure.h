// Errors on their way to Python.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "heddle.h"

namespace heddle::python {

// Becomes an exception of that class in heddle/errors.py.
struct Failure {
  const char* kind;
  std::string message;
  // What a model has and heddle lacks, for UnsupportedOperators.unsupported: members of
  // heddle_unsupported by name, texts and numbers.
  using Fault = std::pair<std::vector<std::pair<const char*, std::string>>,
                          std::vector<std::pair<const char*, int64_t>>>;
  std::vector<Fault> unsupported = {};
};

[[noreturn]] void fail(const char* kind, std::string message);
// Throws the status, which is then freed. NULL: nothing.
void check(heddle_status* status);
// An exception of Python's that is already set is thrown on.
void check_python(bool ok);
void register_failures();

}  // namespace heddle::python
