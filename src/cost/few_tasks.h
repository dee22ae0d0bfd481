// Whether tasks are too few for the processor's cores, while there is work that they could share.
#pragma once

#include <cstdint>

#include "target/target.h"

namespace heddle::cost {

// Elements that one core computes in about the time that it takes to hand tasks out.
inline constexpr int64_t kFewElems = 32768;

// `elems`: of the largest stage, results times reduced elements.
inline bool leaves_cores_idle(int64_t tasks, int64_t elems, const target::Target& target) {
  return tasks < 2 * target.cores && elems > kFewElems;
}

}  // namespace heddle::cost
