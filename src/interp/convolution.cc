// convolution, in its general form: strides, padding, both dilations, reversal, feature groups or
// batch groups, any order of dimensions.
#include "interp/evaluator.h"
#include "interp/products.h"

namespace heddle::interp {

using hlo::Instr;

namespace {

// Dimension orders: batch, spatial, features for input and output; spatial, input, output for the
// kernel.
Ints order_of(int64_t first, const Ints& spatial, int64_t last) {
  Ints order = {first};
  order.insert(order.end(), spatial.begin(), spatial.end());
  order.push_back(last);
  return order;
}

Ints kernel_order(const hlo::ConvolutionDims& dims) {
  Ints order = dims.kernel_spatial;
  order.push_back(dims.kernel_input_feature);
  order.push_back(dims.kernel_output_feature);
  return order;
}

Ints extents_of(const Literal& x, const Ints& dims) {
  Ints result;
  for (int64_t d : dims) result.push_back(x.shape().dim(d));
  return result;
}

struct Convolution {
  const hlo::ConvolutionAttrs& attrs;
  Ints in_spatial, kernel_spatial, out_spatial;
  int64_t in_features, kernel_features, in_batch, out_batch, out_features;

  // Linear position in the input's spatial dimensions of kernel element `offset` at output position
  // `at`; -1 in padding and between dilated elements.
  int64_t place(const Ints& at, const Ints& offset) const {
    int64_t result = 0;
    for (size_t d = 0; d < at.size(); ++d) {
      const hlo::WindowDim& w = attrs.window.dims[d];
      const int64_t i = at[d] * w.stride - w.pad_low + offset[d] * w.rhs_dilate;
      if (i < 0 || i % w.lhs_dilate != 0 || i / w.lhs_dilate >= in_spatial[d]) return -1;
      result = result * in_spatial[d] + i / w.lhs_dilate;
    }
    return result;
  }
  int64_t kernel_place(const Ints& offset) const {
    int64_t result = 0;
    for (size_t d = 0; d < offset.size(); ++d) {
      const int64_t size = kernel_spatial[d];
      const bool reversal = attrs.window.dims[d].reversal;
      result = result * size + (reversal ? size - 1 - offset[d] : offset[d]);
    }
    return result;
  }

  // out[batch, out spatial, :] from in[batch, in spatial, :] and kernel[spatial, input, :]. A
  // group's output features are contiguous; a batch group reads only its part of the batch.
  template <typename T>
  std::vector<T> run(const std::vector<T>& in, const std::vector<T>& kernel) const {
    const int64_t groups = attrs.feature_group_count * attrs.batch_group_count;
    const int64_t group_features = out_features / groups;
    const int64_t in_places = product(in_spatial);
    std::vector<T> out(static_cast<size_t>(out_batch * product(out_spatial) * out_features));
    T* result = out.data();
    for (int64_t n = 0; n < out_batch; ++n) {
      for (Walk at(out_spatial); !at.done(); at.next(), result += out_features) {
        for (Walk offset(kernel_spatial); !offset.done(); offset.next()) {
          const int64_t source = place(at.index(), offset.index());
          if (source < 0) continue;
          const T* weights =
              kernel.data() + kernel_place(offset.index()) * kernel_features * out_features;
          for (int64_t g = 0; g < groups; ++g) {
            const int64_t batch = attrs.batch_group_count > 1 ? g * out_batch + n : n;
            const int64_t first = attrs.batch_group_count > 1 ? 0 : g * kernel_features;
            const T* x = in.data() + (batch * in_places + source) * in_features + first;
            for (int64_t i = 0; i < kernel_features; ++i)
              add_product(x[i], weights + i * out_features + g * group_features, group_features,
                          result + g * group_features);
          }
        }
      }
    }
    return out;
  }
};

}  // namespace

Result<Literal> eval_convolution(Evaluator& e, const Instr& instr, Operands& operands) {
  const auto& attrs = instr.attrs_as<hlo::ConvolutionAttrs>();
  const hlo::ConvolutionDims& dims = attrs.dims;
  const Literal &x = operands[0], &kernel = operands[1];
  HEDDLE_ASSIGN_OR_RETURN(Literal out, e.zeros(instr.shape()));
  const Convolution convolution{attrs,
                                extents_of(x, dims.input_spatial),
                                extents_of(kernel, dims.kernel_spatial),
                                extents_of(out, dims.output_spatial),
                                x.shape().dim(dims.input_feature),
                                kernel.shape().dim(dims.kernel_input_feature),
                                x.shape().dim(dims.input_batch),
                                out.shape().dim(dims.output_batch),
                                out.shape().dim(dims.output_feature)};
  if (out.elems() == 0) return out;
  with_accumulator(accumulator_of(x.type(), kernel.type(), out.type()), [&]<typename T>(T) {
    const auto in =
        values_in_order<T>(x, order_of(dims.input_batch, dims.input_spatial, dims.input_feature));
    const auto weights = values_in_order<T>(kernel, kernel_order(dims));
    put_in_order(out, order_of(dims.output_batch, dims.output_spatial, dims.output_feature),
                 convolution.run(in, weights));
  });
  return out;
}

}  // namespace heddle::interp
