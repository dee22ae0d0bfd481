// Functions against the C library in a wider type: the largest error in ulp over special values,
// random bit patterns and random numbers of ordinary size, for every target that runs here.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <set>

#include "emit/llvm/test_code.h"
#include "kernel/op_info.h"
#include "tensor/compare.h"

namespace heddle::emit {
namespace {

using kernel::Op;
using kernel::Space;
using tensor::Type;
using Reference = std::function<long double(long double, long double)>;

// Largest error in ulp of the results; `absolute`: errors below this do not count (_fast forms).
struct Row {
  Op op;
  double f32_ulp, f64_ulp;
  Reference reference;
  double absolute = 0;
  double low = -40, high = 40;  // ordinary arguments
  bool all_bits = true;         // arbitrary arguments too
};

#define HEDDLE_L(expression)                        \
  [](long double x, long double y) -> long double { \
    (void)y;                                        \
    return expression;                              \
  }

std::vector<Row> rows() {
  return {
      {Op::rsqrt, 1.5, 1.5, HEDDLE_L(1 / std::sqrt(x))},
      {Op::cbrt, 0.51, 1.5, HEDDLE_L(std::cbrt(x))},
      {Op::exp, 1, 1, HEDDLE_L(std::exp(x)), 0, -100, 100},
      {Op::expm1, 2, 2, HEDDLE_L(std::expm1(x)), 0, -5, 5},
      {Op::log, 1, 1, HEDDLE_L(std::log(x)), 0, 0, 4},
      {Op::log1p, 3, 3, HEDDLE_L(std::log1p(x)), 0, -1, 4},
      {Op::sin, 0.51, 1, HEDDLE_L(std::sin(x)), 0, -30, 30},
      {Op::cos, 0.51, 1, HEDDLE_L(std::cos(x)), 0, -30, 30},
      {Op::tan, 0.51, 2.5, HEDDLE_L(std::tan(x)), 0, -30, 30},
      {Op::asin, 0.51, 2.5, HEDDLE_L(std::asin(x)), 0, -1, 1},
      {Op::acos, 0.51, 2, HEDDLE_L(std::acos(x)), 0, -1, 1},
      {Op::sinh, 0.51, 4, HEDDLE_L(std::sinh(x)), 0, -5, 5},
      {Op::cosh, 0.51, 4, HEDDLE_L(std::cosh(x)), 0, -5, 5},
      {Op::tanh, 3, 3, HEDDLE_L(std::tanh(x)), 0, -10, 10},
      {Op::asinh, 0.51, 4, HEDDLE_L(std::asinh(x))},
      {Op::acosh, 0.51, 4, HEDDLE_L(std::acosh(x)), 0, 1, 5},
      {Op::atanh, 0.51, 4, HEDDLE_L(std::atanh(x)), 0, -1, 1},
      {Op::erf, 2.5, 2, HEDDLE_L(std::erf(x)), 0, -6, 6},
      {Op::erfc, 0.51, 8, HEDDLE_L(std::erfc(x)), 0, -6, 28},
      {Op::logistic, 2.5, 2.5, HEDDLE_L(1 / (1 + std::exp(-x)))},
      {Op::exp_fast, 70, 1, HEDDLE_L(std::exp(x)), 1e-37, -100, 0, false},
      {Op::tanh_fast, 1e9, 3, HEDDLE_L(std::tanh(x)), 3e-7, -10, 10},
      {Op::erf_fast, 1e9, 2, HEDDLE_L(std::erf(x)), 1e-6, -6, 6},
      {Op::logistic_fast, 70, 2.5, HEDDLE_L(1 / (1 + std::exp(-x))), 1e-37},
      {Op::pow, 0.51, 1.5, HEDDLE_L(std::pow(x, y)), 0, -5, 5},
      {Op::atan2, 0.51, 2.5, HEDDLE_L(std::atan2(x, y)), 0, -5, 5},
  };
}

kernel::Kernel one_op(Op op, Type type, int64_t count) {
  kernel::Kernel k;
  k.name = "f";
  kernel::BufferId x = k.add_buffer({"x", type, {count}});
  kernel::BufferId y = k.add_buffer({"y", type, {count}});
  kernel::BufferId z = k.add_buffer({"z", type, {count}, Space::global, kernel::Access::out});
  kernel::VarId i = k.add_var("i");
  kernel::ExprId a = k.load(x, {k.ref(i)}), b = k.load(y, {k.ref(i)});
  kernel::ExprId value = kernel::op_operands(op) == 2 ? k.binary(op, a, b) : k.unary(op, a);
  k.phases = {{{{{},
                 1,
                 {kernel::make_loop(kernel::LoopKind::vector, i, k.constant(count),
                                    {kernel::make_store(z, {k.ref(i)}, value)}, 16)}}}}};
  return k;
}

uint64_t next(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

template <typename T>
std::vector<T> arguments(const Row& row, size_t count, uint64_t seed) {
  constexpr T kInf = std::numeric_limits<T>::infinity();
  std::vector<T> result = {0,
                           T(-0.0),
                           1,
                           -1,
                           T(0.5),
                           T(-0.5),
                           2,
                           3,
                           -3,
                           kInf,
                           -kInf,
                           std::numeric_limits<T>::quiet_NaN(),
                           std::numeric_limits<T>::max(),
                           std::numeric_limits<T>::denorm_min(),
                           std::numeric_limits<T>::min(),
                           T(88.72),
                           T(88.73),
                           T(-87.4),
                           T(-103.9),
                           T(709.7),
                           T(-745),
                           T(1e6),
                           T(3.1415926535897931),
                           T(1.5707963267948966),
                           T(4e15),
                           T(9e15)};
  if (!row.all_bits) std::erase_if(result, [](T v) { return v > 0; });
  uint64_t state = seed;
  while (result.size() < count) {
    uint64_t bits = next(state);
    T value;
    double fraction = static_cast<double>(bits >> 11) * 0x1p-53;
    if (result.size() % 4 == 0 && row.all_bits) {
      std::memcpy(&value, &bits, sizeof(T));
    } else if (result.size() % 4 == 1) {  // small ones of all sizes
      value = static_cast<T>(row.low + (row.high - row.low) * std::pow(fraction, 8));
      if (bits & 1) value = static_cast<T>(std::pow(fraction, 20) * (row.low < 0 ? row.low : 1));
    } else {
      value = static_cast<T>(row.low + (row.high - row.low) * fraction);
    }
    if (!row.all_bits && value > 0) value = -value;
    result.push_back(value);
  }
  return result;
}

template <typename T>
double error_ulp(T got, long double want, double absolute) {
  T rounded = static_cast<T>(want);
  if (std::isnan(rounded) || std::isnan(got))
    return std::isnan(rounded) && std::isnan(got) ? 0 : 1e30;
  if (rounded == got) return 0;
  if (std::isinf(rounded) || std::isinf(got)) {
    // The largest finite number and infinity are neighbours.
    return tensor::ulp_distance(sizeof(T) == 4 ? Type::f32 : Type::f64, got, rounded);
  }
  long double off = std::fabs(static_cast<long double>(got) - want);
  if (off <= absolute) return 0;
  int exponent = std::max(std::ilogb(want), std::numeric_limits<T>::min_exponent - 1);
  return static_cast<double>(off /
                             std::ldexp(1.0L, exponent - (std::numeric_limits<T>::digits - 1)));
}

template <typename T>
void check(const Row& row, const target::Target& target, int64_t count) {
  constexpr Type kType = sizeof(T) == 4 ? Type::f32 : Type::f64;
  kernel::Kernel k = one_op(row.op, kType, count);
  auto code = TestCode::make(k, target);
  ASSERT_TRUE(code.has_value()) << code.error().message;
  std::vector<T> x = arguments<T>(row, static_cast<size_t>(count), 1), y = x, z(x.size());
  if (kernel::op_operands(row.op) == 2) {
    y = arguments<T>(row, static_cast<size_t>(count), 7);
    for (size_t i = 0; i < 676; ++i) {  // all pairs of the special ones
      x.push_back(x[i / 26]);
      y.push_back(y[i % 26]);
    }
    x.erase(x.begin(), x.begin() + 676);
    y.erase(y.begin(), y.begin() + 676);
  }
  (*code)->run({x.data(), y.data(), z.data()}, {});
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    double error = error_ulp(z[i], row.reference(x[i], y[i]), sizeof(T) == 4 ? row.absolute : 0);
    if (error > worst) {
      worst = error;
      at = i;
    }
  }
  if (std::getenv("HEDDLE_SHOW_ULP")) {
    std::printf("%-14s %s %-9s %.3g ulp at %.17g %.17g\n",
                std::string(kernel::op_text(row.op)).c_str(), sizeof(T) == 4 ? "f32" : "f64",
                target.name.c_str(), worst, static_cast<double>(x[at]), static_cast<double>(y[at]));
  }
  EXPECT_LE(worst, sizeof(T) == 4 ? row.f32_ulp : row.f64_ulp)
      << kernel::op_text(row.op) << " of " << tensor::type_name(kType) << " on " << target.name
      << ": at " << double{x[at]} << ", " << double{y[at]} << " got " << double{z[at]} << ", want "
      << static_cast<double>(row.reference(x[at], y[at]));
}

TEST(Math, EveryFunctionHasABound) {
  std::set<Op> bounded;
  for (const Row& row : rows()) bounded.insert(row.op);
  for (Op op : {
#define HEDDLE_KERNEL_OP(name, ...) Op::name,
#include "kernel/ops.def"
       })
    EXPECT_EQ(kernel::is_math(op), bounded.contains(op)) << kernel::op_text(op);
}

TEST(Math, ErrorsStayBelowTheirBounds) {
  report_missing_targets();
  const char* text = std::getenv("HEDDLE_MATH_COUNT");
  int64_t count = text ? std::atoll(text) : 8000;
  for (const target::Target& target : runnable_targets()) {
    if (target.name == "spr") continue;  // no other code than for icelake
    for (const Row& row : rows()) {
      check<float>(row, target, count);
      check<double>(row, target, count);
    }
  }
}

// Subnormal results would slow down every product that they go into.
TEST(Math, FastExponentialsAreZeroOrNormal) {
  report_missing_targets();
  constexpr int64_t kCount = 4096;
  std::vector<float> x, z(kCount);
  for (int64_t i = 0; i < kCount; ++i) x.push_back(-80.0F - 30.0F * static_cast<float>(i) / kCount);
  const kernel::Kernel k = one_op(Op::exp_fast, Type::f32, kCount);
  for (const target::Target& target : runnable_targets()) {
    auto code = TestCode::make(k, target);
    ASSERT_TRUE(code.has_value()) << code.error().message;
    (*code)->run({x.data(), x.data(), z.data()}, {});
    int64_t zeros = 0;
    for (size_t i = 0; i < z.size(); ++i) {
      ASSERT_TRUE(z[i] == 0 || z[i] >= std::numeric_limits<float>::min())
          << target.name << ": exp_fast(" << x[i] << ") = " << z[i];
      zeros += z[i] == 0 ? 1 : 0;
    }
    EXPECT_GT(zeros, 0);
    EXPECT_LT(zeros, kCount * 9 / 10);
  }
}

}  // namespace
}  // namespace heddle::emit
