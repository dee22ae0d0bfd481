// The fields of an instruction's attributes, one function for each struct of hlo/attrs.h: see
// hlo_proto_fields.h. Called with the struct's defaults (reading) or a copy of it (writing).
#pragma once

#include "hlo/opcode.h"
#include "import/hlo_proto_fields.h"

namespace heddle::import {

template <typename Io>
struct AttrFields {
  Io& io;
  hlo::Opcode opcode;
  tensor::Type operand;  // element type of the first operand; tuple: no operand

  void operator()(hlo::NoAttrs&) {}
  void operator()(hlo::ParameterAttrs& a) { io.integer(9, a.number); }
  void operator()(hlo::ConstantAttrs&) {}  // the literal is handled separately
  void operator()(hlo::DimensionsAttrs& a) { io.ints(14, a.dimensions); }
  void operator()(hlo::DimensionAttrs& a) { dimension(a.dimension); }
  void operator()(hlo::ReshapeAttrs& a) {
    Ints dims;
    if (a.inferred_dimension >= 0) dims.push_back(a.inferred_dimension);
    io.ints(14, dims);
    a.inferred_dimension = dims.empty() ? -1 : dims[0];
  }
  void operator()(hlo::SliceAttrs& a) {
    io.each(17, a.starts.size(), [&](Io& m, size_t i) {
      m.integer(1, place(a.starts, i));
      m.integer(2, place(a.limits, i));
      m.integer(3, place(a.strides, i));
    });
  }
  void operator()(hlo::PadAttrs& a) {
    io.message(21, true, [&](Io& config) {
      config.each(1, a.low.size(), [&](Io& m, size_t i) {
        m.integer(1, place(a.low, i));
        m.integer(2, place(a.high, i));
        m.integer(3, place(a.interior, i));
      });
    });
  }
  void operator()(hlo::DynamicSliceAttrs& a) { io.ints(20, a.slice_sizes); }
  void operator()(hlo::CompareAttrs& a) {
    static constexpr std::array<std::string_view, 6> kDirections = {"EQ", "NE", "GE",
                                                                    "GT", "LE", "LT"};
    static constexpr std::array<std::string_view, 5> kTypes = {"", "FLOAT", "TOTALORDER", "SIGNED",
                                                               "UNSIGNED"};
    word(63, kDirections, a.direction);
    // A proto always has the type of a comparison, text only if it is not the default.
    if (a.type == hlo::CompareType::by_type) a.type = usual_comparison();
    word(72, kTypes, a.type);
    if (Io::kReads && a.type == usual_comparison()) a.type = hlo::CompareType::by_type;
  }
  void operator()(hlo::ReducePrecisionAttrs& a) {
    io.integer(18, a.exponent_bits);
    io.integer(19, a.mantissa_bits);
  }
  void operator()(hlo::DotAttrs& a) {
    dot_dim_fields(io, 30, a);
    precision_fields(io, a.operand_precision, a.algorithm);
    keep_rest(Rest(a.rest), a.rest);
    check_dense();
  }
  void operator()(hlo::RaggedDotAttrs& a) {
    io.message(90, true, [&](Io& m) {
      dot_dim_fields(m, 1, a.dot);
      m.ints(2, a.lhs_ragged_dims);
      m.ints(3, a.rhs_group_dims);
    });
    precision_fields(io, a.dot.operand_precision, a.dot.algorithm);
  }
  void operator()(hlo::WindowAttrs& a) { window_fields(io, 15, a.window); }
  void operator()(hlo::ConvolutionAttrs& a) {
    window_fields(io, 15, a.window);
    convolution_dim_fields(io, 16, a.dims);
    if (a.window.dims.size() != a.dims.kernel_spatial.size())
      fail("convolution: a window of {} dimensions, {} spatial ones", a.window.dims.size(),
           a.dims.kernel_spatial.size());
    counts(a.feature_group_count, a.batch_group_count);
    Rest rest(a.rest);
    std::string algorithm = rest.take("algorithm"), kind = rest.take("convolution_kind");
    precision_fields(io, a.operand_precision, algorithm);
    static const std::initializer_list<std::string> kKinds = {"", "fprop", "dgrad", "wgrad"};
    choose(io, 97, "the kind of a convolution", kind, kKinds);
    if constexpr (Io::kReads) {
      check_dense();
      if (!algorithm.empty()) rest.put("algorithm", algorithm);
      if (!kind.empty()) rest.put("convolution_kind", kind);
    }
    keep_rest(rest, a.rest);
  }
  void operator()(hlo::GatherAttrs& a) {
    io.message(33, true, [&](Io& m) {
      m.ints(1, a.offset_dims);
      m.ints(2, a.collapsed_slice_dims);
      m.ints(3, a.start_index_map);
      m.integer(4, a.index_vector_dim);
      m.ints(5, a.operand_batching_dims);
      m.ints(6, a.start_indices_batching_dims);
    });
    io.ints(34, a.slice_sizes);
    io.boolean(67, a.indices_are_sorted);
  }
  void operator()(hlo::ScatterAttrs& a) {
    io.message(48, true, [&](Io& m) {
      m.ints(1, a.update_window_dims);
      m.ints(2, a.inserted_window_dims);
      m.ints(3, a.scatter_dims_to_operand_dims);
      m.integer(4, a.index_vector_dim);
      m.ints(5, a.input_batching_dims);
      m.ints(6, a.scatter_indices_batching_dims);
    });
    io.boolean(67, a.indices_are_sorted);
    io.boolean(69, a.unique_indices);
  }
  void operator()(hlo::SortAttrs& a) {
    dimension(a.dimension);
    io.boolean(60, a.is_stable);
  }
  void operator()(hlo::TopKAttrs& a) {
    io.integer(81, a.k);
    io.boolean(85, a.largest);
    io.boolean(60, a.is_stable);
  }
  void operator()(hlo::ScanAttrs& a) {
    dimension(a.dimension);
    io.integer(95, a.num_carries);
    io.boolean(94, a.is_reverse);
    static const std::initializer_list<std::string> kStates = {"", "true", "false"};
    choose(io, 96, "is_associative", a.is_associative, kStates);
  }
  void operator()(hlo::BatchNormAttrs& a) {
    // The shortest text of the 32-bit number, as in HLO text.
    float epsilon = static_cast<float>(a.epsilon);
    io.real(24, epsilon);
    if constexpr (Io::kReads) a.epsilon = std::strtod(fmt::to_string(epsilon).c_str(), nullptr);
    io.integer(25, a.feature_index);
  }
  void operator()(hlo::CholeskyAttrs& a) {
    io.message(62, true, [&](Io& m) { m.boolean(1, a.lower); });
  }
  void operator()(hlo::TriangularSolveAttrs& a) {
    io.message(59, true, [&](Io& m) {
      m.boolean(1, a.left_side);
      m.boolean(2, a.lower);
      m.boolean(3, a.unit_diagonal);
      int64_t transpose = static_cast<int64_t>(a.transpose_a) + 1;
      m.integer(4, transpose);
      if (transpose < 0 || transpose > 3) fail("transpose_a has the unknown value {}", transpose);
      a.transpose_a =
          static_cast<hlo::TriangularSolveAttrs::Transpose>(transpose == 0 ? 0 : transpose - 1);
    });
  }
  void operator()(hlo::FftAttrs& a) {
    using Kind = hlo::FftAttrs::Kind;
    choose(io, 31, "the kind of an fft", a.kind, {Kind::fft, Kind::ifft, Kind::rfft, Kind::irfft});
    io.ints(32, a.fft_length);
  }
  void operator()(hlo::TupleIndexAttrs& a) { io.integer(13, a.index); }
  void operator()(hlo::CallAttrs& a) { io.boolean(89, a.is_composite); }
  void operator()(hlo::FusionAttrs& a) {
    io.bytes(11, a.kind);
    static constexpr std::array<std::string_view, 4> kKinds = {"kLoop", "kInput", "kOutput",
                                                               "kCustom"};
    if (std::find(kKinds.begin(), kKinds.end(), a.kind) == kKinds.end())
      fail("the kind of a fusion is {}, wanted kLoop, kInput, kOutput or kCustom", quoted(a.kind));
    aliasing_fields(io, a.output_to_operand_aliasing);
  }
  void operator()(hlo::CustomCallAttrs& a);
  void operator()(hlo::CollectiveAttrs& a) {
    ReplicaGroups groups = read_replica_groups(a.replica_groups);
    const bool has_groups = !a.replica_groups.empty();
    bool read = io.message(87, has_groups && !groups.is_counted(), [&](Io& m) {
      group_fields(m, 1, groups.groups);
      if constexpr (Io::kReads) counted_group_fields(m, 2, groups);  // the old place
    });
    counted_group_fields(io, 92, groups);
    if constexpr (Io::kReads) {
      if (io.has(93)) fail("replica groups by the axes of a mesh are not supported");
      if (groups.groups.empty() && !groups.is_counted()) group_fields(io, 49, groups.groups);
      read = read || io.has(92) || io.has(49);
      if (read) a.replica_groups = replica_groups_text(groups);
    }
    pairs(a.source_target_pairs);
    channel(a.channel_id);
    io.boolean(71, a.use_global_device_ids);
    io.boolean(56, a.constrain_layout);
    io.ints(14, a.dimensions);
    keep_rest(Rest(a.rest), a.rest);
  }
  void operator()(hlo::ChannelAttrs& a) {
    channel(a.channel_id);
    io.boolean(47, a.is_host_transfer);
    keep_rest(Rest(a.rest), a.rest);
  }
  void operator()(hlo::AsyncAttrs& a) {
    io.bytes(79, a.async_execution_thread);
    if (Io::kReads && a.async_execution_thread == "main") a.async_execution_thread.clear();
    keep_rest(Rest(a.rest), a.rest);
  }
  void operator()(hlo::RngAttrs& a) {
    int64_t distribution = a.normal ? 2 : 1;
    io.integer(23, distribution);
    if (distribution != 1 && distribution != 2)
      fail("the distribution of an rng has the unknown value {}", distribution);
    a.normal = distribution == 2;
  }
  void operator()(hlo::RngBitGeneratorAttrs& a) {
    using Algorithm = hlo::RngBitGeneratorAttrs::Algorithm;
    choose(io, 70, "the algorithm of an rng", a.algorithm,
           {Algorithm::any, Algorithm::three_fry, Algorithm::philox});
  }
  void operator()(hlo::RngStateAttrs& a) { io.integer(66, a.delta); }
  void operator()(hlo::CopyStartAttrs& a) {
    // Index 0 is written too: an absent field means none.
    io.optional(80, a.cross_program_prefetch_index, -1);
  }
  void operator()(hlo::TextAttrs& a);

