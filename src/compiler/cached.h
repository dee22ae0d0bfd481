// compile() through the cache of compiled code: programs are stored without the model's weights, so
// entries are small. Weights are in the key by their content (weight_hashes.h).
//
// The results of a program's once section (packed weights) are a separate entry, which is mapped: a
// second start then neither reads the model's weights nor writes packed ones.
#pragma once

#include <memory>
#include <optional>

#include "cache/object_cache.h"
#include "compiler/compiler.h"

namespace heddle::compiler {

struct Cached {
  // If the results of its once section were found, they are constants and the section is gone.
  program::Program program;
  // If they were not found and are worth keeping: the key to store them under.
  std::optional<cache::Key> once_key;
};

// As compile(). Of several processes that compile the same at a time one does, the others wait.
// After a hit the report has no decisions: to explain, call compile().
Result<Cached> compile_cached(std::unique_ptr<hlo::Module> module, const plan::Names& names,
                              const target::Target& target, const Options& options, Report* report);
// `once_block`: as returned by runtime::Executable::once_results(). A cache that cannot be written
// only costs time.
void store_once(const Options& options, const cache::Key& key, const tensor::Literal& once_block);

}  // namespace heddle::compiler
