#include "opt/passes.h"

namespace heddle::opt {

std::span<const pass::PassInfo> passes() {
  static const pass::PassInfo kRows[] = {
#define HEDDLE_PASS(name, required, summary) {#name, summary, name, required},
#include "opt/passes.def"
  };
  return kRows;
}

}  // namespace heddle::opt
