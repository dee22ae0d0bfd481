// StableHLO: convolutions, whose padding may be an operand.
#include "hlo/shape_inference.h"
#include "import/stablehlo_ops.h"

namespace heddle::import {
namespace {

int64_t one(const MlirAttr& numbers, std::string_view name) {
  const MlirAttr* found = numbers.field(name);
  Ints values;
  if (found == nullptr || !integers_of(*found, &values) || values.size() != 1)
    fail("dimension_numbers: {} is missing", name);
  return values[0];
}

Ints many(const MlirAttr& numbers, std::string_view name) {
  const MlirAttr* found = numbers.field(name);
  Ints values;
  if (found == nullptr || !integers_of(*found, &values))
    fail("dimension_numbers: {} is missing", name);
  return values;
}

hlo::ConvolutionDims dims_of(const MlirAttr& numbers) {
  hlo::ConvolutionDims dims;
  dims.input_batch = one(numbers, "input_batch_dimension");
  dims.input_feature = one(numbers, "input_feature_dimension");
  dims.input_spatial = many(numbers, "input_spatial_dimensions");
  dims.kernel_input_feature = one(numbers, "kernel_input_feature_dimension");
  dims.kernel_output_feature = one(numbers, "kernel_output_feature_dimension");
  dims.kernel_spatial = many(numbers, "kernel_spatial_dimensions");
  dims.output_batch = one(numbers, "output_batch_dimension");
  dims.output_feature = one(numbers, "output_feature_dimension");
  dims.output_spatial = many(numbers, "output_spatial_dimensions");
  return dims;
}

// `padding`: low and high for each spatial dimension.
void give_convolution(ShloOp& op, const Ints& padding) {
  Instr *x = op.operand(0), *kernel = op.operand(1);
  hlo::ConvolutionAttrs attrs;
  attrs.dims = dims_of(op.attr("dimension_numbers"));
  attrs.feature_group_count = op.integer("feature_group_count", 1);
  attrs.batch_group_count = op.integer("batch_group_count", 1);
  attrs.operand_precision = op.precision();
  const size_t rank = attrs.dims.kernel_spatial.size();
  const auto values = [&](std::string_view name, int64_t missing) {
    Ints list = op.ints(name, Ints(rank, missing));
    if (list.size() != rank) fail("{}: {} values, wanted {}", name, list.size(), rank);
    return list;
  };
  const Ints strides = values("window_strides", 1), lhs = values("lhs_dilation", 1),
             rhs = values("rhs_dilation", 1), reversal = values("window_reversal", 0);
  if (padding.size() != 2 * rank) fail("padding: {} values, wanted {}", padding.size(), 2 * rank);
  for (size_t d = 0; d < rank; ++d) {
    const int64_t at = attrs.dims.kernel_spatial[d];
    if (at < 0 || at >= kernel->shape().rank()) fail("kernel dimension {}", at);
    hlo::WindowDim& dim = attrs.window.dims.emplace_back();
    dim.size = kernel->shape().dim(at);
    dim.stride = strides[d];
    dim.pad_low = padding[2 * d];
    dim.pad_high = padding[2 * d + 1];
    dim.lhs_dilate = lhs[d];
    dim.rhs_dilate = rhs[d];
    dim.reversal = reversal[d] != 0;
  }
  // The extents are inferred; the element type is the result's.
  const Shape* const shapes[] = {&x->shape(), &kernel->shape()};
  Shape shape = value_or_throw(hlo::infer_shape(Opcode::convolution, shapes, attrs, {}));
  shape.set_type(op.result_type(0).element);
  op.give(op.b.make(Opcode::convolution, {x, kernel}, std::move(attrs), {}, &shape));
}

void convolution(ShloOp& op) {
  const auto rank = static_cast<size_t>(op.operand(0)->shape().rank());
  give_convolution(op, op.ints("padding", Ints(rank < 2 ? 0 : 2 * (rank - 2), 0)));
}

// jax writes texts with more strides and dilations than spatial dimensions.
void dynamic_conv(ShloOp& op) {
  const Ints padding = op.known_ints(2);
  MlirOp cut = op.op;
  for (auto& [name, attr] : cut.attrs) {
    const bool is_window = name == "window_strides" || name == "lhs_dilation" ||
                           name == "rhs_dilation" || name == "window_reversal";
    if (!is_window || !attr.is(MlirAttr::Kind::array) || 2 * attr.elements.size() <= padding.size())
      continue;
    op.importer.note(
        fmt::format("{}: {} values, {} are used", name, attr.elements.size(), padding.size() / 2));
    attr.elements.resize(padding.size() / 2);
  }
  ShloOp inner(&op.importer, cut, &op.frame);
  inner.operands = op.operands;
  inner.operand_types = op.operand_types;
  inner.result_types = op.result_types;
  give_convolution(inner, padding);
  op.results = std::move(inner.results);
}

constexpr ShloEntry kOps[] = {
    {"stablehlo.convolution", convolution, 2, 2},
    {"stablehlo.dynamic_conv", dynamic_conv, 3, 3},
};

}  // namespace

std::span<const ShloEntry> shlo_convolution_ops() { return kOps; }

}  // namespace heddle::import
