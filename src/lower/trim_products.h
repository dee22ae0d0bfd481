// Private to trim: products that are added up for numbers behind the extent (trim.h).
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/kernel.h"

namespace heddle::lower::trimming {

// Behind the extent are numbers that windows over the result see. They are zeros, for which a mask
// sees (opt/mask_padding), whatever is computed there: no products are added up in the body of a
// loop where `there`, the numbers from those of its variable on, is not above zero.
void leave_out_products(kernel::Kernel* kernel, kernel::ExprId there,
                        std::vector<kernel::Stmt>* body);
// The body of such numbers alone: without loops that add up products.
std::vector<kernel::Stmt> without_products(const kernel::Kernel& kernel,
                                           std::vector<kernel::Stmt> body);

}  // namespace heddle::lower::trimming
