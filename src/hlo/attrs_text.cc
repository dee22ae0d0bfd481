// Prints attributes as HLO text; attributes with their default value are left out.
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "hlo/lexer.h"
#include "hlo/text.h"

namespace heddle::hlo {
namespace {

// Gathers "key=value, key=value".
class Writer {
 public:
  explicit Writer(const Instr& instr) : instr_(instr) {}
  std::string take() { return std::move(out_); }

  void put(std::string_view key, std::string_view value) {
    if (!out_.empty()) out_ += ", ";
    out_ += key;
    out_ += '=';
    out_ += value;
  }
  void put(std::string_view key, int64_t value) { put(key, fmt::to_string(value)); }
  void put_ints(std::string_view key, const Ints& values) {
    put(key, fmt::format("{{{}}}", fmt::join(values, ",")));
  }
  void put_if_any(std::string_view key, const Ints& values) {
    if (!values.empty()) put_ints(key, values);
  }
  void put_if(std::string_view key, bool value) {
    if (value) put(key, "true");
  }
  void put_precision(const std::vector<std::string>& words) {
    if (!words.empty()) put("operand_precision", fmt::format("{{{}}}", fmt::join(words, ",")));
  }
  void put_raw(const std::string& rest) {
    if (rest.empty()) return;
    if (!out_.empty()) out_ += ", ";
    out_ += rest;
  }
  void put_aliasing(const std::vector<OutputOperandAlias>& rows) {
    if (rows.empty()) return;
    std::vector<std::string> texts;
    for (const OutputOperandAlias& row : rows)
      texts.push_back(fmt::format("{{{}}}: ({}, {{{}}})", fmt::join(row.output_index, ","),
                                  row.operand, fmt::join(row.operand_index, ",")));
    put("output_to_operand_aliasing", fmt::format("{{{}}}", fmt::join(texts, ", ")));
  }

