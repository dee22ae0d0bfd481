#include "api/host_fft.h"

#include <exception>

#include "api/host_fft_loops.h"

namespace heddle::api {
namespace {

using hlo::FftAttrs;
using runtime::HostArgument;
using runtime::HostResult;
using tensor::Shape;
using tensor::Type;

std::vector<size_t> extents_of(const Shape& shape) {
  const std::vector<int64_t> extents = shape.extents();
  return {extents.begin(), extents.end()};
}

bool has_avx2() {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
#else
  return false;
#endif
}

void run(const FourierTransform& t, const void* in, void* out) {
  if (has_avx2()) return transform_avx2(t, in, out);
  t.is_narrow ? transform<float>(t, in, out) : transform<double>(t, in, out);
}

}  // namespace

std::optional<runtime::HostCallable> native_fft(const hlo::Instr& instr) {
  const auto& attrs = instr.attrs_as<FftAttrs>();
  const Shape& operand = instr.operand(0)->shape();
  if (operand.elems() == 0 || instr.shape().elems() == 0) return {};
  FourierTransform t{attrs.kind, {}, extents_of(operand), extents_of(instr.shape())};
  for (size_t i = 0; i < attrs.fft_length.size(); ++i) {
    t.axes.push_back(t.in.size() - attrs.fft_length.size() + i);
    if (attrs.kind == FftAttrs::Kind::ifft || attrs.kind == FftAttrs::Kind::irfft)
      t.factor /= static_cast<double>(attrs.fft_length[i]);
  }
  t.is_narrow = operand.type() == Type::f32 || operand.type() == Type::c64;
  if (!t.is_narrow && operand.type() != Type::f64 && operand.type() != Type::c128) return {};
  return
      [t](std::span<const HostArgument> arguments, std::span<const HostResult> results) -> Status {
        try {
          run(t, arguments[0].data, results[0].data);
        } catch (const std::exception& e) {  // from the library: out of memory
          return machine_error("a Fourier transform failed: {}", e.what());
        }
        return {};
      };
}

}  // namespace heddle::api
