// The fields of HLO protos (openxla/xla: xla/service/hlo.proto, xla/xla_data.proto), defined once
// for both directions: every function here takes an Io, which is a reader that fills the arguments
// or a writer that writes them.
//
// An Io has: kReads; integer, boolean, real, bytes and ints(field, value), which omit 0, false or
// empty values, and read absent fields as those; message(field, present, function(Io&)), which runs
// the function on the message if it exists (reading) or `present` (writing), and returns whether it
// did; each(field, count, function(Io&, i)), which writes `count` messages or reads all;
// lose(what), called for parts that have no field.
#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/attrs.h"
#include "hlo/lexer.h"
#include "hlo/text.h"
#include "import/failure.h"
#include "import/hlo_proto_shape.h"
#include "import/hlo_proto_text.h"

namespace heddle::import {

// `v[i]`, appended by a reader if missing.
template <typename T>
T& place(std::vector<T>& v, size_t i) {
  if (v.size() <= i) v.resize(i + 1);
  return v[i];
}

// An enumeration as its number: `values` in order of their numbers. `what` is for the message.
template <typename Io, typename T>
void choose(Io& io, int field, const char* what, T& value, std::initializer_list<T> values) {
  int64_t number = 0;
  for (const T& each : values) {
    if (each == value) break;
    ++number;
  }
  io.integer(field, number);
  if (number < 0 || number >= static_cast<int64_t>(values.size()))
    fail("{} has the unknown value {}", what, number);
  if constexpr (Io::kReads) value = values.begin()[number];
}

template <typename Io>
void device_fields(Io& io, int reshape, Devices& devices) {
  io.ints(reshape, devices.reshape);
  io.ints(reshape + 1, devices.transpose);
}

template <typename Io>
void sharding_fields(Io& io, Sharding& a, int depth = 0) {
  using Kind = Sharding::Kind;
  if (depth > 8) fail("a sharding nested too deeply");
  static constexpr std::initializer_list<Kind> kKinds = {
      Kind::replicated, Kind::maximal, Kind::tuple,    Kind::other,
      Kind::manual,     Kind::unknown, Kind::unreduced};
  choose(io, 1, "a sharding", a.kind, kKinds);
  io.ints(3, a.tile);
  io.ints(4, a.devices.listed);
  io.each(5, a.elements.size(),
          [&](Io& m, size_t i) { sharding_fields(m, place(a.elements, i), depth + 1); });
  io.boolean(6, a.replicate_last);
  Ints last;
  for (const Kind kind : a.last_tile_dims) last.push_back(static_cast<int64_t>(kind));
  io.ints(8, last);
  device_fields(io, 9, a.devices);
  io.boolean(11, a.in_group);
  io.integer(12, a.group);
  int64_t like = a.like_group;
  io.integer(13, like);
  a.like_group = like == 1;
  if constexpr (Io::kReads) {
    for (const int64_t kind : last) {
      if (kind < 0 || kind > static_cast<int64_t>(Kind::unreduced) || kind == 2 || kind == 3)
        fail("a sharding has the unknown kind {} in its last dimensions", kind);
      a.last_tile_dims.push_back(static_cast<Kind>(kind));
    }
    if (io.has(14)) io.lose("sharding by names");
  }
}

template <typename Io>
void group_fields(Io& io, int field, std::vector<Ints>& groups) {
  io.each(field, groups.size(), [&](Io& m, size_t i) { m.ints(1, place(groups, i)); });
}

template <typename Io>
void counted_group_fields(Io& io, int field, ReplicaGroups& a) {
  io.message(field, a.is_counted(), [&](Io& m) {
    a.extents.resize(2);
    m.integer(1, a.extents[0]);
    m.integer(2, a.extents[1]);
    device_fields(m, 3, a.devices);
  });
}

template <typename Io>
void window_fields(Io& io, int field, hlo::Window& window) {
  io.message(field, !window.dims.empty(), [&](Io& m) {
    m.each(1, window.dims.size(), [&](Io& dim, size_t i) {
      hlo::WindowDim& d = place(window.dims, i);
      dim.integer(1, d.size);
      dim.integer(2, d.stride);
      dim.integer(3, d.pad_low);
      dim.integer(4, d.pad_high);
      dim.integer(5, d.rhs_dilate);
      dim.integer(6, d.lhs_dilate);
      dim.boolean(7, d.reversal);
      if (d.size < 0 || d.stride < 0 || d.rhs_dilate < 0 || d.lhs_dilate < 0)
        fail("a window has a negative size, stride or dilation");
      for (int64_t* factor : {&d.stride, &d.rhs_dilate, &d.lhs_dilate})
        if (*factor == 0) *factor = 1;
    });
  });
}

// Checks that the labels name each dimension of an array exactly once.
inline void check_labels(int64_t first, int64_t second, const Ints& spatial, const char* of) {
  Ints all = spatial;
  all.push_back(first);
  all.push_back(second);
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] < 0 || all[i] >= static_cast<int64_t>(all.size()) + 64)
      fail("convolution: dimension {} of the {}", all[i], of);
    for (size_t j = 0; j < i; ++j)
      if (all[i] == all[j]) fail("convolution: dimension {} of the {} twice", all[i], of);
  }
}

