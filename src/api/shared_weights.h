// Private to api: prepared weights that the programs of a model's buckets have alike lie in memory
// once.
#pragma once

#include <map>

#include "base/error.h"
#include "base/hash.h"
#include "program/program.h"
#include "runtime/device.h"

namespace heddle::api {

// Keeps the weights. Thread-safe for callers that take turns.
class SharedWeights {
 public:
  // Constants of `program` that lie in `block` (u8, of `device`) become those of the same content
  // that are known, or else known; then nothing of the program refers to `block` if some were.
  // Errors: no memory.
  Status share(program::Program& program, const tensor::Literal& block,
               const runtime::Device& device, int threads);
  // What programs have stays as it is; later ones share nothing with them.
  void forget() { known_.clear(); }

 private:
  std::map<Hash128, tensor::Literal> known_;
};

}  // namespace heddle::api
