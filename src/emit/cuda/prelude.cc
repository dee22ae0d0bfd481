#include "emit/cuda/prelude.h"

#include "base/check.h"

namespace heddle::emit::cuda {
namespace {

struct Function {
  const char* name;
  const char* text;
};

// clang-format off
constexpr Function kFunctions[] = {
    // Signed overflow is undefined in C++: sums and products are computed in the unsigned type.
    {"wrap_add",
     "__device__ int wrap_add(int a, int b) { return (int)((unsigned)a + (unsigned)b); }\n"
     "__device__ long long wrap_add(long long a, long long b) {\n"
     "  return (long long)((unsigned long long)a + (unsigned long long)b);\n}\n"},
    {"wrap_sub",
     "__device__ int wrap_sub(int a, int b) { return (int)((unsigned)a - (unsigned)b); }\n"
     "__device__ long long wrap_sub(long long a, long long b) {\n"
     "  return (long long)((unsigned long long)a - (unsigned long long)b);\n}\n"},
    {"wrap_mul",
     "__device__ int wrap_mul(int a, int b) { return (int)((unsigned)a * (unsigned)b); }\n"
     "__device__ long long wrap_mul(long long a, long long b) {\n"
     "  return (long long)((unsigned long long)a * (unsigned long long)b);\n}\n"},
    // NaN if either is NaN.
    {"max_nan",
     "__device__ float max_nan(float a, float b) {\n"
     "  float d;\n  asm(\"max.NaN.f32 %0, %1, %2;\" : \"=f\"(d) : \"f\"(a), \"f\"(b));\n  return d;\n}\n"
     "__device__ double max_nan(double a, double b) { return a != a ? a : b != b ? b : fmax(a, b); }\n"},
    {"min_nan",
     "__device__ float min_nan(float a, float b) {\n"
     "  float d;\n  asm(\"min.NaN.f32 %0, %1, %2;\" : \"=f\"(d) : \"f\"(a), \"f\"(b));\n  return d;\n}\n"
     "__device__ double min_nan(double a, double b) { return a != a ? a : b != b ? b : fmin(a, b); }\n"},
    {"sign_of",
     "__device__ float sign_of(float x) { return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x; }\n"
     "__device__ double sign_of(double x) { return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x; }\n"
     "__device__ int sign_of(int x) { return (x > 0) - (x < 0); }\n"
     "__device__ long long sign_of(long long x) { return (x > 0) - (x < 0); }\n"},
    // Division by zero: all ones; its remainder is the dividend. The least number by -1 is itself.
    {"int_div",
     "__device__ int int_div(int a, int b) { return b == 0 ? -1 : b == -1 ? (int)(0u - (unsigned)a) : a / b; }\n"
     "__device__ long long int_div(long long a, long long b) {\n"
     "  return b == 0 ? -1ll : b == -1 ? (long long)(0ull - (unsigned long long)a) : a / b;\n}\n"
     "__device__ unsigned int_div(unsigned a, unsigned b) { return b == 0 ? 0xffffffffu : a / b; }\n"
     "__device__ unsigned long long int_div(unsigned long long a, unsigned long long b) {\n"
     "  return b == 0 ? 0xffffffffffffffffull : a / b;\n}\n"},
    {"int_rem",
     "__device__ int int_rem(int a, int b) { return b == 0 ? a : b == -1 ? 0 : a % b; }\n"
     "__device__ long long int_rem(long long a, long long b) { return b == 0 ? a : b == -1 ? 0 : a % b; }\n"
     "__device__ unsigned int_rem(unsigned a, unsigned b) { return b == 0 ? a : a % b; }\n"
     "__device__ unsigned long long int_rem(unsigned long long a, unsigned long long b) {\n"
     "  return b == 0 ? a : a % b;\n}\n"},
    // The divisor is positive.
    {"floor_div",
     "template <typename T>\n__device__ T floor_div(T a, T b) { return a / b - (a % b < 0); }\n"},
    {"floor_mod",
     "template <typename T>\n__device__ T floor_mod(T a, T b) { return a % b < 0 ? a % b + b : a % b; }\n"},
    // Shifts by the width or more give 0, or the sign.
    {"shift_left",
     "__device__ unsigned shift_left(unsigned a, unsigned long long n, int width) { return n < width ? a << n : 0; }\n"
     "__device__ unsigned long long shift_left(unsigned long long a, unsigned long long n, int width) {\n"
     "  return n < width ? a << n : 0;\n}\n"},
    {"shift_right",
     "__device__ unsigned shift_right(unsigned a, unsigned long long n, int width) { return n < width ? a >> n : 0; }\n"
     "__device__ unsigned long long shift_right(unsigned long long a, unsigned long long n, int width) {\n"
     "  return n < width ? a >> n : 0;\n}\n"},
    {"shift_sign",
     "__device__ int shift_sign(int a, unsigned long long n, int width) { return a >> (n < width ? n : width - 1); }\n"
     "__device__ long long shift_sign(long long a, unsigned long long n, int width) {\n"
     "  return a >> (n < width ? n : width - 1);\n}\n"},
    // Towards zero, clamped to the type; NaN is 0.
    {"to_integer",
     "template <typename To, typename From>\n"
     "__device__ To to_integer(From x, From least, From beyond, To low, To high) {\n"
     "  return x != x ? (To)0 : x <= least ? low : x >= beyond ? high : (To)x;\n}\n"},
    {"from_half",
     "__device__ float from_half(unsigned short h) {\n"
     "  float f;\n  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(f) : \"h\"(h));\n  return f;\n}\n"},
    {"to_half",
     "__device__ unsigned short to_half(float f) {\n"
     "  unsigned short h;\n  asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(h) : \"f\"(f));\n  return h;\n}\n"
     "__device__ unsigned short to_half(double f) {\n"
     "  unsigned short h;\n  asm(\"cvt.rn.f16.f64 %0, %1;\" : \"=h\"(h) : \"d\"(f));\n  return h;\n}\n"},
    {"from_bfloat",
     "__device__ float from_bfloat(unsigned short b) { return __uint_as_float((unsigned)b << 16); }\n"},
    {"to_bfloat",
     "__device__ unsigned short to_bfloat(float f) {\n"
     "  const unsigned bits = __float_as_uint(f);\n"
     "  if (f != f) return (unsigned short)(bits >> 16 | 0x40);\n"
     "  return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);\n}\n"
     // The first step rounds to an odd last bit, so that the second one rounds correctly.
     "__device__ unsigned short to_bfloat(double d) {\n"
     "  const float f = __double2float_rz(d);\n"
     "  if (d != d || (double)f == d) return to_bfloat(f);\n"
     "  return to_bfloat(__uint_as_float(__float_as_uint(f) | 1));\n}\n"},
    // Adjacent elements that are loaded or stored at once.
    {"Pack",
     "template <typename T, int N>\nstruct alignas(sizeof(T) * N) Pack {\n  T x[N];\n};\n"},
    // Four to sixteen bytes from global memory to scratch, visible after the wait for them.
    {"copy_async",
     "template <int Bytes>\n__device__ void copy_async(void* to, const void* from) {\n"
     "  const unsigned at = (unsigned)__cvta_generic_to_shared(to);\n"
     "  asm volatile(\"cp.async.ca.shared.global [%0], [%1], %2;\" : : \"r\"(at), \"l\"(from), \"n\"(Bytes) : \"memory\");\n}\n"},
    {"wait_async",
     "template <int Pending>\n__device__ void wait_async() {\n"
     "  asm volatile(\"cp.async.commit_group;\" : : : \"memory\");\n"
     "  asm volatile(\"cp.async.wait_group %0;\" : : \"n\"(Pending) : \"memory\");\n}\n"},
};
// clang-format on

}  // namespace

std::string prelude_text(const std::set<std::string>& names) {
  std::string text;
  size_t found = 0;
  for (const Function& function : kFunctions) {
    if (!names.contains(function.name)) continue;
    text += function.text;
    ++found;
  }
  HEDDLE_CHECK(found == names.size(), "a device function that the prelude lacks");
  return text.empty() ? text : text + "\n";
}

}  // namespace heddle::emit::cuda
