// Private to api: prepares library calls of programs, using the folder `library`.
#pragma once

#include "runtime/host.h"
#include "target/target.h"

namespace heddle::api {

// Prepares the calls of a program for `target`. Errors (user): the library is missing or does not
// support the call, with its code; an operation that does not match its arrays.
runtime::LibraryFunction library_function(const target::Target& target);

}  // namespace heddle::api
