// Private to trim: loops over steps of several parts that are written out, as vectors of a sum or
// steps of k, of which the last step has fewer.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/kernel.h"

namespace heddle::lower::trimming {

// Of the widest vector loop; 1: there is none.
int64_t most_lanes(const kernel::Kernel& kernel);

// Whether the expression has the variable in it.
bool mentions(const kernel::Kernel& kernel, kernel::ExprId id, kernel::VarId var);
// Whether the variable tells which register is meant: it must be a number then.
bool numbers_registers(const kernel::Kernel& kernel, const std::vector<kernel::Stmt>& body,
                       kernel::VarId var);

// A loop over steps, whose body is a loop that writes the parts of a step out, `each` of so many
// numbers: `whole` steps, then the parts that hold the `rest` of the numbers.
std::vector<kernel::Stmt> in_parts(kernel::Kernel* kernel, kernel::Stmt loop, kernel::ExprId whole,
                                   kernel::ExprId rest, int64_t each);

}  // namespace heddle::lower::trimming
