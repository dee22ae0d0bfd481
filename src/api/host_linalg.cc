// Matrices are row-major: inner loops run along rows. Every sum uses kSums partial sums on all
// processors, so that the vector width does not change the bits.
#include "api/host_linalg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace heddle::api {
namespace {

using hlo::Instr;
using runtime::HostArgument;
using runtime::HostResult;
using tensor::Shape;
using tensor::Type;

// Inner loops are compiled for several instruction sets; one is chosen at program start.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define HEDDLE_VECTORS __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#else
#define HEDDLE_VECTORS
#endif

constexpr int64_t kSums = 16, kRows = 4, kColumns = 512;

// The dot product of a and b.
#define HEDDLE_DEFINE_LOOPS(T)                                                             \
  HEDDLE_VECTORS T product(const T* a, const T* b, int64_t n) {                            \
    T part[kSums] = {};                                                                    \
    int64_t k = 0;                                                                         \
    for (; k + kSums <= n; k += kSums)                                                     \
      for (int64_t i = 0; i < kSums; ++i) part[i] += a[k + i] * b[k + i];                  \
    for (int64_t i = 0; k + i < n; ++i) part[i] += a[k + i] * b[k + i];                    \
    for (int64_t half = kSums / 2; half > 0; half /= 2)                                    \
      for (int64_t i = 0; i < half; ++i) part[i] += part[i + half];                        \
    return part[0];                                                                        \
  }                                                                                        \
  /* y -= the sum of `count` (at most kRows) rows x, `step` apart, times their factors. */ \
  HEDDLE_VECTORS void subtract_rows(T* y, const T* x, int64_t step, const T* factors,      \
                                    int64_t count, int64_t n) {                            \
    if (count == kRows) {                                                                  \
      for (int64_t i = 0; i < n; ++i)                                                      \
        y[i] = (((y[i] - factors[0] * x[i]) - factors[1] * x[step + i]) -                  \
                factors[2] * x[2 * step + i]) -                                            \
               factors[3] * x[3 * step + i];                                               \
      return;                                                                              \
    }                                                                                      \
    for (int64_t r = 0; r < count; ++r)                                                    \
      for (int64_t i = 0; i < n; ++i) y[i] -= factors[r] * x[r * step + i];                \
  }
HEDDLE_DEFINE_LOOPS(float)
HEDDLE_DEFINE_LOOPS(double)
#undef HEDDLE_DEFINE_LOOPS

// a = u^T u in place, from the upper triangle; zeros below. All NaN if a is not positive definite.
template <typename T>
void factor(T* a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    T* row = a + i * n;
    for (int64_t k = 0; k < i; k += kRows) {
      const int64_t count = std::min(kRows, i - k);
      std::array<T, kRows> factors{};
      for (int64_t r = 0; r < count; ++r) factors[static_cast<size_t>(r)] = a[(k + r) * n + i];
      subtract_rows(row + i, a + k * n + i, n, factors.data(), count, n - i);
    }
    if (!(row[i] > 0)) {
      std::fill_n(a, n * n, std::numeric_limits<T>::quiet_NaN());
      return;
    }
    const T root = std::sqrt(row[i]);
    for (int64_t j = i; j < n; ++j) row[j] /= root;
    row[i] = root;
  }
  for (int64_t i = 1; i < n; ++i) std::fill_n(a + i * n, i, T(0));
}

template <typename T>
void transpose(const T* from, int64_t rows, int64_t columns, T* to) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) to[j * rows + i] = from[i * columns + j];
}

// Solves t x = b in place, where triangle t is `a`, or a transposed.
struct Triangle {
  int64_t n = 0;
  bool lower = false, transposed = false, unit = false;
};

// x: n rows of length `m`.
template <typename T>
void solve(const Triangle& t, const T* a, T* x, int64_t m) {
  const auto at = [&](int64_t i, int64_t j) {
    return t.transposed ? a[j * t.n + i] : a[i * t.n + j];
  };
  for (int64_t begin = 0; begin < m; begin += kColumns) {
    const int64_t width = std::min(kColumns, m - begin);
    for (int64_t r = 0; r < t.n; ++r) {
      const int64_t i = t.lower ? r : t.n - 1 - r;
      T* row = x + i * m + begin;
      const int64_t first = t.lower ? 0 : i + 1;  // first known row
      for (int64_t j = first; j < first + r; j += kRows) {
        const int64_t count = std::min(kRows, first + r - j);
        std::array<T, kRows> factors{};
        for (int64_t k = 0; k < count; ++k) factors[static_cast<size_t>(k)] = at(i, j + k);
        subtract_rows(row, x + j * m + begin, m, factors.data(), count, width);
      }
      if (t.unit) continue;
      for (int64_t c = 0; c < width; ++c) row[c] /= at(i, i);
    }
  }
}

