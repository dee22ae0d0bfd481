#include "hlo/attrs.h"

#include <cstring>
#include <string_view>

#include "base/hash.h"

namespace heddle::hlo {
namespace {

// Gathers the fields of an attribute struct, each with its length, so that no two values share
// their bytes.
class Bytes {
 public:
  template <typename... Fields>
  uint64_t hash_of(const Fields&... fields) {
    (add(fields), ...);
    return hash64(bytes_);
  }

  void add(int64_t value) { raw(&value, sizeof(value)); }
  void add(bool value) { add(static_cast<int64_t>(value)); }
  void add(double value) {
    value += 0.0;  // equal values, equal hash: -0 is 0
    raw(&value, sizeof(value));
  }
  template <typename E>
    requires std::is_enum_v<E>
  void add(E value) {
    add(static_cast<int64_t>(value));
  }
  void add(const std::string& text) {
    add(static_cast<int64_t>(text.size()));
    raw(text.data(), text.size());
  }
  template <typename T>
  void add(const std::vector<T>& values) {
    add(static_cast<int64_t>(values.size()));
    for (const T& value : values) add(value);
  }
  void add(const std::pair<int64_t, int64_t>& pair) {
    add(pair.first);
    add(pair.second);
  }
  void add(const tensor::Literal& literal) {
    add(tensor::to_string(literal.shape(), /*layouts=*/false));
    if (literal.shape().is_tuple()) {
      for (const tensor::Literal& element : literal.elements()) add(element);
    } else if (literal.shape().is_array()) {
      // A hash of the data instead of the data: constants are large.
      add(static_cast<int64_t>(hash64(
          {static_cast<const char*>(literal.data()), static_cast<size_t>(literal.bytes())})));
    }
  }
  void add(const WindowDim& d) {
    for (int64_t v : {d.size, d.stride, d.pad_low, d.pad_high, d.lhs_dilate, d.rhs_dilate}) add(v);
    add(d.reversal);
  }
  void add(const Window& window) { add(window.dims); }
  void add(const OutputOperandAlias& a) {
    add(a.output_index);
    add(a.operand);
    add(a.operand_index);
  }
  void add(const ConvolutionDims& d) {
    for (int64_t v : {d.input_batch, d.input_feature, d.kernel_input_feature,
                      d.kernel_output_feature, d.output_batch, d.output_feature})
      add(v);
    add(d.input_spatial);
    add(d.kernel_spatial);
    add(d.output_spatial);
  }
  void add(const DotAttrs& a) {
    add(a.lhs_batch_dims);
    add(a.lhs_contracting_dims);
    add(a.rhs_batch_dims);
    add(a.rhs_contracting_dims);
    add(a.operand_precision);
    add(a.algorithm);
    add(a.rest);
  }

