// Checks every invariant of kernel.h, by number; the error has all violations, one line each.
#pragma once

#include "base/error.h"
#include "kernel/kernel.h"

namespace heddle::kernel {

Status verify(const Kernel& kernel);

}  // namespace heddle::kernel
