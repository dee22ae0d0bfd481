// Which operators are functions of one or two numbers with an error bound of their own.
#pragma once

#include "kernel/kernel.h"

namespace heddle::kernel {

// Written as a polynomial or as a call of a library; not an instruction of most processors.
bool is_math(Op op);

}  // namespace heddle::kernel