  void operator()(const NoAttrs&) {}
  void operator()(const ParameterAttrs&) {}  // between the parentheses
  void operator()(const ConstantAttrs&) {}
  void operator()(const DimensionsAttrs& a) { put_ints("dimensions", a.dimensions); }
  void operator()(const DimensionAttrs& a) {
    if (instr_.is(Opcode::iota)) return put("iota_dimension", a.dimension);
    put_ints("dimensions", {a.dimension});
  }
  void operator()(const ReshapeAttrs& a) {
    if (a.inferred_dimension != -1) put("inferred_dimension", a.inferred_dimension);
  }
  void operator()(const SliceAttrs& a) {
    std::string text = "{";
    for (size_t i = 0; i < a.starts.size(); ++i) {
      text += fmt::format("{}[{}:{}", i > 0 ? ", " : "", a.starts[i], a.limits[i]);
      text += a.strides[i] == 1 ? "]" : fmt::format(":{}]", a.strides[i]);
    }
    put("slice", text + "}");
  }
  void operator()(const PadAttrs& a) {
    if (a.low.empty()) return;
    std::string text;
    for (size_t i = 0; i < a.low.size(); ++i) {
      text += fmt::format("{}{}_{}", i > 0 ? "x" : "", a.low[i], a.high[i]);
      if (a.interior[i] != 0) text += fmt::format("_{}", a.interior[i]);
    }
    put("padding", text);
  }
  void operator()(const DynamicSliceAttrs& a) { put_ints("dynamic_slice_sizes", a.slice_sizes); }
  void operator()(const CompareAttrs& a) {
    static constexpr std::string_view kDirections[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
    static constexpr std::string_view kTypes[] = {"", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"};
    put("direction", kDirections[static_cast<int>(a.direction)]);
    if (a.type != CompareType::by_type) put("type", kTypes[static_cast<int>(a.type)]);
  }
  void operator()(const ReducePrecisionAttrs& a) {
    put("exponent_bits", a.exponent_bits);
    put("mantissa_bits", a.mantissa_bits);
  }
  void operator()(const DotAttrs& a) {
    put_if_any("lhs_batch_dims", a.lhs_batch_dims);
    put_if_any("lhs_contracting_dims", a.lhs_contracting_dims);
    put_if_any("rhs_batch_dims", a.rhs_batch_dims);
    put_if_any("rhs_contracting_dims", a.rhs_contracting_dims);
    put_precision(a.operand_precision);
    if (!a.algorithm.empty()) put("algorithm", a.algorithm);
    put_raw(a.rest);
  }
  void operator()(const RaggedDotAttrs& a) {
    (*this)(a.dot);
    put_if_any("lhs_ragged_dims", a.lhs_ragged_dims);
    put_if_any("rhs_group_dims", a.rhs_group_dims);
  }
  void operator()(const Window& w) {
    if (w.dims.empty()) return;
    std::string text;
    auto field = [&](std::string_view key, bool always, auto is_set, auto value) {
      if (!always && std::none_of(w.dims.begin(), w.dims.end(), is_set)) return;
      text += fmt::format("{}{}=", text.empty() ? "" : " ", key);
      for (size_t i = 0; i < w.dims.size(); ++i) {
        if (i > 0) text += 'x';
        text += value(w.dims[i]);
      }
    };
    auto number = [&](std::string_view key, int64_t WindowDim::* member, bool always = false) {
      field(
          key, always, [&](const WindowDim& d) { return d.*member != 1; },
          [&](const WindowDim& d) { return fmt::to_string(d.*member); });
    };
    number("size", &WindowDim::size, true);
    number("stride", &WindowDim::stride);
    field(
        "pad", false, [](const WindowDim& d) { return d.pad_low != 0 || d.pad_high != 0; },
        [](const WindowDim& d) { return fmt::format("{}_{}", d.pad_low, d.pad_high); });
    number("lhs_dilate", &WindowDim::lhs_dilate);
    number("rhs_dilate", &WindowDim::rhs_dilate);
    field(
        "rhs_reversal", false, [](const WindowDim& d) { return d.reversal; },
        [](const WindowDim& d) { return d.reversal ? "1" : "0"; });
    put("window", fmt::format("{{{}}}", text));
  }
  void operator()(const WindowAttrs& a) { (*this)(a.window); }
  void operator()(const ConvolutionAttrs& a) {
    (*this)(a.window);
    auto rank_of = [&](size_t i) {
      return i < instr_.operands().size() ? instr_.operand(i)->shape().rank() : 0;
    };
    const ConvolutionDims& d = a.dims;
    put("dim_labels",
        fmt::format("{}_{}->{}",
                    labels('b', d.input_batch, 'f', d.input_feature, d.input_spatial, rank_of(0)),
                    labels('i', d.kernel_input_feature, 'o', d.kernel_output_feature,
                           d.kernel_spatial, rank_of(1)),
                    labels('b', d.output_batch, 'f', d.output_feature, d.output_spatial,
                           instr_.shape().rank())));
    if (a.feature_group_count != 1) put("feature_group_count", a.feature_group_count);
    if (a.batch_group_count != 1) put("batch_group_count", a.batch_group_count);
    put_precision(a.operand_precision);
    put_raw(a.rest);
  }
  void operator()(const GatherAttrs& a) {
    put_ints("offset_dims", a.offset_dims);
    put_ints("collapsed_slice_dims", a.collapsed_slice_dims);
    put_ints("start_index_map", a.start_index_map);
    put_if_any("operand_batching_dims", a.operand_batching_dims);
    put_if_any("start_indices_batching_dims", a.start_indices_batching_dims);
    put("index_vector_dim", a.index_vector_dim);
    put_ints("slice_sizes", a.slice_sizes);
    put_if("indices_are_sorted", a.indices_are_sorted);
  }
  void operator()(const ScatterAttrs& a) {
    put_ints("update_window_dims", a.update_window_dims);
    put_ints("inserted_window_dims", a.inserted_window_dims);
    put_ints("scatter_dims_to_operand_dims", a.scatter_dims_to_operand_dims);
    put_if_any("input_batching_dims", a.input_batching_dims);
    put_if_any("scatter_indices_batching_dims", a.scatter_indices_batching_dims);
    put("index_vector_dim", a.index_vector_dim);
    put_if("indices_are_sorted", a.indices_are_sorted);
    put_if("unique_indices", a.unique_indices);
  }
  void operator()(const SortAttrs& a) {
    put_ints("dimensions", {a.dimension});
    put_if("is_stable", a.is_stable);
  }
  void operator()(const TopKAttrs& a) {
    put("k", a.k);
    put("largest", a.largest ? "true" : "false");
    put_if("is_stable", a.is_stable);
  }
  void operator()(const ScanAttrs& a) {
    put_ints("dimensions", {a.dimension});
    put("num_carries", a.num_carries);
    put_if("is_reverse", a.is_reverse);
    if (!a.is_associative.empty()) put("is_associative", a.is_associative);
  }
  void operator()(const BatchNormAttrs& a) {
    put("epsilon", fmt::to_string(a.epsilon));
    put("feature_index", a.feature_index);
  }
  void operator()(const CholeskyAttrs& a) { put_if("lower", a.lower); }
  void operator()(const TriangularSolveAttrs& a) {
    static constexpr std::string_view kNames[] = {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
    put_if("left_side", a.left_side);
    put_if("lower", a.lower);
    put_if("unit_diagonal", a.unit_diagonal);
    put("transpose_a", kNames[static_cast<int>(a.transpose_a)]);
  }
  void operator()(const FftAttrs& a) {
    static constexpr std::string_view kNames[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
    put("fft_type", kNames[static_cast<int>(a.kind)]);
    put_ints("fft_length", a.fft_length);
  }
  void operator()(const TupleIndexAttrs& a) { put("index", a.index); }
  void operator()(const CallAttrs& a) { put_if("is_composite", a.is_composite); }
  void operator()(const FusionAttrs& a) {
    put("kind", a.kind);
    put_aliasing(a.output_to_operand_aliasing);
  }
  void operator()(const CustomCallAttrs& a) {
    put("custom_call_target", quote(a.custom_call_target));
    put_if("custom_call_has_side_effect", a.has_side_effect);
    put_aliasing(a.output_to_operand_aliasing);
    put_raw(a.rest);
  }
  void operator()(const CollectiveAttrs& a) {
    if (a.channel_id != -1) put("channel_id", a.channel_id);
    if (!a.replica_groups.empty()) put("replica_groups", a.replica_groups);
    if (!a.source_target_pairs.empty()) {
      std::vector<std::string> texts;
      for (const auto& [from, to] : a.source_target_pairs)
        texts.push_back(fmt::format("{{{},{}}}", from, to));
      put("source_target_pairs", fmt::format("{{{}}}", fmt::join(texts, ",")));
    }
    put_if("use_global_device_ids", a.use_global_device_ids);
    put_if("constrain_layout", a.constrain_layout);
    put_if_any("dimensions", a.dimensions);
    put_raw(a.rest);
  }
  void operator()(const ChannelAttrs& a) {
    if (a.channel_id != -1) put("channel_id", a.channel_id);
    put_if("is_host_transfer", a.is_host_transfer);
    put_raw(a.rest);
  }
  void operator()(const AsyncAttrs& a) {
    if (!a.async_execution_thread.empty())
      put("async_execution_thread", quote(a.async_execution_thread));
    put_raw(a.rest);
  }
  void operator()(const RngAttrs& a) {
    put("distribution", a.normal ? "rng_normal" : "rng_uniform");
  }
  void operator()(const RngBitGeneratorAttrs& a) {
    static constexpr std::string_view kNames[] = {"rng_three_fry", "rng_philox", "rng_default"};
    put("algorithm", kNames[static_cast<int>(a.algorithm)]);
  }
  void operator()(const RngStateAttrs& a) { put("delta", a.delta); }
  void operator()(const CopyStartAttrs& a) {
    if (a.cross_program_prefetch_index != -1)
      put("cross_program_prefetch_index", a.cross_program_prefetch_index);
  }
  void operator()(const TextAttrs& a) { put_raw(a.text); }

 private:
  // "b01f"; positions without a role are `?`.
  static std::string labels(char first, int64_t first_place, char second, int64_t second_place,
                            const Ints& spatial, int64_t rank) {
    int64_t size = std::max({rank, first_place + 1, second_place + 1});
    for (int64_t place : spatial) size = std::max(size, place + 1);
    std::string out(size, '?');
    out[first_place] = first;
    out[second_place] = second;
    for (size_t i = 0; i < spatial.size(); ++i) out[spatial[i]] = static_cast<char>('0' + i);
    return out;
  }

  const Instr& instr_;
  std::string out_;
};

}  // namespace

std::string attrs_to_string(const Instr& instr) {
  Writer writer(instr);
  std::visit(writer, instr.attrs());
  return writer.take();
}

}  // namespace heddle::hlo
