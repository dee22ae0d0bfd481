// Private to host_fft.cc and host_fft_avx2.cc, which compile pocketfft for different instruction
// sets.
#pragma once

#include "api/host_fft_avx2.h"

#define POCKETFFT_NO_MULTITHREADING
#define POCKETFFT_CACHE_SIZE 16  // cached plans, by length
#include <pocketfft_hdronly.h>

namespace heddle::api {
namespace {

pocketfft::stride_t strides_of(const pocketfft::shape_t& extents, size_t bytes) {
  pocketfft::stride_t strides(extents.size());
  auto step = static_cast<ptrdiff_t>(bytes);
  for (size_t d = extents.size(); d-- > 0;) {
    strides[d] = step;
    step *= static_cast<ptrdiff_t>(extents[d]);
  }
  return strides;
}

template <typename T>
void transform(const FourierTransform& t, const void* in, void* out) {
  using Kind = hlo::FftAttrs::Kind;
  using Complex = std::complex<T>;
  const auto factor = static_cast<T>(t.factor);
  const bool real_in = t.kind == Kind::rfft, real_out = t.kind == Kind::irfft;
  const pocketfft::stride_t from = strides_of(t.in, real_in ? sizeof(T) : sizeof(Complex));
  const pocketfft::stride_t to = strides_of(t.out, real_out ? sizeof(T) : sizeof(Complex));
  if (real_in)
    pocketfft::r2c(t.in, from, to, t.axes, pocketfft::FORWARD, static_cast<const T*>(in),
                   static_cast<Complex*>(out), factor);
  else if (real_out)
    pocketfft::c2r(t.out, from, to, t.axes, pocketfft::BACKWARD, static_cast<const Complex*>(in),
                   static_cast<T*>(out), factor);
  else
    pocketfft::c2c(t.in, from, to, t.axes, t.kind == Kind::fft, static_cast<const Complex*>(in),
                   static_cast<Complex*>(out), factor);
}

}  // namespace
}  // namespace heddle::api
