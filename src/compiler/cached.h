// compile() through the cache of compiled code: what a module becomes is kept without the module's
// weights, so an entry is small. Weights count by their content (weight_hashes.h).
#pragma once

#include <memory>

#include "compiler/compiler.h"

namespace heddle::compiler {

// As compile(). Of several processes that ask for the same at once one compiles. A hit leaves the
// report without decisions: who explains compiles.
Result<program::Program> compile_cached(std::unique_ptr<hlo::Module> module,
                                        const plan::Names& names, const target::Target& target,
                                        const Options& options, Report* report);

}  // namespace heddle::compiler