template <typename Io>
void convolution_dim_fields(Io& io, int field, hlo::ConvolutionDims& d) {
  const bool there = io.message(field, true, [&](Io& m) {
    m.integer(7, d.input_batch);
    m.integer(8, d.input_feature);
    m.ints(11, d.input_spatial);
    m.integer(3, d.kernel_input_feature);
    m.integer(4, d.kernel_output_feature);
    m.ints(6, d.kernel_spatial);
    m.integer(9, d.output_batch);
    m.integer(10, d.output_feature);
    m.ints(12, d.output_spatial);
  });
  if (!there) fail("convolution without its dimensions");
  if (d.input_spatial.size() > 64) fail("convolution of {} dimensions", d.input_spatial.size());
  if (d.input_spatial.size() != d.kernel_spatial.size() ||
      d.input_spatial.size() != d.output_spatial.size())
    fail("convolution: different numbers of spatial dimensions");
  check_labels(d.input_batch, d.input_feature, d.input_spatial, "input");
  check_labels(d.kernel_input_feature, d.kernel_output_feature, d.kernel_spatial, "kernel");
  check_labels(d.output_batch, d.output_feature, d.output_spatial, "output");
}

template <typename Io>
void dot_dim_fields(Io& io, int field, hlo::DotAttrs& a) {
  io.message(field, true, [&](Io& m) {
    m.ints(1, a.lhs_contracting_dims);
    m.ints(2, a.rhs_contracting_dims);
    m.ints(3, a.lhs_batch_dims);
    m.ints(4, a.rhs_batch_dims);
  });
}

// PrecisionConfig; words as in HLO text.
template <typename Io>
void precision_fields(Io& io, std::vector<std::string>& words, std::string& algorithm) {
  static constexpr std::array<std::string_view, 3> kWords = {"default", "high", "highest"};
  static const std::initializer_list<std::string> kAlgorithms = {"",
                                                                 "dot_any_f8_any_f8_f32",
                                                                 "dot_any_f8_any_f8_f32_fast_accum",
                                                                 "dot_f16_f16_f16",
                                                                 "dot_f16_f16_f32",
                                                                 "dot_bf16_bf16_bf16",
                                                                 "dot_bf16_bf16_f32",
                                                                 "dot_bf16_bf16_f32_x3",
                                                                 "dot_bf16_bf16_f32_x6",
                                                                 "dot_tf32_tf32_f32",
                                                                 "dot_tf32_tf32_f32_x3",
                                                                 "dot_f32_f32_f32",
                                                                 "dot_f64_f64_f64",
                                                                 "dot_bf16_bf16_f32_x9"};
  io.message(51, !words.empty() || !algorithm.empty(), [&](Io& m) {
    Ints numbers;
    for (const std::string& word : words) {
      size_t i = 0;
      while (i < kWords.size() && kWords[i] != word) ++i;
      numbers.push_back(static_cast<int64_t>(i));
    }
    m.ints(1, numbers);
    choose(m, 2, "the algorithm of a product", algorithm, kAlgorithms);
    bool any = false;
    for (const int64_t number : numbers) {
      if (number < 0 || number >= static_cast<int64_t>(kWords.size()))
        fail("a precision has the unknown value {}", number);
      any = any || number != 0;
    }
    if constexpr (Io::kReads)
      for (size_t i = 0; i < numbers.size() && any; ++i)
        words.emplace_back(kWords[static_cast<size_t>(numbers[i])]);
  });
}

template <typename Io>
void aliasing_fields(Io& io, std::vector<hlo::OutputOperandAlias>& rows) {
  io.each(74, rows.size(), [&](Io& m, size_t i) {
    hlo::OutputOperandAlias& row = place(rows, i);
    m.ints(1, row.output_index);
    m.integer(2, row.operand);
    m.ints(3, row.operand_index);
  });
}

// ResultAccuracy, kept as {mode=highest} or {tolerance={atol=0,rtol=0,ulps=2}}.
template <typename Io>
void accuracy_fields(Io& io, std::string& text) {
  TextParts parts;
  if (!text.empty()) parts = split_words(text);
  const bool has_tolerance = !parts.empty() && parts[0].first == "tolerance";
  int64_t mode = !parts.empty() && (parts[0].second == "highest" || parts[0].second == "HIGHEST");
  io.integer(1, mode);
  double atol = 0, rtol = 0;
  int64_t ulps = 0;
  if (has_tolerance)
    for (const auto& [key, value] : split_words(parts[0].second)) {
      if (key == "atol") atol = std::strtod(value.c_str(), nullptr);
      if (key == "rtol") rtol = std::strtod(value.c_str(), nullptr);
      if (key == "ulps") ulps = number_in(value);
    }
  const bool read = io.message(2, has_tolerance, [&](Io& m) {
    m.real(1, atol);
    m.real(2, rtol);
    m.integer(3, ulps);
  });
  if constexpr (Io::kReads) {
    if (read) text = fmt::format("{{tolerance={{atol={},rtol={},ulps={}}}}}", atol, rtol, ulps);
    if (mode == 1) text = "{mode=highest}";
  }
}

}  // namespace heddle::import
