#include "opt/passes.h"

namespace heddle::opt {

std::span<const pass::PassInfo> passes() {
  static const pass::PassInfo kRows[] = {
#define HEDDLE_PASS(name, required, rounds, summary) {#name, summary, name, required, rounds},
#include "opt/passes.def"
  };
  return kRows;
}

}  // namespace heddle::opt
