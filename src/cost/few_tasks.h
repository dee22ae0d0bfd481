// Whether there are too few tasks for the processor's cores, although there is work to share.
#pragma once

#include <cstdint>

#include "target/target.h"

namespace heddle::cost {

// Elements that one core computes in about the time that handing out tasks takes.
inline constexpr int64_t kFewElems = 32768;

// `elems`: of the largest stage, results times reduced elements.
inline bool leaves_cores_idle(int64_t tasks, int64_t elems, const target::Target& target) {
  return tasks < 2 * target.cores && elems > kFewElems;
}

}  // namespace heddle::cost
