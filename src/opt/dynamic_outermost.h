// Rows of a whole batch as one product: where each of a batch's sequences has a bounded number of
// rows, [batch, rows, features] is kept as [rows, batch, features] (and heads alike), so that those
// which are there are the first rows of one matrix.
#pragma once

#include "base/error.h"
#include "hlo/module.h"

namespace heddle::opt {

// Of the entry of a module with symbols (opt/mask_padding.h): what begins with looked-up rows, a
// float input or a transpose, and all that follows from there; transposes where it ends. Results
// are the same to the bit, but for products, whose kernels are others. True: something changed.
bool dynamic_outermost(hlo::Module* module);

}  // namespace heddle::opt
