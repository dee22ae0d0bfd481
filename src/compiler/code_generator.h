// The CPU code generator as the compiler sees it: kernel texts in, an object out. The LLVM library
// is opened on the first miss of the object cache, never before (DESIGN.md §3, emit).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "target/target.h"

namespace heddle::compiler {

// `cache_directory` empty: no cache. The kernels are compiled in parts by up to `threads` threads;
// the bytes (objects in a row, as the loader takes them) do not depend on how many. Error kinds:
// machine (the library is missing or refuses); cancelled, where `progress` (Options) says so.
Result<std::vector<uint8_t>> generate_object(const std::vector<std::string>& kernels,
                                             const target::Target& target,
                                             const std::string& cache_directory, int threads,
                                             const std::function<bool(const char*)>& progress = {});

// Of this binary, which writes the kernels, and of the library that would compile them; neither is
// opened for it.
std::string code_generator_build_id();

}  // namespace heddle::compiler
