// Identifies the build of the compiler: part of every cache key and of every saved program, so that
// code of an older compiler is never mistaken for code of this one.
#pragma once

#include <string>

namespace heddle::cache {

// Hex digits that change whenever the executable or shared library that contains `address` (such as
// a function's) changes: the linker's build id, or else a hash of the file. Empty if neither is
// found.
std::string build_id(const void* address);
// The same for a file that is not loaded (libheddle-llvm.so, which a cache hit must not map). Empty
// if it cannot be read.
std::string file_build_id(const std::string& path);

}  // namespace heddle::cache
