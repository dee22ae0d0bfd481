#include "stage/gemm_shape.h"

namespace heddle::stage {

index::Expr in_words(const index::Expr& at, int k, int64_t word,
                     const std::vector<int64_t>& extents, int64_t part) {
  std::vector<index::Expr> digits;
  for (size_t d = 0; d < extents.size(); ++d)
    digits.push_back(index::Expr::digit(static_cast<int>(d)));
  index::Expr& words = digits[static_cast<size_t>(k)];
  words = words * word + index::Expr(part);
  return substitute(at, digits, extents);
}

index::Expr in_words(const index::Expr& at, const GemmShape& shape, int64_t word,
                     const std::vector<int64_t>& extents, int64_t part) {
  return in_words(at, shape.k.back(), word, extents, part);
}

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
