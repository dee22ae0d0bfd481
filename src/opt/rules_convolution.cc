// Rules of convolutions.
#include <algorithm>
#include <cmath>

#include "opt/rules.h"

namespace heddle::opt::rules {
namespace {

using hlo::ConvolutionAttrs;
using hlo::PadAttrs;

bool all_finite(const Literal& literal) {
  if (tensor::is_complex(literal.type())) return false;
  if (!tensor::is_float(literal.type())) return true;
  for (int64_t i = 0; i < literal.elems(); ++i)
    if (!std::isfinite(literal.get_f64(i))) return false;
  return true;
}

// Checking filters larger than this for the sake of a pad is not worth it.
constexpr int64_t kMostFilterElems = int64_t{1} << 24;

}  // namespace

// Zeros times finite numbers add nothing to a sum. (Times an infinity they would give NaN, whereas
// the convolution's own padding is skipped.)
Instr* convolution_pad(Instr* x, Builder& b) {
  Instr* y = x->operand(0);
  if (!y->is(Opcode::pad) || !are_static_arrays(x) || !are_static_arrays(y)) return nullptr;
  if (!is_splat(y->operand(1), 0.0) && !is_negative_zero(y->operand(1))) return nullptr;
  const Literal* filter = constant_of(x->operand(1));
  if (!filter || filter->elems() > kMostFilterElems) return nullptr;
  auto attrs = x->attrs_as<ConvolutionAttrs>();
  const auto& pad = y->attrs_as<PadAttrs>();
  for (int64_t d : {attrs.dims.input_batch, attrs.dims.input_feature}) {
    const auto i = static_cast<size_t>(d);
    if (pad.low[i] != 0 || pad.high[i] != 0 || pad.interior[i] != 0) return nullptr;
  }
  for (size_t i = 0; i < attrs.window.dims.size(); ++i) {
    const auto d = static_cast<size_t>(attrs.dims.input_spatial[i]);
    hlo::WindowDim& dim = attrs.window.dims[i];
    if (pad.low[d] < 0 || pad.high[d] < 0 || pad.interior[d] != 0) return nullptr;
    dim.pad_low += pad.low[d] * dim.lhs_dilate;
    dim.pad_high += pad.high[d] * dim.lhs_dilate;
  }
  if (!all_finite(*filter)) return nullptr;
  return b.convolution(y->operand(0), x->operand(1), std::move(attrs));
}

// Gradients of inputs read filters backwards. A constant filter is reversed at compile or load time
// instead.
Instr* convolution_reverse(Instr* x, Builder& b) {
  const Instr* y = x->operand(1);
  if (!y->is(Opcode::reverse) || is_constant_expression(y)) return nullptr;
  auto attrs = x->attrs_as<ConvolutionAttrs>();
  for (const int64_t d : y->dimensions()) {
    const auto& spatial = attrs.dims.kernel_spatial;
    const auto found = std::find(spatial.begin(), spatial.end(), d);
    if (found == spatial.end()) return nullptr;
    hlo::WindowDim& dim = attrs.window.dims[static_cast<size_t>(found - spatial.begin())];
    dim.reversal = !dim.reversal;
  }
  return b.convolution(x->operand(0), y->operand(0), std::move(attrs));
}

}  // namespace heddle::opt::rules
