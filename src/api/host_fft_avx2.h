// Private to host_fft.cc: a transform, and its execution in vectors of 32 bytes.
#pragma once

#include <cstddef>
#include <vector>

#include "hlo/attrs.h"

namespace heddle::api {

struct FourierTransform {
  hlo::FftAttrs::Kind kind;
  std::vector<size_t> axes, in, out;
  double factor = 1;      // for an inverse transform
  bool is_narrow = true;  // f32 and c64; else f64 and c128
};

// Needs AVX2. The same bits as without it. Throws what pocketfft throws if memory runs out.
void transform_avx2(const FourierTransform& t, const void* in, void* out);

}  // namespace heddle::api