 private:
  void dimension(int64_t& one) {
    Ints dims = {one};
    io.ints(14, dims);
    if (dims.size() != 1)
      fail("{}: {} dimensions, wanted one", hlo::opcode_text(opcode), dims.size());
    one = dims[0];
  }
  void counts(int64_t& features, int64_t& batches) {
    io.integer(50, features);
    io.integer(58, batches);
    if (features == 0) features = 1;
    if (batches == 0) batches = 1;
  }
  void channel(int64_t& id) {
    int64_t number = id < 0 ? 0 : id;
    io.integer(26, number);
    if constexpr (Io::kReads)
      if (number <= 0) io.integer(45, number);  // the old name: all_reduce_id
    id = number <= 0 ? -1 : number;
  }
  void pairs(std::vector<std::pair<int64_t, int64_t>>& list) {
    io.each(52, list.size(), [&](Io& m, size_t i) {
      m.integer(1, place(list, i).first);
      m.integer(2, list[i].second);
    });
  }
  void check_dense() {
    if constexpr (Io::kReads) {
      bool sparse = io.has(86);
      io.message(98, false, [&](Io& m) { sparse = sparse || m.has(1) || m.has(2); });
      if (sparse) fail("{}: sparse operands are not supported", hlo::opcode_text(opcode));
    }
  }
  // An enumeration as text.
  template <typename E, size_t n>
  void word(int field, const std::array<std::string_view, n>& words, E& value) {
    std::string text(words[static_cast<size_t>(value)]);
    io.bytes(field, text);
    const auto found = std::find(words.begin(), words.end(), text);
    if (found == words.end()) fail("{}: unknown word {}", hlo::opcode_text(opcode), quoted(text));
    value = static_cast<E>(found - words.begin());
  }
  hlo::CompareType usual_comparison() const {
    if (tensor::is_float(operand) || tensor::is_complex(operand)) return hlo::CompareType::floating;
    return tensor::is_signed_integer(operand) ? hlo::CompareType::is_signed
                                              : hlo::CompareType::is_unsigned;
  }
  // Reports text that has no field; keeps text that was read.
  void keep_rest(const Rest& rest, std::string& text) {
    if constexpr (Io::kReads) {
      text = rest.text();
    } else {
      for (const auto& [key, value] : rest.parts()) io.lose(key);
    }
  }
};

template <typename Io>
void AttrFields<Io>::operator()(hlo::CustomCallAttrs& a) {
  io.bytes(28, a.custom_call_target);
  io.boolean(65, a.has_side_effect);
  aliasing_fields(io, a.output_to_operand_aliasing);
  Rest rest(a.rest);
  const std::string constraints = rest.take("operand_layout_constraints");
  std::vector<tensor::Shape> shapes;
  if (!constraints.empty())
    shapes = value_or_throw(hlo::parse_shape("(" + without_braces(constraints) + ")")).elements();
  bool constrains = !constraints.empty();
  io.boolean(56, constrains);
  io.each(57, shapes.size(), [&](Io& m, size_t i) {
    tensor::Shape& shape = place(shapes, i);
    std::vector<std::string> lost;
    ShapeMessage message = from_shape(shape, &lost);
    if constexpr (Io::kReads) message = {};
    shape_fields(m, message);
    if constexpr (Io::kReads) shape = to_shape(message);
  });
  static const std::initializer_list<std::string> kSchedules = {"", "SCHEDULE_LATEST",
                                                                "SCHEDULE_EARLIEST"};
  static const std::initializer_list<std::string> kVersions = {
      "API_VERSION_UNSPECIFIED", "", "API_VERSION_STATUS_RETURNING",
      "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"};
  static const std::initializer_list<std::string> kPaddings = {"", "PADDING_VALID", "PADDING_SAME"};
  std::string schedule = rest.take("schedule"), version = rest.take("api_version"),
              padding = rest.take("padding_type"), features = rest.take("feature_group_count"),
              batches = rest.take("batch_group_count");
  choose(io, 76, "the schedule of a custom call", schedule, kSchedules);
  choose(io, 77, "the version of a custom call", version, kVersions);
  choose(io, 75, "the padding of a custom call", padding, kPaddings);
  int64_t feature_count = features.empty() ? 1 : number_in(features),
          batch_count = batches.empty() ? 1 : number_in(batches);
  counts(feature_count, batch_count);
  if constexpr (Io::kReads) {
    if (constrains) {
      std::string list;
      for (const tensor::Shape& shape : shapes)
        list += (list.empty() ? "" : ", ") + tensor::to_string(shape);
      rest.put("operand_layout_constraints", "{" + list + "}");
    }
    if (feature_count != 1) rest.put("feature_group_count", std::to_string(feature_count));
    if (batch_count != 1) rest.put("batch_group_count", std::to_string(batch_count));
    if (!padding.empty()) rest.put("padding_type", padding);
    if (!schedule.empty()) rest.put("schedule", schedule);
    if (!version.empty() && version != *kVersions.begin()) rest.put("api_version", version);
  }
  keep_rest(rest, a.rest);
}

template <typename Io>
void AttrFields<Io>::operator()(hlo::TextAttrs& a) {
  Rest rest(a.text);
  const auto string = [&](int field, std::string_view key) {
    std::string text = unquoted(rest.take(key));
    io.bytes(field, text);
    if (Io::kReads && !text.empty()) rest.put(key, hlo::quote(text));
  };
  if (opcode == hlo::Opcode::infeed) string(27, "infeed_config");
  if (opcode == hlo::Opcode::outfeed) {
    const std::string text = rest.take("outfeed_shape");
    std::optional<tensor::Shape> shape;
    if (!text.empty()) shape = value_or_throw(hlo::parse_shape(text));
    shape = shape_field(io, 29, shape ? &*shape : nullptr);
    if (shape) rest.put("outfeed_shape", tensor::to_string(*shape));
    string(22, "outfeed_config");
  }
  if (opcode == hlo::Opcode::domain) {
    const std::string domain = rest.take("domain");
    Rest inner(domain.empty() ? "" : without_braces(domain));
    std::string ends[2] = {inner.take("entry"), inner.take("exit")};
    for (int i = 0; i < 2; ++i) {  // {}: none
      const bool given = ends[i].size() > 2;
      Sharding sharding = given ? read_sharding(ends[i]) : Sharding();
      const bool read = io.message(54 + i, given, [&](Io& m) { sharding_fields(m, sharding); });
      ends[i] = read ? sharding_text(sharding) : "{}";
    }
    if constexpr (Io::kReads)
      rest.put("domain", fmt::format("{{kind=\"sharding\", entry={}, exit={}}}", ends[0], ends[1]));
  }
  keep_rest(rest, a.text);
}

}  // namespace heddle::import
