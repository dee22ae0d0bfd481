// Attribute structs from their text: one function per struct.
#include "hlo/attr_reader.h"
#include "hlo/opcode.h"

namespace heddle::hlo {
namespace {

using Operands = std::vector<Instr*>;

// A list in which every entry is the default equals no list.
void read_precision(AttrReader& r, std::vector<std::string>& out) {
  r.words("operand_precision", out);
  for (const std::string& word : out)
    if (word != "default") return;
  out.clear();
}

Attrs dimensions(Opcode opcode, AttrReader& r, const Operands& operands) {
  DimensionsAttrs a;
  const bool present = r.ints("dimensions", a.dimensions);
  if (opcode == Opcode::map) {
    const int64_t rank = operands[0]->shape().rank();
    for (int64_t d = 0; d < rank && !present; ++d) a.dimensions.push_back(d);
  } else if (opcode != Opcode::broadcast) {
    r.require(present, "dimensions");
  }
  if (opcode == Opcode::concatenate && present && a.dimensions.size() != 1)
    r.fail("dimensions", "wanted one dimension");
  return a;
}

int64_t one_dimension(AttrReader& r) {
  Ints dims;
  const bool present = r.ints("dimensions", dims);
  r.require(present, "dimensions");
  if (present && dims.size() != 1) r.fail("dimensions", "wanted one dimension");
  return dims.size() == 1 ? dims[0] : 0;
}

Attrs dimension(Opcode opcode, AttrReader& r) {
  DimensionAttrs a;
  if (opcode == Opcode::iota) {
    r.require(r.integer("iota_dimension", a.dimension), "iota_dimension");
  } else {
    a.dimension = one_dimension(r);
  }
  return a;
}

Attrs reshape(AttrReader& r) {
  ReshapeAttrs a;
  r.integer("inferred_dimension", a.inferred_dimension);
  return a;
}

Attrs slice(AttrReader& r) {
  SliceAttrs a;
  r.require(r.slices("slice", a), "slice");
  return a;
}

Attrs pad(AttrReader& r, const Operands& operands) {
  PadAttrs a;
  const bool present = r.padding("padding", a);
  if (!operands[0]->shape().is_scalar()) r.require(present, "padding");
  return a;
}

Attrs dynamic_slice(AttrReader& r) {
  DynamicSliceAttrs a;
  r.require(r.ints("dynamic_slice_sizes", a.slice_sizes), "dynamic_slice_sizes");
  return a;
}

Attrs compare(AttrReader& r) {
  CompareAttrs a;
  const int direction = r.choice("direction", {"EQ", "NE", "GE", "GT", "LE", "LT"});
  r.require(direction >= 0, "direction");
  a.direction = static_cast<Direction>(direction < 0 ? 0 : direction);
  const int type = r.choice("type", {"FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"});
  a.type = static_cast<CompareType>(type + 1);
  return a;
}

Attrs reduce_precision(AttrReader& r) {
  ReducePrecisionAttrs a;
  r.require(r.integer("exponent_bits", a.exponent_bits), "exponent_bits");
  r.require(r.integer("mantissa_bits", a.mantissa_bits), "mantissa_bits");
  return a;
}

DotAttrs dot(AttrReader& r) {
  DotAttrs a;
  r.ints("lhs_batch_dims", a.lhs_batch_dims);
  r.ints("lhs_contracting_dims", a.lhs_contracting_dims);
  r.ints("rhs_batch_dims", a.rhs_batch_dims);
  r.ints("rhs_contracting_dims", a.rhs_contracting_dims);
  read_precision(r, a.operand_precision);
  r.word("algorithm", a.algorithm);
  a.rest = r.rest({"sparsity", "backend"});
  return a;
}

Attrs ragged_dot(AttrReader& r) {
  RaggedDotAttrs a;
  a.dot = dot(r);
  r.ints("lhs_ragged_dims", a.lhs_ragged_dims);
  r.ints("rhs_group_dims", a.rhs_group_dims);
  return a;
}

Attrs window(AttrReader& r) {
  WindowAttrs a;
  r.window("window", a.window);
  return a;
}

Attrs convolution(AttrReader& r) {
  ConvolutionAttrs a;
  r.window("window", a.window);
  r.require(r.dim_labels("dim_labels", a.dims), "dim_labels");
  if (a.window.dims.size() != a.dims.kernel_spatial.size())
    r.fail("window", fmt::format("the window has {} dimensions, dim_labels {}",
                                 a.window.dims.size(), a.dims.kernel_spatial.size()));
  r.integer("feature_group_count", a.feature_group_count);
  r.integer("batch_group_count", a.batch_group_count);
  read_precision(r, a.operand_precision);
  a.rest = r.rest({"algorithm", "convolution_kind", "sparsity_config"});
  return a;
}

Attrs gather(AttrReader& r) {
  GatherAttrs a;
  r.require(r.ints("offset_dims", a.offset_dims), "offset_dims");
  r.require(r.ints("collapsed_slice_dims", a.collapsed_slice_dims), "collapsed_slice_dims");
  r.require(r.ints("start_index_map", a.start_index_map), "start_index_map");
  r.require(r.integer("index_vector_dim", a.index_vector_dim), "index_vector_dim");
  r.require(r.ints("slice_sizes", a.slice_sizes), "slice_sizes");
  r.ints("operand_batching_dims", a.operand_batching_dims);
  r.ints("start_indices_batching_dims", a.start_indices_batching_dims);
  r.boolean("indices_are_sorted", a.indices_are_sorted);
  return a;
}

Attrs scatter(AttrReader& r) {
  ScatterAttrs a;
  r.require(r.ints("update_window_dims", a.update_window_dims), "update_window_dims");
  r.require(r.ints("inserted_window_dims", a.inserted_window_dims), "inserted_window_dims");
  r.require(r.ints("scatter_dims_to_operand_dims", a.scatter_dims_to_operand_dims),
            "scatter_dims_to_operand_dims");
  r.require(r.integer("index_vector_dim", a.index_vector_dim), "index_vector_dim");
  r.ints("input_batching_dims", a.input_batching_dims);
  r.ints("scatter_indices_batching_dims", a.scatter_indices_batching_dims);
  r.boolean("indices_are_sorted", a.indices_are_sorted);
  r.boolean("unique_indices", a.unique_indices);
  return a;
}

Attrs sort(AttrReader& r) {
  SortAttrs a;
  a.dimension = one_dimension(r);
  r.boolean("is_stable", a.is_stable);
  return a;
}

Attrs topk(AttrReader& r) {
  TopKAttrs a;
  r.require(r.integer("k", a.k), "k");
  r.boolean("largest", a.largest);
  r.boolean("is_stable", a.is_stable);
  return a;
}

Attrs scan(AttrReader& r) {
  ScanAttrs a;
  a.dimension = one_dimension(r);
  r.integer("num_carries", a.num_carries);
  r.boolean("is_reverse", a.is_reverse);
  r.word("is_associative", a.is_associative);
  return a;
}

Attrs batch_norm(AttrReader& r) {
  BatchNormAttrs a;
  r.require(r.number("epsilon", a.epsilon), "epsilon");
  r.require(r.integer("feature_index", a.feature_index), "feature_index");
  return a;
}

Attrs cholesky(AttrReader& r) {
  CholeskyAttrs a;
  r.boolean("lower", a.lower);
  return a;
}

Attrs triangular_solve(AttrReader& r) {
  TriangularSolveAttrs a;
  r.boolean("left_side", a.left_side);
  r.boolean("lower", a.lower);
  r.boolean("unit_diagonal", a.unit_diagonal);
  const int transpose = r.choice("transpose_a", {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"});
  a.transpose_a = static_cast<TriangularSolveAttrs::Transpose>(transpose < 0 ? 0 : transpose);
  return a;
}

Attrs fft(AttrReader& r) {
  FftAttrs a;
  const int kind = r.choice("fft_type", {"FFT", "IFFT", "RFFT", "IRFFT"});
  r.require(kind >= 0, "fft_type");
  a.kind = static_cast<FftAttrs::Kind>(kind < 0 ? 0 : kind);
  r.require(r.ints("fft_length", a.fft_length), "fft_length");
  return a;
}

Attrs tuple_index(AttrReader& r) {
  TupleIndexAttrs a;
  r.require(r.integer("index", a.index), "index");
  return a;
}

Attrs call(AttrReader& r) {
  CallAttrs a;
  r.boolean("is_composite", a.is_composite);
  return a;
}

Attrs fusion(AttrReader& r) {
  FusionAttrs a;
  const int kind = r.choice("kind", {"kLoop", "kInput", "kOutput", "kCustom"});
  r.require(kind >= 0, "kind");
  static constexpr std::string_view kKinds[] = {"kLoop", "kInput", "kOutput", "kCustom"};
  a.kind = kKinds[kind < 0 ? 0 : kind];
  r.aliasing("output_to_operand_aliasing", a.output_to_operand_aliasing);
  return a;
}

Attrs custom_call(AttrReader& r) {
  CustomCallAttrs a;
  r.require(r.quoted("custom_call_target", a.custom_call_target), "custom_call_target");
  r.boolean("custom_call_has_side_effect", a.has_side_effect);
  r.aliasing("output_to_operand_aliasing", a.output_to_operand_aliasing);
  a.rest = r.rest({"operand_layout_constraints", "literal", "schedule", "api_version",
                   "padding_type", "window", "dim_labels", "feature_group_count",
                   "batch_group_count", "operand_precision"});
  return a;
}

Attrs collective_attrs(AttrReader& r) {
  CollectiveAttrs a;
  r.raw("replica_groups", a.replica_groups);
  r.pairs("source_target_pairs", a.source_target_pairs);
  r.integer("channel_id", a.channel_id);
  r.boolean("use_global_device_ids", a.use_global_device_ids);
  r.boolean("constrain_layout", a.constrain_layout);
  r.ints("dimensions", a.dimensions);
  a.rest = r.rest({"mode", "has_dynamic_root", "slice_sizes"});
  return a;
}

Attrs channel(AttrReader& r) {
  ChannelAttrs a;
  r.integer("channel_id", a.channel_id);
  r.boolean("is_host_transfer", a.is_host_transfer);
  a.rest = r.rest({"source_target_pairs"});
  return a;
}

Attrs async(AttrReader& r) {
  AsyncAttrs a;
  r.quoted("async_execution_thread", a.async_execution_thread);
  a.rest = r.rest({"output_to_operand_aliasing", "async_group_id"});
  return a;
}

Attrs rng(AttrReader& r) {
  RngAttrs a;
  const int which = r.choice("distribution", {"rng_uniform", "rng_normal"});
  r.require(which >= 0, "distribution");
  a.normal = which == 1;
  return a;
}

Attrs rng_bit_generator(AttrReader& r) {
  RngBitGeneratorAttrs a;
  const int which = r.choice("algorithm", {"rng_three_fry", "rng_philox", "rng_default"});
  r.require(which >= 0, "algorithm");
  a.algorithm = static_cast<RngBitGeneratorAttrs::Algorithm>(which < 0 ? 0 : which);
  return a;
}

Attrs rng_state(AttrReader& r) {
  RngStateAttrs a;
  r.require(r.integer("delta", a.delta), "delta");
  return a;
}

Attrs copy_start(AttrReader& r) {
  CopyStartAttrs a;
  r.integer("cross_program_prefetch_index", a.cross_program_prefetch_index);
  return a;
}

Attrs text(AttrReader& r) {
  return TextAttrs{r.rest({"domain", "infeed_config", "outfeed_config", "outfeed_shape"})};
}

}  // namespace

Result<Attrs> read_attrs(Opcode opcode, AttrReader& r, const Operands& operands) {
  // Calls the reader of a struct, found by the struct's index in Attrs.
  struct Dispatch {
    Opcode opcode;
    AttrReader& r;
    const Operands& operands;
    Attrs operator()(const NoAttrs&) { return NoAttrs{}; }
    Attrs operator()(const ParameterAttrs& a) { return a; }
    Attrs operator()(const ConstantAttrs& a) { return a; }
    Attrs operator()(const DimensionsAttrs&) { return dimensions(opcode, r, operands); }
    Attrs operator()(const DimensionAttrs&) { return dimension(opcode, r); }
    Attrs operator()(const ReshapeAttrs&) { return reshape(r); }
    Attrs operator()(const SliceAttrs&) { return slice(r); }
    Attrs operator()(const PadAttrs&) { return pad(r, operands); }
    Attrs operator()(const DynamicSliceAttrs&) { return dynamic_slice(r); }
    Attrs operator()(const CompareAttrs&) { return compare(r); }
    Attrs operator()(const ReducePrecisionAttrs&) { return reduce_precision(r); }
    Attrs operator()(const DotAttrs&) { return dot(r); }
    Attrs operator()(const RaggedDotAttrs&) { return ragged_dot(r); }
    Attrs operator()(const WindowAttrs&) { return window(r); }
    Attrs operator()(const ConvolutionAttrs&) { return convolution(r); }
    Attrs operator()(const GatherAttrs&) { return gather(r); }
    Attrs operator()(const ScatterAttrs&) { return scatter(r); }
    Attrs operator()(const SortAttrs&) { return sort(r); }
    Attrs operator()(const TopKAttrs&) { return topk(r); }
    Attrs operator()(const ScanAttrs&) { return scan(r); }
    Attrs operator()(const BatchNormAttrs&) { return batch_norm(r); }
    Attrs operator()(const CholeskyAttrs&) { return cholesky(r); }
    Attrs operator()(const TriangularSolveAttrs&) { return triangular_solve(r); }
    Attrs operator()(const FftAttrs&) { return fft(r); }
    Attrs operator()(const TupleIndexAttrs&) { return tuple_index(r); }
    Attrs operator()(const CallAttrs&) { return call(r); }
    Attrs operator()(const FusionAttrs&) { return fusion(r); }
    Attrs operator()(const CustomCallAttrs&) { return custom_call(r); }
    Attrs operator()(const CollectiveAttrs&) { return collective_attrs(r); }
    Attrs operator()(const ChannelAttrs&) { return channel(r); }
    Attrs operator()(const AsyncAttrs&) { return async(r); }
    Attrs operator()(const RngAttrs&) { return rng(r); }
    Attrs operator()(const RngBitGeneratorAttrs&) { return rng_bit_generator(r); }
    Attrs operator()(const RngStateAttrs&) { return rng_state(r); }
    Attrs operator()(const CopyStartAttrs&) { return copy_start(r); }
    Attrs operator()(const TextAttrs&) { return text(r); }
  };
  Attrs attrs =
      std::visit(Dispatch{opcode, r, operands}, default_attrs(opcode_info(opcode).attrs_index));
  HEDDLE_RETURN_IF_ERROR(r.status());
  return attrs;
}

Result<std::vector<Computation*>> read_called(Opcode opcode, AttrReader& r) {
  std::vector<Computation*> out;
  auto need = [&](std::string_view key) { r.require(r.called(key, out), key); };
  switch (opcode) {
    case Opcode::while_:
      need("condition");
      need("body");
      break;
    case Opcode::conditional:
      if (!r.called("branch_computations", out)) {
        need("true_computation");
        need("false_computation");
      }
      if (out.empty()) r.fail("branch_computations", "wanted at least one branch");
      break;
    case Opcode::select_and_scatter:
      need("select");
      need("scatter");
      break;
    case Opcode::fusion:
    case Opcode::async_start:
      need("calls");
      break;
    case Opcode::async_update:
    case Opcode::async_done:
      r.called("calls", out);
      break;
    case Opcode::custom_call:
      if (!r.called("called_computations", out) && !r.called("to_apply", out))
        r.called("calls", out);
      break;
    case Opcode::map:
    case Opcode::reduce:
    case Opcode::reduce_window:
    case Opcode::scan:
    case Opcode::scatter:
    case Opcode::sort:
    case Opcode::call:
    case Opcode::all_reduce:
    case Opcode::all_reduce_start:
    case Opcode::reduce_scatter:
      need("to_apply");
      break;
    default:
      break;
  }
  HEDDLE_RETURN_IF_ERROR(r.status());
  return out;
}

}  // namespace heddle::hlo