// The same for one column: sums along the rows of a.
template <typename T>
void solve_column(const Triangle& t, const T* a, T* x) {
  for (int64_t r = 0; r < t.n; ++r) {
    const int64_t i = t.lower ? r : t.n - 1 - r;
    const int64_t first = t.lower ? 0 : i + 1;
    if (!t.transposed) x[i] -= product(a + i * t.n + first, x + first, r);
    if (!t.unit) x[i] /= a[i * t.n + i];
    if (!t.transposed) continue;
    const int64_t next = t.lower ? i + 1 : 0;
    subtract_rows(x + next, a + i * t.n + next, 0, x + i, 1, t.n - 1 - r);
  }
}

template <typename T>
void solve_matrix(const Triangle& t, bool left, const T* a, T* x, int64_t others,
                  std::vector<T>* turned) {
  if (others == 1) return solve_column(t, a, x);
  if (left) return solve(t, a, x, others);
  turned->resize(static_cast<size_t>(t.n * others));
  transpose(x, others, t.n, turned->data());
  solve(t, a, turned->data(), others);
  transpose(turned->data(), t.n, others, x);
}

// Calls `function` with a value of the float type; false: another type.
template <typename Function>
bool with_float(Type type, const Function& function) {
  if (type == Type::f32) return function(float{}), true;
  if (type == Type::f64) return function(double{}), true;
  return false;
}

}  // namespace

std::optional<runtime::HostCallable> native_cholesky(const Instr& instr) {
  std::optional<runtime::HostCallable> call;
  const Shape& shape = instr.shape();
  const bool lower = instr.attrs_as<hlo::CholeskyAttrs>().lower;
  const int64_t n = shape.dim(-1), elems = shape.elems();
  if (elems == 0) return {};
  with_float(shape.type(), [&](auto zero) {
    using T = decltype(zero);
    call = [=](std::span<const HostArgument> arguments,
               std::span<const HostResult> results) -> Status {
      const auto* from = static_cast<const T*>(arguments[0].data);
      auto* to = static_cast<T*>(results[0].data);
      std::vector<T> turned(lower ? static_cast<size_t>(n * n) : 0);
      for (int64_t at = 0; at < elems; at += n * n) {
        if (lower) {  // a = l l^T, with l = u^T
          transpose(from + at, n, n, turned.data());
          factor(turned.data(), n);
          transpose(turned.data(), n, n, to + at);
        } else {
          std::memmove(to + at, from + at, static_cast<size_t>(n * n) * sizeof(T));
          factor(to + at, n);
        }
      }
      return {};
    };
  });
  return call;
}

std::optional<runtime::HostCallable> native_triangular_solve(const Instr& instr) {
  std::optional<runtime::HostCallable> call;
  const auto& attrs = instr.attrs_as<hlo::TriangularSolveAttrs>();
  using Transpose = hlo::TriangularSolveAttrs::Transpose;
  const Shape& shape = instr.shape();
  if (shape.elems() == 0 || instr.operand(0)->shape().type() != shape.type()) return {};
  // x op(a) = b is op(a)^T x^T = b^T.
  const bool left = attrs.left_side;
  const bool transposed = (attrs.transpose_a != Transpose::no_transpose) == left;
  const Triangle t{shape.dim(left ? -2 : -1), attrs.lower != transposed, transposed,
                   attrs.unit_diagonal};
  const int64_t others = shape.dim(left ? -1 : -2), elems = shape.elems();
  with_float(shape.type(), [&](auto zero) {
    using T = decltype(zero);
    call = [=](std::span<const HostArgument> arguments,
               std::span<const HostResult> results) -> Status {
      const auto* a = static_cast<const T*>(arguments[0].data);
      auto* x = static_cast<T*>(results[0].data);
      std::memmove(x, arguments[1].data, static_cast<size_t>(elems) * sizeof(T));
      std::vector<T> turned;
      for (int64_t at = 0; at < elems; at += t.n * others, a += t.n * t.n)
        solve_matrix(t, left, a, x + at, others, &turned);
      return {};
    };
  });
  return call;
}

}  // namespace heddle::api
