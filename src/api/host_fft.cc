#include "api/host_fft.h"

#include <complex>
#include <exception>

#define POCKETFFT_NO_MULTITHREADING
#define POCKETFFT_CACHE_SIZE 16  // cached plans, by length
#include <pocketfft_hdronly.h>

namespace heddle::api {
namespace {

using hlo::FftAttrs;
using runtime::HostArgument;
using runtime::HostResult;
using tensor::Shape;
using tensor::Type;

struct Transform {
  FftAttrs::Kind kind;
  pocketfft::shape_t axes, in, out;
  double factor = 1;  // for an inverse transform
};

pocketfft::shape_t extents_of(const Shape& shape) {
  pocketfft::shape_t result;
  for (const int64_t extent : shape.extents()) result.push_back(static_cast<size_t>(extent));
  return result;
}

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
void run(const Transform& t, const void* in, void* out) {
  using Complex = std::complex<T>;
  const auto factor = static_cast<T>(t.factor);
  const bool real_in = t.kind == FftAttrs::Kind::rfft, real_out = t.kind == FftAttrs::Kind::irfft;
  const pocketfft::stride_t from = strides_of(t.in, real_in ? sizeof(T) : sizeof(Complex));
  const pocketfft::stride_t to = strides_of(t.out, real_out ? sizeof(T) : sizeof(Complex));
  if (real_in)
    pocketfft::r2c(t.in, from, to, t.axes, pocketfft::FORWARD, static_cast<const T*>(in),
                   static_cast<Complex*>(out), factor);
  else if (real_out)
    pocketfft::c2r(t.out, from, to, t.axes, pocketfft::BACKWARD, static_cast<const Complex*>(in),
                   static_cast<T*>(out), factor);
  else
    pocketfft::c2c(t.in, from, to, t.axes, t.kind == FftAttrs::Kind::fft,
                   static_cast<const Complex*>(in), static_cast<Complex*>(out), factor);
}

}  // namespace

std::optional<runtime::HostCallable> native_fft(const hlo::Instr& instr) {
  const auto& attrs = instr.attrs_as<FftAttrs>();
  const Shape& operand = instr.operand(0)->shape();
  if (operand.elems() == 0 || instr.shape().elems() == 0) return {};
  Transform t{attrs.kind, {}, extents_of(operand), extents_of(instr.shape()), 1};
  for (size_t i = 0; i < attrs.fft_length.size(); ++i) {
    t.axes.push_back(t.in.size() - attrs.fft_length.size() + i);
    if (attrs.kind == FftAttrs::Kind::ifft || attrs.kind == FftAttrs::Kind::irfft)
      t.factor /= static_cast<double>(attrs.fft_length[i]);
  }
  const bool narrow = operand.type() == Type::f32 || operand.type() == Type::c64;
  if (!narrow && operand.type() != Type::f64 && operand.type() != Type::c128) return {};
  return [t, narrow](std::span<const HostArgument> arguments,
                     std::span<const HostResult> results) -> Status {
    try {
      narrow ? run<float>(t, arguments[0].data, results[0].data)
             : run<double>(t, arguments[0].data, results[0].data);
    } catch (const std::exception& e) {  // from the library: out of memory
      return machine_error("a Fourier transform failed: {}", e.what());
    }
    return {};
  };
}

}  // namespace heddle::api
