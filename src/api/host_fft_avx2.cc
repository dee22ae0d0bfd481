// pocketfft chooses its vectors by the instruction set that it is compiled for. Only this file's
// own functions are compiled for AVX2: everything that other files may share is included before the
// pragma, and pocketfft gets another namespace. Without FMA, which would round differently from
// processor to processor.
#include "api/host_fft_avx2.h"

#include <array>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx2")
#pragma GCC optimize("O3")
#endif
#define pocketfft pocketfft_avx2
#include "api/host_fft_loops.h"

namespace heddle::api {

void transform_avx2(const FourierTransform& t, const void* in, void* out) {
  t.is_narrow ? transform<float>(t, in, out) : transform<double>(t, in, out);
}

}  // namespace heddle::api
