#include "export/stablehlo_attrs.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "export/mlir_text.h"
#include "hlo/lexer.h"

namespace heddle::exports {
namespace {

using hlo::Instr;
using hlo::Ints;
using hlo::Opcode;
using tensor::Type;

// One function for each struct of hlo/attrs.h; those without attributes write nothing.
struct Writer {
  const Instr& instr;
  std::string out;

  void put(std::string_view name, std::string_view value) {
    out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", name, value);
  }
  void put_number(std::string_view name, int64_t value, std::string_view type = "i64") {
    put(name, fmt::format("{} : {}", value, type));
  }
  void put_ints(std::string_view name, const Ints& values) { put(name, array_of(values)); }
  void put_bool(std::string_view name, bool value) { put(name, value ? "true" : "false"); }
  void put_word(std::string_view name, std::string_view kind, std::string_view word) {
    put(name, fmt::format("#stablehlo<{} {}>", kind, word));
  }
  void put_precision(const std::vector<std::string>& words) {
    std::vector<std::string> texts;
    for (const std::string& word : words) {
      std::string upper = word;
      std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) {
        return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
      });
      texts.push_back(fmt::format("#stablehlo<precision {}>", upper));
    }
    if (!texts.empty()) put("precision_config", fmt::format("[{}]", fmt::join(texts, ", ")));
  }
  template <typename Member>
  Ints of_window(const hlo::Window& window, Member member) {
    Ints values;
    for (const hlo::WindowDim& dim : window.dims) values.push_back(dim.*member);
    return values;
  }
  void put_padding(const hlo::Window& window) {
    std::vector<std::pair<int64_t, int64_t>> rows;
    for (const hlo::WindowDim& dim : window.dims) rows.emplace_back(dim.pad_low, dim.pad_high);
    put("padding", pairs_of(rows));
  }

