// Private to the checker.
#pragma once

#include "base/error.h"
#include "program/program.h"

namespace heddle::program {

// What can be seen without playing the commands: buffers, kernels, ports, memory numbers.
Status verify_parts(const Program& program);

}  // namespace heddle::program
