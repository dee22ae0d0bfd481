// Expands tables of kernels into groups of tasks, as the interpreter runs them, for reading.
#include "kernel/expand.h"

#include "lower/passes.h"

namespace heddle::lower {

Result<bool> expand(kernel::Kernel& kernel, const Context& context) {
  if (kernel.inner.empty()) return false;
  kernel = kernel::expand_tables(kernel);
  return true;
}

}  // namespace heddle::lower
