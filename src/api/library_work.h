// Private to api: library calls of programs, by the folder `library`.
#pragma once

#include "runtime/host.h"
#include "target/target.h"

namespace heddle::api {

// Makes the calls of a program for `target` ready. Errors (user): the library is not here or cannot
// do it, by its code; an operation that does not fit its arrays.
runtime::LibraryFunction library_function(const target::Target& target);

}  // namespace heddle::api