 private:
  void raw(const void* data, size_t size) { bytes_.append(static_cast<const char*>(data), size); }
  std::string bytes_;
};

// One overload a struct: the order of the fields is that of attrs.h.
struct Hasher {
  Bytes b;
  uint64_t operator()(const NoAttrs&) { return 0; }
  uint64_t operator()(const ParameterAttrs& a) { return b.hash_of(a.number); }
  uint64_t operator()(const ConstantAttrs& a) { return b.hash_of(a.value, a.elided); }
  uint64_t operator()(const DimensionsAttrs& a) { return b.hash_of(a.dimensions); }
  uint64_t operator()(const DimensionAttrs& a) { return b.hash_of(a.dimension); }
  uint64_t operator()(const ReshapeAttrs& a) { return b.hash_of(a.inferred_dimension); }
  uint64_t operator()(const SliceAttrs& a) { return b.hash_of(a.starts, a.limits, a.strides); }
  uint64_t operator()(const PadAttrs& a) { return b.hash_of(a.low, a.high, a.interior); }
  uint64_t operator()(const DynamicSliceAttrs& a) { return b.hash_of(a.slice_sizes); }
  uint64_t operator()(const CompareAttrs& a) { return b.hash_of(a.direction, a.type); }
  uint64_t operator()(const ReducePrecisionAttrs& a) {
    return b.hash_of(a.exponent_bits, a.mantissa_bits);
  }
  uint64_t operator()(const DotAttrs& a) { return b.hash_of(a); }
  uint64_t operator()(const RaggedDotAttrs& a) {
    return b.hash_of(a.dot, a.lhs_ragged_dims, a.rhs_group_dims);
  }
  uint64_t operator()(const WindowAttrs& a) { return b.hash_of(a.window); }
  uint64_t operator()(const ConvolutionAttrs& a) {
    return b.hash_of(a.window, a.dims, a.feature_group_count, a.batch_group_count,
                     a.operand_precision, a.rest);
  }
  uint64_t operator()(const GatherAttrs& a) {
    return b.hash_of(a.offset_dims, a.collapsed_slice_dims, a.start_index_map,
                     a.operand_batching_dims, a.start_indices_batching_dims, a.slice_sizes,
                     a.index_vector_dim, a.indices_are_sorted);
  }
  uint64_t operator()(const ScatterAttrs& a) {
    return b.hash_of(a.update_window_dims, a.inserted_window_dims, a.scatter_dims_to_operand_dims,
                     a.input_batching_dims, a.scatter_indices_batching_dims, a.index_vector_dim,
                     a.indices_are_sorted, a.unique_indices);
  }
  uint64_t operator()(const SortAttrs& a) { return b.hash_of(a.dimension, a.is_stable); }
  uint64_t operator()(const TopKAttrs& a) { return b.hash_of(a.k, a.largest, a.is_stable); }
  uint64_t operator()(const ScanAttrs& a) {
    return b.hash_of(a.dimension, a.num_carries, a.is_reverse, a.is_associative);
  }
  uint64_t operator()(const BatchNormAttrs& a) { return b.hash_of(a.epsilon, a.feature_index); }
  uint64_t operator()(const CholeskyAttrs& a) { return b.hash_of(a.lower); }
  uint64_t operator()(const TriangularSolveAttrs& a) {
    return b.hash_of(a.left_side, a.lower, a.unit_diagonal, a.transpose_a);
  }
  uint64_t operator()(const FftAttrs& a) { return b.hash_of(a.kind, a.fft_length); }
  uint64_t operator()(const TupleIndexAttrs& a) { return b.hash_of(a.index); }
  uint64_t operator()(const CallAttrs& a) { return b.hash_of(a.is_composite); }
  uint64_t operator()(const FusionAttrs& a) {
    return b.hash_of(a.kind, a.output_to_operand_aliasing);
  }
  uint64_t operator()(const CustomCallAttrs& a) {
    return b.hash_of(a.custom_call_target, a.has_side_effect, a.output_to_operand_aliasing, a.rest);
  }
  uint64_t operator()(const CollectiveAttrs& a) {
    return b.hash_of(a.replica_groups, a.source_target_pairs, a.channel_id, a.use_global_device_ids,
                     a.constrain_layout, a.dimensions, a.rest);
  }
  uint64_t operator()(const ChannelAttrs& a) {
    return b.hash_of(a.channel_id, a.is_host_transfer, a.rest);
  }
  uint64_t operator()(const AsyncAttrs& a) { return b.hash_of(a.async_execution_thread, a.rest); }
  uint64_t operator()(const RngAttrs& a) { return b.hash_of(a.normal); }
  uint64_t operator()(const RngBitGeneratorAttrs& a) { return b.hash_of(a.algorithm); }
  uint64_t operator()(const RngStateAttrs& a) { return b.hash_of(a.delta); }
  uint64_t operator()(const CopyStartAttrs& a) { return b.hash_of(a.cross_program_prefetch_index); }
  uint64_t operator()(const TextAttrs& a) { return b.hash_of(a.text); }
};

template <size_t... I>
Attrs default_at(int index, std::index_sequence<I...>) {
  Attrs attrs;
  (((index == static_cast<int>(I)) ? static_cast<void>(attrs.emplace<I>()) : void()), ...);
  return attrs;
}

}  // namespace

Attrs default_attrs(int attrs_index) {
  return default_at(attrs_index, std::make_index_sequence<std::variant_size_v<Attrs>>());
}

uint64_t hash(const Attrs& attrs) {
  const uint64_t fields = std::visit(Hasher{}, attrs);
  return hash64({reinterpret_cast<const char*>(&fields), sizeof(fields)}, attrs.index());
}

}  // namespace heddle::hlo
