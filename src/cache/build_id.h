// What build this is: part of every cache key and of every saved program, so that code of an older
// compiler is never taken for code of this one.
#pragma once

#include <string>

namespace heddle::cache {

// Hex digits that change whenever the executable or shared library changes that holds `address` (a
// function, for one): the linker's build id, or else a hash of the file. Empty if neither is found.
std::string build_id(const void* address);
// The same of a file that is not loaded (libheddle-llvm.so, which a cache hit must not map). Empty
// if it cannot be read.
std::string file_build_id(const std::string& path);

}  // namespace heddle::cache
