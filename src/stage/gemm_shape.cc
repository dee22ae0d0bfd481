#include "stage/gemm_shape.h"

namespace heddle::stage {

const Window* GemmShape::window_of(int out) const {
  for (const Window& window : windows)
    if (window.out == out) return &window;
  return nullptr;
}

const Window* GemmShape::window_over(int over) const {
  for (const Window& window : windows)
    if (window.k == over) return &window;
  return nullptr;
}

}  // namespace heddle::stage
