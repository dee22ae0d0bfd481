// Private to api: stores prepared weights that are equal in several programs of a model's buckets
// only once.
#pragma once

#include <map>

#include "base/error.h"
#include "base/hash.h"
#include "program/program.h"
#include "runtime/device.h"

namespace heddle::api {

// Owns the weights. Callers must take turns.
class SharedWeights {
 public:
  // Constants of `program` in `block` (u8, of `device`) are replaced by known ones with equal
  // contents; the others become known. If any was replaced, the program no longer refers to
  // `block`. Errors: no memory.
  Status share(program::Program& program, const tensor::Literal& block,
               const runtime::Device& device, int threads);
  // Existing programs keep their weights; later ones share nothing with them.
  void forget() { known_.clear(); }

 private:
  std::map<Hash128, tensor::Literal> known_;
};

}  // namespace heddle::api
