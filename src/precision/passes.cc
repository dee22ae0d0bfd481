#include "precision/passes.h"

namespace heddle::precision {

std::span<const pass::PassInfo> passes() {
  static const pass::PassInfo kRows[] = {
#define HEDDLE_PASS(name, required, rounds, summary) {#name, summary, name, required, rounds},
#include "precision/passes.def"
  };
  return kRows;
}

}  // namespace heddle::precision
