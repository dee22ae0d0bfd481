// compile() through the cache of compiled code: what a module becomes is kept without the module's
// weights, so an entry is small. Weights count by their content (weight_hashes.h).
//
// What a program makes of its weights once (packs them) is an entry of its own, which is mapped: a
// second start then neither reads the model's weights nor writes packed ones.
#pragma once

#include <memory>
#include <optional>

#include "cache/object_cache.h"
#include "compiler/compiler.h"

namespace heddle::compiler {

struct Cached {
  // Where its once section's results were found they are constants, and it has no such section.
  program::Program program;
  // Where they were not and are worth keeping: what to store them under when they are made.
  std::optional<cache::Key> once_key;
};

// As compile(). Of several processes that ask for the same at once one compiles. A hit leaves the
// report without decisions: who explains compiles.
Result<Cached> compile_cached(std::unique_ptr<hlo::Module> module, const plan::Names& names,
                              const target::Target& target, const Options& options, Report* report);
// `once_block`: as of runtime::Executable::once_results(). A cache that cannot be written only
// costs time.
void store_once(const Options& options, const cache::Key& key, const tensor::Literal& once_block);

}  // namespace heddle::compiler
