#include "quantize/numbers.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace heddle::quantize {

using tensor::Literal;
using tensor::Shape;
using tensor::Type;

double decibels(double signal, double noise) {
  if (noise <= 0) return std::numeric_limits<double>::infinity();
  return 10 * std::log10(std::max(signal, 1e-300) / noise);
}

Params params_of(const Range& range, bool symmetric) {
  const double low = std::min(range.low, 0.0), high = std::max(range.high, 0.0);
  // Dividing by it cannot overflow.
  const auto usable = [](double scale) {
    return static_cast<float>(std::clamp(scale, 1e-30, 1e30));
  };
  if (low == 0 && high == 0) return {1, 0, symmetric};
  if (symmetric && low == 0) return {usable(high / 255), 0, false};
  if (symmetric) return {usable(std::max(-low, high) / 127), 0, true};
  const float scale = usable((high - low) / 255);
  return {scale, std::clamp(static_cast<int>(std::nearbyint(-low / scale)), 0, 255), false};
}

namespace {

// Calls f(channel, element index) for all elements.
template <typename Function>
void each_element(const Shape& shape, int64_t axis, Function&& f) {
  const std::vector<int64_t> extents = shape.extents();
  int64_t inner = 1;
  for (size_t d = static_cast<size_t>(axis) + 1; d < extents.size(); ++d) inner *= extents[d];
  const int64_t channels = extents[static_cast<size_t>(axis)], elems = shape.elems();
  for (int64_t i = 0; i < elems; ++i) f(i / inner % channels, i);
}

}  // namespace

Weights quantize_weights(const Literal& weights, int64_t axis) {
  const Shape& shape = weights.shape();
  const int64_t channels = shape.extents()[static_cast<size_t>(axis)];
  const auto x = weights.values<float>();
  std::vector<float> most(static_cast<size_t>(channels), 0);
  each_element(shape, axis, [&](int64_t c, int64_t i) {
    const float here = std::abs(x[static_cast<size_t>(i)]);
    if (std::isfinite(here))
      most[static_cast<size_t>(c)] = std::max(most[static_cast<size_t>(c)], here);
  });
  Weights result{Literal(Shape::array(Type::s8, shape.extents())),
                 Literal(Shape::array(Type::f32, {channels}))};
  const auto scales = result.scales.mutable_values<float>();
  for (size_t c = 0; c < most.size(); ++c)
    scales[c] = most[c] > 0 ? std::max(most[c] / 127, 1e-30F) : 1;
  const auto numbers = result.numbers.mutable_values<int8_t>();
  double signal = 0, noise = 0;
  each_element(shape, axis, [&](int64_t c, int64_t i) {
    const auto place = static_cast<size_t>(i);
    const float scale = scales[static_cast<size_t>(c)];
    const float q = std::clamp(std::nearbyint(x[place] / scale), -127.0F, 127.0F);
    numbers[place] = std::isnan(q) ? 0 : static_cast<int8_t>(q);
    const double lost = static_cast<double>(x[place]) - static_cast<double>(numbers[place]) * scale;
    signal += static_cast<double>(x[place]) * x[place];
    noise += lost * lost;
  });
  result.sqnr = decibels(signal, noise);
  return result;
}

Literal dequantized(const Weights& weights, int64_t axis) {
  Literal result(Shape::array(Type::f32, weights.numbers.shape().extents()));
  const auto numbers = weights.numbers.values<int8_t>();
  const auto scales = weights.scales.values<float>();
  const auto x = result.mutable_values<float>();
  each_element(result.shape(), axis, [&](int64_t c, int64_t i) {
    x[static_cast<size_t>(i)] =
        static_cast<float>(numbers[static_cast<size_t>(i)]) * scales[static_cast<size_t>(c)];
  });
  return result;
}

float number_in_block(float value, float scale) {
  const float q = std::nearbyint(value / scale) + 8;
  return std::isnan(q) ? 8.0F : std::clamp(q, 0.0F, 15.0F);
}

BlockScale scale_of_block(std::span<const float> block) {
  float most = 0;  // with its sign; it becomes -8
  for (float value : block)
    if (std::abs(value) > std::abs(most)) most = value;
  if (most == 0) return {};
  const float first = std::isfinite(most) ? most / -8 : 1;
  BlockScale best{first, std::numeric_limits<double>::infinity()};
  for (int step = 0; step < 12; ++step) {
    const float scale = first * (1 - 0.03F * static_cast<float>(step));
    double lost = 0;
    for (float value : block) {
      const double off = static_cast<double>(value) - (number_in_block(value, scale) - 8) * scale;
      lost += off * off;
    }
    if (lost < best.lost) best = {scale, lost};
  }
  return best;
}

Blocks empty_blocks(int64_t k, int64_t n, int64_t size) {
  const int64_t blocks = (k + size - 1) / size;
  return {Literal(Shape::array(Type::u8, {n, blocks, size / 2})),
          Literal(Shape::array(Type::f32, {n * blocks}))};
}

void set_row(Blocks* blocks, int64_t row, std::span<const float> numbers,
             std::span<const float> scales) {
  const auto bytes = static_cast<size_t>(blocks->numbers.elems() / blocks->numbers.shape().dim(0));
  const auto to =
      blocks->numbers.mutable_values<uint8_t>().subspan(static_cast<size_t>(row) * bytes, bytes);
  const auto number = [&](size_t i) {  // zeros after the last one
    return i < numbers.size() ? static_cast<unsigned>(numbers[i]) : 8U;
  };
  for (size_t i = 0; i < bytes; ++i)
    to[i] = static_cast<uint8_t>(number(2 * i) | number(2 * i + 1) << 4);
  std::copy(scales.begin(), scales.end(),
            blocks->scales.mutable_values<float>().begin() +
                static_cast<std::ptrdiff_t>(static_cast<size_t>(row) * scales.size()));
}

std::vector<float> row_of(const Literal& weights, int64_t axis, int64_t row) {
  const int64_t k = weights.shape().dim(1 - axis), n = weights.shape().dim(axis);
  const auto x = weights.values<float>();
  std::vector<float> values(static_cast<size_t>(k));
  for (int64_t i = 0; i < k; ++i)
    values[static_cast<size_t>(i)] = x[static_cast<size_t>(axis == 1 ? i * n + row : row * k + i)];
  return values;
}

Blocks quantize_blocks(const Literal& weights, int64_t axis, int64_t size) {
  const int64_t k = weights.shape().dim(1 - axis), n = weights.shape().dim(axis);
  Blocks result = empty_blocks(k, n, size);
  double signal = 0, noise = 0;
  std::vector<float> numbers(static_cast<size_t>(k));
  for (int64_t row = 0; row < n; ++row) {
    const std::vector<float> values = row_of(weights, axis, row);
    std::vector<float> scales;
    for (size_t at = 0; at < values.size(); at += static_cast<size_t>(size)) {
      const auto block =
          std::span(values).subspan(at, std::min(static_cast<size_t>(size), values.size() - at));
      const BlockScale best = scale_of_block(block);
      scales.push_back(best.scale);
      for (size_t i = 0; i < block.size(); ++i)
        numbers[at + i] = number_in_block(block[i], best.scale);
      noise += best.lost;
    }
    for (float value : values) signal += static_cast<double>(value) * value;
    set_row(&result, row, numbers, scales);
  }
  result.sqnr = decibels(signal, noise);
  return result;
}

}  // namespace heddle::quantize
