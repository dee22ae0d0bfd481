// Fourier transforms, windows, mel filters.
#include <algorithm>
#include <cmath>

#include "import/onnx_emit.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

using Kind = hlo::FftAttrs::Kind;

Instr* last_part(Op& op, Instr* x, int64_t from, int64_t to) {
  Ints starts(static_cast<size_t>(x->shape().rank()), 0), limits = x->shape().extents();
  starts.back() = from;
  limits.back() = to;
  return op.b.slice(x, starts, limits, {});
}

// The last dimension cut, or zero-padded, to `length`.
Instr* with_length(Op& op, Instr* x, int64_t length) {
  const int64_t now = x->shape().extents().back();
  if (now == length) return x;
  if (now > length) return last_part(op, x, 0, length);
  Ints low(static_cast<size_t>(x->shape().rank()), 0), high = low;
  high.back() = length - now;
  return op.b.pad(x, op.b.scalar(x->shape().type(), 0), low, high, {});
}

struct Transform {
  int64_t length = 0;
  bool inverse = false, onesided = false;
};

Instr* fft(Op& op, Kind kind, Instr* x, int64_t length) {
  hlo::FftAttrs attrs;
  attrs.kind = kind;
  attrs.fft_length = {length};
  return op.b.make(Opcode::fft, {x}, attrs);
}

// Transforms x [..., n, 1 or 2] (real, or real and imaginary parts) along its last dimension but
// one.
Instr* transform(Op& op, Instr* x, const Transform& t) {
  const Ints extents = x->shape().extents();
  const bool real = extents.back() == 1;
  Ints flat(extents.begin(), extents.end() - 1);
  const int64_t bins = t.length / 2 + 1;
  const auto part = [&](int64_t i) {
    Instr* p = reshape(op, last_part(op, x, i, i + 1), flat);
    return with_length(op, p, t.inverse && t.onesided ? bins : t.length);
  };
  Instr* re = part(0);
  Instr* im = real ? op.b.full(re->shape(), 0) : part(1);
  Ints column = flat;
  column.push_back(1);
  if (t.inverse && t.onesided) {
    Instr* y = fft(op, Kind::irfft, op.b.binary(Opcode::complex, re, im), t.length);
    column[column.size() - 2] = t.length;
    return reshape(op, y, column);
  }
  Instr* y;
  if (real && t.onesided) {
    y = fft(op, Kind::rfft, re, t.length);
  } else {
    y = fft(op, t.inverse ? Kind::ifft : Kind::fft, op.b.binary(Opcode::complex, re, im), t.length);
    if (t.onesided) y = last_part(op, y, 0, bins);
  }
  op.check_builder();
  column = y->shape().extents();
  const auto last = static_cast<int64_t>(column.size());
  column.push_back(1);
  return op.b.concatenate({reshape(op, op.b.unary(Opcode::real, y), column),
                           reshape(op, op.b.unary(Opcode::imag, y), column)},
                          last);
}

Type fft_type(Type type) { return type == Type::f64 ? Type::f64 : Type::f32; }

int64_t check_length(Op& op, int64_t length) {
  if (length < 1 || length > op.limits().value_elems) op.fail("a transform of length {}", length);
  return length;
}

