// The independent checker that always runs after planning and after loading: ids in range, views
// inside their buffers, sizes equal to what kernels and copies need, temporaries that are live at
// once do not overlap, reads only of what was written, phases exist, once before use.
#pragma once

#include "base/error.h"
#include "program/program.h"

namespace heddle::program {

Status verify(const Program& program);

}  // namespace heddle::program
