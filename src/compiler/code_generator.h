// The CPU code generator as the compiler sees it: kernel texts in, an object out. The LLVM library
// is opened on the first miss of the object cache, never before (docs/architecture.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "compiler/compile_options.h"
#include "target/target.h"

namespace heddle::compiler {

// No cache if its folder in the options is empty. The kernels are compiled in parts by up to
// `compile_threads` threads; the bytes (objects in a row, as the loader takes them) do not depend
// on how many. At O0 and O1 LLVM spends less time, and the code is slower. With a dump folder,
// which must exist, all are compiled, and each is also written as LLVM's text, assembly and object
// (emit/llvm/emit.h). Error kinds: machine (the library is missing or fails); cancelled, if
// `progress` returns false.
Result<std::vector<uint8_t>> generate_object(const std::vector<std::string>& kernels,
                                             const target::Target& target, const Options& options);

// The build ids of this binary, which generates the kernels, and of the library that would compile
// them; the library is not loaded.
std::string code_generator_build_id();

}  // namespace heddle::compiler
