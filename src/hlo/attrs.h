// Attributes: one small struct per family of operators, held by Instr in a variant. Equality, hash
// and text are in attrs.cc and attrs_text.cc. Called computations are not attributes: they are in
// Instr::called(). Names of fields are those of HLO text.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tensor/literal.h"

namespace heddle::hlo {

using Ints = std::vector<int64_t>;

struct NoAttrs {
  bool operator==(const NoAttrs&) const = default;
};
struct ParameterAttrs {
  int64_t number = 0;
  bool operator==(const ParameterAttrs&) const = default;
};
struct ConstantAttrs {
  tensor::Literal value;
  bool elided = false;  // written as {...}: filled with a counter pattern
  bool operator==(const ConstantAttrs&) const = default;
};
// broadcast: output dimension of each operand dimension; transpose: operand dimension of each
// output dimension; reduce, reverse: the affected dimensions; concatenate: one; map: all.
struct DimensionsAttrs {
  Ints dimensions;
  bool operator==(const DimensionsAttrs&) const = default;
};
struct DimensionAttrs {  // iota, get/set-dimension-size
  int64_t dimension = 0;
  bool operator==(const DimensionAttrs&) const = default;
};
struct ReshapeAttrs {
  int64_t inferred_dimension = -1;  // -1: none
  bool operator==(const ReshapeAttrs&) const = default;
};
struct SliceAttrs {
  Ints starts, limits, strides;
  bool operator==(const SliceAttrs&) const = default;
};
struct PadAttrs {
  Ints low, high, interior;  // low and high may be negative
  bool operator==(const PadAttrs&) const = default;
};
struct DynamicSliceAttrs {
  Ints slice_sizes;
  bool operator==(const DynamicSliceAttrs&) const = default;
};
enum class Direction : uint8_t { eq, ne, ge, gt, le, lt };
enum class CompareType : uint8_t { by_type, floating, total_order, is_signed, is_unsigned };
struct CompareAttrs {
  Direction direction = Direction::eq;
  CompareType type = CompareType::by_type;
  bool operator==(const CompareAttrs&) const = default;
};
struct ReducePrecisionAttrs {
  int64_t exponent_bits = 0, mantissa_bits = 0;
  bool operator==(const ReducePrecisionAttrs&) const = default;
};
struct DotAttrs {
  Ints lhs_batch_dims, lhs_contracting_dims, rhs_batch_dims, rhs_contracting_dims;
  std::vector<std::string> operand_precision;  // empty: default
  std::string algorithm;                       // empty: unset
  std::string rest;                            // sparsity and the like, kept as written
  bool operator==(const DotAttrs&) const = default;
};
struct RaggedDotAttrs {
  DotAttrs dot;
  Ints lhs_ragged_dims, rhs_group_dims;
  bool operator==(const RaggedDotAttrs&) const = default;
};
struct WindowDim {
  int64_t size = 1, stride = 1, pad_low = 0, pad_high = 0, lhs_dilate = 1, rhs_dilate = 1;
  bool reversal = false;
  bool operator==(const WindowDim&) const = default;
};
struct Window {
  std::vector<WindowDim> dims;
  bool operator==(const Window&) const = default;
};
struct WindowAttrs {  // reduce-window, select-and-scatter
  Window window;
  bool operator==(const WindowAttrs&) const = default;
};
// The role of each dimension of input, kernel and output ("b01f_01io->b01f").
struct ConvolutionDims {
  int64_t input_batch = 0, input_feature = 0, kernel_input_feature = 0, kernel_output_feature = 0,
          output_batch = 0, output_feature = 0;
  Ints input_spatial, kernel_spatial, output_spatial;
  bool operator==(const ConvolutionDims&) const = default;
};
struct ConvolutionAttrs {
  Window window;
  ConvolutionDims dims;
  int64_t feature_group_count = 1, batch_group_count = 1;
  std::vector<std::string> operand_precision;
  std::string rest;
  bool operator==(const ConvolutionAttrs&) const = default;
};
struct GatherAttrs {
  Ints offset_dims, collapsed_slice_dims, start_index_map, operand_batching_dims,
      start_indices_batching_dims, slice_sizes;
  int64_t index_vector_dim = 0;
  bool indices_are_sorted = false;
  bool operator==(const GatherAttrs&) const = default;
};
struct ScatterAttrs {
  Ints update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims, input_batching_dims,
      scatter_indices_batching_dims;
  int64_t index_vector_dim = 0;
  bool indices_are_sorted = false, unique_indices = false;
  bool operator==(const ScatterAttrs&) const = default;
};
struct SortAttrs {
  int64_t dimension = 0;
  bool is_stable = false;
  bool operator==(const SortAttrs&) const = default;
};
struct TopKAttrs {
  int64_t k = 0;
  bool largest = true, is_stable = false;
  bool operator==(const TopKAttrs&) const = default;
};
struct ScanAttrs {
  int64_t dimension = 0, num_carries = 0;
  bool is_reverse = false;
  std::string is_associative;  // as written; empty: unset
  bool operator==(const ScanAttrs&) const = default;
};
struct BatchNormAttrs {
  double epsilon = 0;
  int64_t feature_index = 0;
  bool operator==(const BatchNormAttrs&) const = default;
};
struct CholeskyAttrs {
  bool lower = false;
  bool operator==(const CholeskyAttrs&) const = default;
};
struct TriangularSolveAttrs {
  bool left_side = false, lower = false, unit_diagonal = false;
  enum class Transpose : uint8_t { no_transpose, transpose, adjoint };
  Transpose transpose_a = Transpose::no_transpose;
  bool operator==(const TriangularSolveAttrs&) const = default;
};
struct FftAttrs {
  enum class Kind : uint8_t { fft, ifft, rfft, irfft };
  Kind kind = Kind::fft;
  Ints fft_length;
  bool operator==(const FftAttrs&) const = default;
};
struct TupleIndexAttrs {
  int64_t index = 0;
  bool operator==(const TupleIndexAttrs&) const = default;
};
struct CallAttrs {
  bool is_composite = false;
  bool operator==(const CallAttrs&) const = default;
};
// { {output index}: (operand, {operand index}), ... }
struct OutputOperandAlias {
  Ints output_index;
  int64_t operand = 0;
  Ints operand_index;
  bool operator==(const OutputOperandAlias&) const = default;
};
struct FusionAttrs {
  std::string kind = "kLoop";
  std::vector<OutputOperandAlias> output_to_operand_aliasing;
  bool operator==(const FusionAttrs&) const = default;
};
struct CustomCallAttrs {
  std::string custom_call_target;
  bool has_side_effect = false;
  std::vector<OutputOperandAlias> output_to_operand_aliasing;
  std::string rest;  // other attributes, kept as written: "api_version=…, window=…"
  bool operator==(const CustomCallAttrs&) const = default;
};
struct CollectiveAttrs {
  std::string replica_groups;  // as written, any of the three forms; empty: unset
  std::vector<std::pair<int64_t, int64_t>> source_target_pairs;
  int64_t channel_id = -1;
  bool use_global_device_ids = false, constrain_layout = false;
  Ints dimensions;
  std::string rest;
  bool operator==(const CollectiveAttrs&) const = default;
};
struct ChannelAttrs {  // send, recv and their ends
  int64_t channel_id = -1;
  bool is_host_transfer = false;
  std::string rest;
  bool operator==(const ChannelAttrs&) const = default;
};
struct AsyncAttrs {
  std::string async_execution_thread;
  // Kept as written: output_to_operand_aliasing, async_group_id.
  std::string rest;
  bool operator==(const AsyncAttrs&) const = default;
};
struct RngAttrs {
  bool normal = false;  // else uniform
  bool operator==(const RngAttrs&) const = default;
};
struct RngBitGeneratorAttrs {
  enum class Algorithm : uint8_t { three_fry, philox, any };
  Algorithm algorithm = Algorithm::any;
  bool operator==(const RngBitGeneratorAttrs&) const = default;
};
struct RngStateAttrs {
  int64_t delta = 0;
  bool operator==(const RngStateAttrs&) const = default;
};
struct CopyStartAttrs {
  int64_t cross_program_prefetch_index = -1;
  bool operator==(const CopyStartAttrs&) const = default;
};
struct TextAttrs {  // domain, infeed, outfeed: kept as written, "key=value, key=value"
  std::string text;
  bool operator==(const TextAttrs&) const = default;
};

using Attrs =
    std::variant<NoAttrs, ParameterAttrs, ConstantAttrs, DimensionsAttrs, DimensionAttrs,
                 ReshapeAttrs, SliceAttrs, PadAttrs, DynamicSliceAttrs, CompareAttrs,
                 ReducePrecisionAttrs, DotAttrs, RaggedDotAttrs, WindowAttrs, ConvolutionAttrs,
                 GatherAttrs, ScatterAttrs, SortAttrs, TopKAttrs, ScanAttrs, BatchNormAttrs,
                 CholeskyAttrs, TriangularSolveAttrs, FftAttrs, TupleIndexAttrs, CallAttrs,
                 FusionAttrs, CustomCallAttrs, CollectiveAttrs, ChannelAttrs, AsyncAttrs, RngAttrs,
                 RngBitGeneratorAttrs, RngStateAttrs, CopyStartAttrs, TextAttrs>;

uint64_t hash(const Attrs& attrs);
// The struct of an opcode's row (OpcodeInfo::attrs_index), with its defaults.
Attrs default_attrs(int attrs_index);

}  // namespace heddle::hlo