Outputs dft(Op& op) {
  op.check_float(0);
  const int64_t rank = op.rank(0);
  Transform t;
  t.inverse = op.int_attr("inverse", 0) != 0;
  t.onesided = op.int_attr("onesided", 0) != 0;
  int64_t axis = op.opset() < 20 ? op.int_attr("axis", 1) : -2;
  if (op.opset() >= 20 && op.has(2)) axis = op.known_int(2, "axis");
  axis = op.axis(axis, rank);
  const int64_t parts = op.shape(0).dim(rank - 1);
  if (rank < 2 || axis == rank - 1 || parts < 1 || parts > 2)
    op.fail("input is {}, axis {}: wanted [..., 1 or 2] and another axis", to_string(op.shape(0)),
            axis);
  const int64_t extent = op.shape(0).dim(axis);
  t.length = t.inverse && t.onesided ? 2 * (extent - 1) : extent;
  if (op.has(1)) t.length = op.known_int(1, "dft_length");
  check_length(op, t.length);
  const Type type = op.type(0);
  Ints order = range(0, rank - 1);  // moves the axis to the last place but one
  order.erase(order.begin() + axis);
  order.push_back(axis);
  order.push_back(rank - 1);
  Instr* x = op.b.convert(op.in(0), fft_type(type));
  if (axis != rank - 2) x = op.b.transpose(x, order);
  x = transform(op, x, t);
  op.check_builder();
  Ints back(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  if (axis != rank - 2) x = op.b.transpose(x, back);
  return {op.b.convert(x, type)};
}

// signal [B, L] or [B, L, 1 or 2]: splits it into frames, applies the window, transforms each.
Outputs stft(Op& op) {
  op.check_float(0);
  const Type type = op.type(0);
  const int64_t step = op.known_int(1, "frame_step");
  Ints extents = op.shape(0).extents();
  if (extents.size() == 2) extents.push_back(1);
  if (extents.size() != 3 || extents[2] < 1 || extents[2] > 2)
    op.fail("signal is {}, wanted [B,L], [B,L,1] or [B,L,2]", to_string(op.shape(0)));
  if (!op.has(2) && !op.has(3)) op.fail("neither window nor frame_length is given");
  const int64_t length =
      check_length(op, op.has(3) ? op.known_int(3, "frame_length") : op.shape(2).elems());
  if (step < 1 || length > extents[1])
    op.fail("frames of {} by steps of {} in a signal of {}", length, step, extents[1]);
  const int64_t frames = (extents[1] - length) / step + 1;
  op.check_extents({extents[0], frames, length, extents[2]});
  Instr* x = reshape(op, op.b.convert(op.in(0), fft_type(type)), extents);
  Instr* start = op.b.binary(
      Opcode::add, binary(op, Opcode::multiply, iota(op, Type::s32, {frames, length}, 0), step),
      iota(op, Type::s32, {frames, length}, 1));
  x = op.b.take(x, start, 1);  // [B, frames, length, parts]
  if (op.has(2)) {
    if (op.rank(2) != 1 || op.shape(2).dim(0) != length)
      op.fail("window is {}, frames have {}", to_string(op.shape(2)), length);
    Instr* window = op.b.convert(op.in(2), x->shape().type());
    x = op.b.binary(Opcode::multiply, x, op.b.broadcast(window, x->shape().extents(), {2}));
  }
  Transform t;
  t.length = length;
  t.onesided = op.int_attr("onesided", 1) != 0;
  if (t.onesided && extents[2] == 2) op.fail("a complex signal has no one-sided transform");
  return {op.b.convert(transform(op, x, t), type)};
}

// a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n)
Outputs window(Op& op, double a0, double a1, double a2) {
  const int64_t size = op.known_int(0, "size");
  const Type type = element_type(op.int_attr("output_datatype", 1), op.describe());
  const bool periodic = op.int_attr("periodic", 1) != 0;
  constexpr int64_t kMost = int64_t{1} << 24;
  if (size < 0 || size > std::min(kMost, op.limits().value_elems)) op.fail("size is {}", size);
  Literal values(Shape::array(type, {size}));
  const auto n = static_cast<double>(std::max<int64_t>(periodic ? size : size - 1, 1));
  for (int64_t i = 0; i < size; ++i) {
    const double angle = 2 * M_PI * static_cast<double>(i) / n;
    values.set_f64(i, a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
  }
  return {values};
}

Outputs hann_window(Op& op) { return window(op, 0.5, 0.5, 0); }
Outputs hamming_window(Op& op) { return window(op, 25.0 / 46, 1 - 25.0 / 46, 0); }
Outputs blackman_window(Op& op) { return window(op, 0.42, 0.5, 0.08); }

// Triangles evenly spaced on the mel scale, one per column.
Outputs mel_weight_matrix(Op& op) {
  const int64_t bins = op.known_int(0, "num_mel_bins"), length = op.known_int(1, "dft_length"),
                rate = op.known_int(2, "sample_rate");
  const double low = op.known_float(3, "lower_edge_hertz"),
               high = op.known_float(4, "upper_edge_hertz");
  const Type type = element_type(op.int_attr("output_datatype", 1), op.describe());
  constexpr int64_t kMost = 1 << 20;
  if (bins < 1 || bins > kMost || length < 1 || length > kMost || rate < 1 || !(low >= 0) ||
      !(high > low) || !(high <= static_cast<double>(rate)))
    op.fail("{} bins of a transform of {} at {} Hz, {} to {} Hz", bins, length, rate, low, high);
  const int64_t rows = length / 2 + 1;
  op.check_extents({rows, bins});
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double mel_low = mel(low);
  const double each = (mel(high) - mel_low) / static_cast<double>(bins + 2);
  Ints edges;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (static_cast<double>(i) * each + mel_low) / 2595) - 1);
    edges.push_back(static_cast<int64_t>(
        std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate))));
  }
  if (edges.back() > rows) op.fail("filters reach beyond the transform's {} bins", rows);
  Literal matrix = value_or_throw(Literal::make(Shape::array(type, {rows, bins})));
  for (int64_t i = 0; i < bins; ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t left = edges[at], centre = edges[at + 1], right = edges[at + 2];
    const auto set = [&](int64_t row, double value) {
      if (row >= 0 && row < rows) matrix.set_f64(row * bins + i, value);
    };
    if (left == centre) set(centre, 1);
    for (int64_t j = left; j <= centre && left < centre; ++j)
      set(j, static_cast<double>(j - left) / static_cast<double>(centre - left));
    for (int64_t j = centre; j < right; ++j)
      set(j, static_cast<double>(right - j) / static_cast<double>(right - centre));
  }
  return {matrix};
}

constexpr OpEntry kOps[] = {
    {"BlackmanWindow", 1, 1, blackman_window},    {"DFT", 1, 3, dft},
    {"HammingWindow", 1, 1, hamming_window},      {"HannWindow", 1, 1, hann_window},
    {"MelWeightMatrix", 5, 5, mel_weight_matrix}, {"STFT", 2, 4, stft},
};

}  // namespace

std::span<const OpEntry> signal_ops() { return kOps; }

}  // namespace heddle::import
