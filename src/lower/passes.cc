#include "lower/passes.h"

namespace heddle::lower {

std::span<const KernelPass> kernel_passes() {
  static const KernelPass kRows[] = {
#define HEDDLE_KERNEL_PASS(name, required, summary) {#name, summary, name, required},
#include "lower/passes.def"
  };
  return kRows;
}

}  // namespace heddle::lower
