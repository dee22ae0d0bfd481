// Convolutions: input [N,C,spatial...], weights [M,C/group,kernel...].
#include "import/onnx_emit.h"
#include "import/onnx_ops.h"
#include "import/onnx_window.h"

namespace heddle::import {
namespace {

Ints spatial_extents(const Shape& shape) {
  const Ints extents = shape.extents();
  return Ints(extents.begin() + 2, extents.end());
}

void check_operands(Op& op, const Shape& x, const Shape& weights) {
  if (x.rank() < 3 || weights.rank() != x.rank() || x.type() != weights.type())
    op.fail("X is {}, W is {}: wanted [N,C,...] and as many dimensions of one type", to_string(x),
            to_string(weights));
}

int64_t group_count(Op& op, int64_t channels, int64_t features) {
  const int64_t group = op.int_attr("group", 1);
  if (group < 1 || channels % group != 0 || features % group != 0)
    op.fail("group {} does not divide {} input channels and {} output channels", group, channels,
            features);
  return group;
}

// Batch and feature first, then the spatial dimensions, in input and output.
hlo::ConvolutionDims image_dims(int64_t spatial) {
  hlo::ConvolutionDims dims;
  dims.input_feature = dims.output_feature = 1;
  dims.input_spatial = dims.kernel_spatial = dims.output_spatial = range(2, 2 + spatial);
  return dims;
}

Instr* add_bias(Op& op, Instr* y, int64_t features) {
  if (!op.has(2)) return y;
  if (op.rank(2) != 1 || op.shape(2).dim(0) != features || op.type(2) != op.type(0))
    op.fail("B is {}, wanted [{}]", to_string(op.shape(2)), features);
  return op.b.binary(Opcode::add, y, broadcast_along(op, op.in(2), y->shape().extents(), 1));
}

}  // namespace

Instr* convolve(Op& op, Instr* x, Instr* weights) {
  check_operands(op, x->shape(), weights->shape());
  const int64_t channels = x->shape().dim(1), features = weights->shape().dim(0);
  const int64_t group = group_count(op, channels, features);
  if (weights->shape().dim(1) * group != channels)
    op.fail("W is {}, wanted {} input channels (of {} in {} groups)", to_string(weights->shape()),
            channels / group, channels, group);
  const Spatial s =
      read_spatial(op, spatial_extents(x->shape()), spatial_extents(weights->shape()));
  Ints result{x->shape().dim(0), features};
  result.insert(result.end(), s.output.begin(), s.output.end());
  op.check_extents(result);
  hlo::ConvolutionAttrs attrs;
  attrs.window = s.window();
  attrs.dims = image_dims(x->shape().rank() - 2);
  attrs.dims.kernel_input_feature = 1;
  attrs.dims.kernel_output_feature = 0;
  attrs.feature_group_count = group;
  Instr* y = op.b.convolution(x, weights, std::move(attrs));
  op.check_builder();
  return y;
}

namespace {

Outputs conv(Op& op) {
  return {add_bias(op, convolve(op, op.in(0), op.in(1)), op.rank(1) > 0 ? op.shape(1).dim(0) : 0)};
}

struct Transposed {
  Ints kernel, strides, dilations, low, high, output_padding;
};

// The pads of a transposed convolution, as given or computed from output_shape.
Transposed read_transposed(Op& op) {
  const Ints extents = spatial_extents(op.shape(0));
  const size_t rank = extents.size();
  Transposed t;
  const Ints weights = spatial_extents(op.shape(1));
  t.kernel = positive_attr(op, "kernel_shape", rank, weights);
  if (t.kernel != weights)
    op.fail("kernel_shape is [{}], W is {}", fmt::join(t.kernel, ","), to_string(op.shape(1)));
  t.strides = positive_attr(op, "strides", rank, Ints(rank, 1));
  t.dilations = positive_attr(op, "dilations", rank, Ints(rank, 1));
  t.output_padding = op.ints_attr("output_padding", Ints(rank, 0));
  const Ints shape = op.ints_attr("output_shape");
  const Ints pads = op.ints_attr("pads", Ints(2 * rank, 0));
  const std::string auto_pad = op.string_attr("auto_pad", "NOTSET");
  if (t.output_padding.size() != rank || pads.size() != 2 * rank ||
      (!shape.empty() && shape.size() != rank))
    op.fail("output_padding, pads or output_shape do not fit {} spatial dimensions", rank);
  const int64_t most = op.limits().value_elems;
  for (size_t i = 0; i < rank; ++i) {
    if (t.output_padding[i] < 0 || t.output_padding[i] > most || t.strides[i] > most ||
        t.kernel[i] > most || t.dilations[i] > most)
      op.fail("the window of spatial dimension {} is too large or negative", i);
    const int64_t full = t.strides[i] * (extents[i] - 1) + t.output_padding[i] +
                         (t.kernel[i] - 1) * t.dilations[i] + 1;
    int64_t low = auto_pad == "NOTSET" ? pads[i] : 0,
            high = auto_pad == "NOTSET" ? pads[i + rank] : 0;
    if (!shape.empty() || auto_pad.starts_with("SAME")) {
      const int64_t wanted = shape.empty() ? extents[i] * t.strides[i] : shape[i];
      if (wanted < 0 || wanted > most) op.fail("output_shape has {}", wanted);
      const int64_t total = full - wanted;
      const int64_t half = total >> 1;  // rounded down, also if the output must grow
      low = auto_pad == "SAME_UPPER" ? half : total - half;
      high = total - low;
    }
    if (low < -most || high < -most || low > most || high > most || full - low - high < 0)
      op.fail("pads {} and {} of an output of {}", low, high, full);
    t.low.push_back(low);
    t.high.push_back(high);
  }
  return t;
}

// [C, M/group, kernel...] -> [C/group, M, kernel...], the groups side by side in M.
Instr* regroup(Op& op, Instr* weights, int64_t group) {
  if (group == 1) return weights;
  const Ints e = weights->shape().extents();
  const int64_t spatial = static_cast<int64_t>(e.size()) - 2;
  Ints apart{group, e[0] / group}, merged{e[0] / group, group * e[1]};
  apart.insert(apart.end(), e.begin() + 1, e.end());
  merged.insert(merged.end(), e.begin() + 2, e.end());
  Ints permutation{1, 0, 2};
  for (int64_t d = 0; d < spatial; ++d) permutation.push_back(3 + d);
  return reshape(op, op.b.transpose(reshape(op, weights, apart), permutation), merged);
}

// A convolution of the input dilated by the strides with the reversed kernel.
Outputs conv_transpose(Op& op) {
  check_operands(op, op.shape(0), op.shape(1));
  const int64_t channels = op.shape(0).dim(1);
  const int64_t group = group_count(op, channels, channels);
  if (op.shape(1).dim(0) != channels)
    op.fail("W is {}, wanted {} input channels", to_string(op.shape(1)), channels);
  const int64_t features = op.shape(1).dim(1) * group;
  const Transposed t = read_transposed(op);
  hlo::ConvolutionAttrs attrs;
  attrs.dims = image_dims(op.rank(0) - 2);
  attrs.dims.kernel_input_feature = 0;
  attrs.dims.kernel_output_feature = 1;
  attrs.feature_group_count = group;
  Ints result{op.shape(0).dim(0), features};
  for (size_t i = 0; i < t.kernel.size(); ++i) {
    const int64_t reach = (t.kernel[i] - 1) * t.dilations[i];
    hlo::WindowDim dim;
    dim.size = t.kernel[i];
    dim.lhs_dilate = t.strides[i];
    dim.rhs_dilate = t.dilations[i];
    dim.pad_low = reach - t.low[i];
    dim.pad_high = reach - t.high[i] + t.output_padding[i];
    dim.reversal = true;
    attrs.window.dims.push_back(dim);
    result.push_back(t.strides[i] * (op.shape(0).dim(static_cast<int64_t>(i) + 2) - 1) +
                     t.output_padding[i] + reach + 1 - t.low[i] - t.high[i]);
  }
  op.check_extents(result);
  Instr* y = op.b.convolution(op.in(0), regroup(op, op.in(1), group), std::move(attrs));
  op.check_builder();
  return {add_bias(op, y, features)};
}

constexpr OpEntry kOps[] = {
    {"Conv", 2, 3, conv},
    {"ConvTranspose", 2, 3, conv_transpose},
};

}  // namespace

std::span<const OpEntry> conv_ops() { return kOps; }

}  // namespace heddle::import