  template <typename Other>
  void operator()(const Other&) {}
  void operator()(const hlo::ConstantAttrs& a) {
    put("value", fmt::format("{} : {}", dense(a.value), value_type(a.value.shape())));
  }
  void operator()(const hlo::DimensionsAttrs& a) {
    switch (instr.opcode()) {
      case Opcode::broadcast:
        return put_ints("broadcast_dimensions", a.dimensions);
      case Opcode::transpose:
        return put_ints("permutation", a.dimensions);
      case Opcode::concatenate:
        return put_number("dimension", a.dimensions[0]);
      default:
        return put_ints("dimensions", a.dimensions);
    }
  }
  void operator()(const hlo::DimensionAttrs& a) {
    put_number(instr.is(Opcode::iota) ? "iota_dimension" : "dimension", a.dimension);
  }
  void operator()(const hlo::SliceAttrs& a) {
    put_ints("start_indices", a.starts);
    put_ints("limit_indices", a.limits);
    put_ints("strides", a.strides);
  }
  void operator()(const hlo::PadAttrs& a) {
    put_ints("edge_padding_low", a.low);
    put_ints("edge_padding_high", a.high);
    put_ints("interior_padding", a.interior);
  }
  void operator()(const hlo::DynamicSliceAttrs& a) { put_ints("slice_sizes", a.slice_sizes); }
  void operator()(const hlo::CompareAttrs& a) {
    static constexpr std::string_view kDirections[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
    put_word("comparison_direction", "comparison_direction",
             kDirections[static_cast<int>(a.direction)]);
    const Type type = instr.operand(0)->shape().type();
    std::string_view kind = tensor::is_signed_integer(type) ? "SIGNED" : "UNSIGNED";
    if (tensor::is_float(type) || tensor::is_complex(type)) kind = "FLOAT";
    if (a.type == hlo::CompareType::total_order) kind = "TOTALORDER";
    put_word("compare_type", "comparison_type", kind);
  }
  void operator()(const hlo::ReducePrecisionAttrs& a) {
    put_number("exponent_bits", a.exponent_bits, "i32");
    put_number("mantissa_bits", a.mantissa_bits, "i32");
  }
  void operator()(const hlo::DotAttrs& a) {
    put("dot_dimension_numbers",
        fmt::format("#stablehlo.dot<lhs_batching_dimensions = {}, rhs_batching_dimensions = {}, "
                    "lhs_contracting_dimensions = {}, rhs_contracting_dimensions = {}>",
                    brackets(a.lhs_batch_dims), brackets(a.rhs_batch_dims),
                    brackets(a.lhs_contracting_dims), brackets(a.rhs_contracting_dims)));
    put_precision(a.operand_precision);
  }
  void operator()(const hlo::WindowAttrs& a) {
    put_ints("window_dimensions", of_window(a.window, &hlo::WindowDim::size));
    put_ints("window_strides", of_window(a.window, &hlo::WindowDim::stride));
    put_padding(a.window);
    if (!instr.is(Opcode::reduce_window)) return;
    put_ints("base_dilations", of_window(a.window, &hlo::WindowDim::lhs_dilate));
    put_ints("window_dilations", of_window(a.window, &hlo::WindowDim::rhs_dilate));
  }
  void operator()(const hlo::ConvolutionAttrs& a) {
    put_ints("window_strides", of_window(a.window, &hlo::WindowDim::stride));
    put_padding(a.window);
    put_ints("lhs_dilation", of_window(a.window, &hlo::WindowDim::lhs_dilate));
    put_ints("rhs_dilation", of_window(a.window, &hlo::WindowDim::rhs_dilate));
    std::vector<std::string> reversed;
    for (const hlo::WindowDim& dim : a.window.dims)
      reversed.emplace_back(dim.reversal ? "true" : "false");
    if (!reversed.empty())
      put("window_reversal", fmt::format("array<i1: {}>", fmt::join(reversed, ", ")));
    const hlo::ConvolutionDims& d = a.dims;
    put("dimension_numbers",
        fmt::format(
            "#stablehlo.conv<{}x{}->{}>",
            labels("b", d.input_batch, "f", d.input_feature, d.input_spatial),
            labels("i", d.kernel_input_feature, "o", d.kernel_output_feature, d.kernel_spatial),
            labels("b", d.output_batch, "f", d.output_feature, d.output_spatial)));
    put_number("feature_group_count", a.feature_group_count);
    put_number("batch_group_count", a.batch_group_count);
    put_precision(a.operand_precision);
  }
  void operator()(const hlo::GatherAttrs& a) {
    put("dimension_numbers",
        fmt::format("#stablehlo.gather<offset_dims = {}, collapsed_slice_dims = {}, "
                    "operand_batching_dims = {}, start_indices_batching_dims = {}, "
                    "start_index_map = {}, index_vector_dim = {}>",
                    brackets(a.offset_dims), brackets(a.collapsed_slice_dims),
                    brackets(a.operand_batching_dims), brackets(a.start_indices_batching_dims),
                    brackets(a.start_index_map), a.index_vector_dim));
    put_ints("slice_sizes", a.slice_sizes);
    put_bool("indices_are_sorted", a.indices_are_sorted);
  }
  void operator()(const hlo::ScatterAttrs& a) {
    put("scatter_dimension_numbers",
        fmt::format("#stablehlo.scatter<update_window_dims = {}, inserted_window_dims = {}, "
                    "input_batching_dims = {}, scatter_indices_batching_dims = {}, "
                    "scatter_dims_to_operand_dims = {}, index_vector_dim = {}>",
                    brackets(a.update_window_dims), brackets(a.inserted_window_dims),
                    brackets(a.input_batching_dims), brackets(a.scatter_indices_batching_dims),
                    brackets(a.scatter_dims_to_operand_dims), a.index_vector_dim));
    put_bool("indices_are_sorted", a.indices_are_sorted);
    put_bool("unique_indices", a.unique_indices);
  }
  void operator()(const hlo::SortAttrs& a) {
    put_number("dimension", a.dimension);
    put_bool("is_stable", a.is_stable);
  }
  void operator()(const hlo::TopKAttrs& a) { put_number("k", a.k); }
  void operator()(const hlo::BatchNormAttrs& a) {
    std::string epsilon = fmt::format("{:e}", a.epsilon);
    put("epsilon", epsilon + " : f32");
    put_number("feature_index", a.feature_index);
  }
  void operator()(const hlo::CholeskyAttrs& a) { put_bool("lower", a.lower); }
  void operator()(const hlo::TriangularSolveAttrs& a) {
    static constexpr std::string_view kNames[] = {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
    put_bool("left_side", a.left_side);
    put_bool("lower", a.lower);
    put_bool("unit_diagonal", a.unit_diagonal);
    put_word("transpose_a", "transpose", kNames[static_cast<int>(a.transpose_a)]);
  }
  void operator()(const hlo::FftAttrs& a) {
    static constexpr std::string_view kNames[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
    put_word("fft_type", "fft_type", kNames[static_cast<int>(a.kind)]);
    put_ints("fft_length", a.fft_length);
  }
  void operator()(const hlo::CustomCallAttrs& a) {
    put("call_target_name", hlo::quote(a.custom_call_target));
    put_bool("has_side_effect", a.has_side_effect);
    for (const auto& [key, value] : instr.annotations())
      if (key == "backend_config")
        put("backend_config", value.starts_with('"') ? value : hlo::quote(value));
  }
  void operator()(const hlo::RngAttrs& a) {
    put_word("rng_distribution", "rng_distribution", a.normal ? "NORMAL" : "UNIFORM");
  }
  void operator()(const hlo::RngBitGeneratorAttrs& a) {
    static constexpr std::string_view kNames[] = {"THREE_FRY", "PHILOX", "DEFAULT"};
    put_word("rng_algorithm", "rng_algorithm", kNames[static_cast<int>(a.algorithm)]);
  }

  // "[b, 0, 1, f]"
  static std::string labels(std::string_view first, int64_t first_place, std::string_view second,
                            int64_t second_place, const Ints& spatial) {
    std::vector<std::string> places(spatial.size() + 2, "?");
    const auto set = [&](int64_t place, std::string label) {
      if (place >= 0 && place < static_cast<int64_t>(places.size()))
        places[static_cast<size_t>(place)] = std::move(label);
    };
    set(first_place, std::string(first));
    set(second_place, std::string(second));
    for (size_t i = 0; i < spatial.size(); ++i) set(spatial[i], std::to_string(i));
    return fmt::format("[{}]", fmt::join(places, ", "));
  }
};

}  // namespace

std::string stablehlo_attrs(const Instr& instr) {
  Writer writer{instr, {}};
  std::visit(writer, instr.attrs());
  return std::move(writer.out);
}

}  // namespace heddle::exports
