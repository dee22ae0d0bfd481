// The independent checker, which always runs after planning and after loading: ids in range, views
// inside their buffers, sizes as kernels and copies need them, temporaries that are live at the
// same time do not overlap, reads only of written memory, phases exist, once buffers before use.
#pragma once

#include "base/error.h"
#include "program/program.h"

namespace heddle::program {

Status verify(const Program& program);

}  // namespace heddle::program
