// Private to trim: loops that run over a dynamic dimension and others around it in one, and how
// wide loops are.
#pragma once

#include <vector>

#include "kernel/kernel.h"
#include "lower/trim.h"

namespace heddle::lower::trimming {

// A loop over the rows of all sequences becomes a loop over the sequences and one over the rows of
// one: each stops at its own extent then, or runs on where there is none.
void split_loops(kernel::Kernel* kernel, const TrimRequest& request);

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
