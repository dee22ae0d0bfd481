#include "quantize/gptq.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace heddle::quantize {

using import::OnnxEdit;
using import::OnnxNode;
using tensor::Literal;
using tensor::Shape;
using tensor::Type;

namespace {

// Fraction of the mean of the diagonal that is added to it; or k / rows, if that is larger.
constexpr double kDamping = 0.01;
constexpr size_t kColumns = 128;  // processed together when errors are propagated
constexpr int64_t kRows = 16;     // rows of weights that share one pass over the factor

// Eight partial sums, which are independent.
double dot(const double* a, const double* b, size_t count) {
  double sums[8] = {};
  size_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (size_t j = 0; j < 8; ++j) sums[j] += a[i + j] * b[i + j];
  double sum = 0;
  for (double one : sums) sum += one;
  for (; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

// Given H, [k,k] and symmetric, computes the upper U with H⁻¹ = Uᵀ U: H = M Mᵀ with M upper, from
// the last column on; U is M's inverse. False: H is not positive definite.
bool factor_of_inverse(std::vector<double>* h, size_t k) {
  const auto row = [&](size_t i) { return h->data() + i * k; };
  for (size_t j = k; j-- > 0;) {
    const size_t behind = k - j - 1;
    const double pivot = row(j)[j] - dot(row(j) + j + 1, row(j) + j + 1, behind);
    if (!(pivot > 0) || !std::isfinite(pivot)) return false;
    row(j)[j] = std::sqrt(pivot);
    for (size_t i = 0; i < j; ++i)
      row(i)[j] = (row(i)[j] - dot(row(i) + j + 1, row(j) + j + 1, behind)) / row(j)[j];
  }
  std::vector<double> m(k);
  for (size_t i = k; i-- > 0;) {  // rows of the inverse replace those of M
    std::copy(row(i) + i, row(i) + k, m.begin() + static_cast<std::ptrdiff_t>(i));
    std::fill(row(i), row(i) + k, 0);
    row(i)[i] = 1 / m[i];
    for (size_t t = i + 1; t < k; ++t) {
      const double factor = -m[t] / m[i];
      for (size_t c = t; c < k; ++c) row(i)[c] += factor * row(t)[c];
    }
  }
  return true;
}

struct Row {
  std::vector<float> weights, numbers, scales;
  std::vector<float> left;       // not yet rounded, including errors of earlier numbers
  double error = 0, damped = 0;  // with G; with G plus damping

  float value(size_t j, size_t size) const { return (numbers[j] - 8) * scales[j / size]; }
  // Sets `left` to the rounding errors; returns the sum of their squares.
  double set_lost(size_t size) {
    double squares = 0;
    left.resize(weights.size());
    for (size_t j = 0; j < weights.size(); ++j) {
      left[j] = weights[j] - value(j, size);
      squares += static_cast<double>(left[j]) * left[j];
    }
    return squares;
  }
};

void subtract(float* __restrict to, const float* __restrict from, float factor, size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (size_t j = 0; j < 8; ++j) to[i + j] -= factor * from[i + j];
  for (; i < count; ++i) to[i] -= factor * from[i];
}

// Replaces each number in turn by take(); the remaining error, divided by the factor's diagonal, is
// propagated to later numbers. The sum of the squares of these quotients is d H dᵀ for the change
// d, as the factor is that of H's inverse. Works on groups of columns, so that rows of the factor
// are read once for many rows of weights.
template <typename Take>
void sweep(const GramFactor& factor, size_t columns, std::vector<Row>* rows, Take&& take) {
  std::vector<float> lost(columns);
  const size_t k = factor.width();
  for (size_t begin = 0; begin < k; begin += columns) {
    const size_t end = std::min(begin + columns, k);
    for (Row& row : *rows) {
      float* left = row.left.data();
      for (size_t j = begin; j < end; ++j) {
        const float* u = factor.row(j);
        const float e = (left[j] - take(&row, j)) / u[j];
        row.damped += static_cast<double>(e) * e;
        lost[j - begin] = e;
        subtract(left + j + 1, u + j + 1, e, end - j - 1);
      }
      for (size_t j = begin; j < end; ++j)
        subtract(left + end, factor.row(j) + end, lost[j - begin], k - end);
    }
  }
}

void round_in_turn(const GramFactor& factor, size_t size, std::vector<Row>* rows) {
  for (Row& row : *rows) {
    row.left = row.weights;
    row.numbers.resize(row.weights.size());
  }
  sweep(factor, std::max(kColumns, size), rows, [&](Row* row, size_t j) {
    if (j % size == 0) {
      const size_t count = std::min(size, row->left.size() - j);
      row->scales.push_back(scale_of_block(std::span(row->left).subspan(j, count)).scale);
    }
    row->numbers[j] = number_in_block(row->left[j], row->scales.back());
    return row->value(j, size);
  });
  for (Row& row : *rows) row.error = row.damped - factor.damping() * row.set_lost(size);
}

void round_plainly(const GramFactor& factor, size_t size, std::vector<Row>* rows) {
  for (Row& row : *rows) {
    for (size_t at = 0; at < row.weights.size(); at += size) {
      const auto block =
          std::span(row.weights).subspan(at, std::min(size, row.weights.size() - at));
      row.scales.push_back(scale_of_block(block).scale);
      for (float value : block) row.numbers.push_back(number_in_block(value, row.scales.back()));
    }
    row.error = -factor.damping() * row.set_lost(size);
  }
  sweep(factor, std::max(kColumns, size), rows, [](Row*, size_t) { return 0.0F; });
  for (Row& row : *rows) row.error += row.damped;
}

}  // namespace

GramOutputs add_gram(OnnxEdit* model, const Layer& layer) {
  std::set<std::string> taken;
  for (const OnnxNode& node : model->nodes()) {
    taken.insert(node.inputs.begin(), node.inputs.end());
    taken.insert(node.outputs.begin(), node.outputs.end());
  }
  std::string name = layer.input + "_gram";
  const auto is_taken = [&](const char* suffix) { return taken.contains(name + suffix); };
  const char* const suffixes[] = {"", "_rows", "_turned", "_wanted", "_shape", "_count"};
  while (std::any_of(std::begin(suffixes), std::end(suffixes), is_taken)) name += "_";
  Literal wanted(Shape::array(Type::s64, {2}));
  wanted.set_s64(0, -1);
  wanted.set_s64(1, model->dims_of(layer.weights)[static_cast<size_t>(1 - layer.axis)]);
  const std::string rows = name + "_rows", turned = name + "_turned", extents = name + "_wanted",
                    shape = name + "_shape", count = name + "_count";
  model->add(extents, wanted);
  const auto put = [&](const char* type, std::vector<std::string> inputs, const std::string& to) {
    model->put_before(layer.node, {type, "", to, std::move(inputs), {to}});
  };
  put("Reshape", {layer.input, extents}, rows);
  put("Transpose", {rows}, turned);
  put("MatMul", {turned, rows}, name);
  put("Shape", {rows}, shape);
  model->put_before(layer.node, {"Cast", "", count, {shape}, {count}, {{"to", 1}}});
  return {name, count};
}

std::optional<GramFactor> GramFactor::of(std::span<const float> gram, int64_t k, double rows) {
  GramFactor factor;
  const size_t width = factor.width_ = static_cast<size_t>(k);
  if (gram.size() != width * width) return {};
  double diagonal = 0;
  for (size_t i = 0; i < width; ++i) diagonal += gram[i * width + i];
  const double share = std::max(kDamping, static_cast<double>(k) / std::max(rows, 1.0));
  factor.damping_ = share * diagonal / static_cast<double>(width);
  if (!(factor.damping_ > 0) || !std::isfinite(factor.damping_)) return {};
  std::vector<double> h(gram.begin(), gram.end());
  for (size_t i = 0; i < width; ++i) h[i * width + i] += factor.damping_;
  if (!factor_of_inverse(&h, width)) return {};
  factor.upper_.assign(h.begin(), h.end());
  return factor;
}

Gptq gptq_blocks(const Literal& weights, int64_t axis, int64_t size, const GramFactor& factor) {
  const int64_t k = weights.shape().dim(1 - axis), n = weights.shape().dim(axis);
  const auto block = static_cast<size_t>(size);
  Gptq result{empty_blocks(k, n, size)};
  double signal = 0, noise = 0;
  for (int64_t first = 0; first < n; first += kRows) {
    std::vector<Row> careful(static_cast<size_t>(std::min(kRows, n - first)));
    for (size_t i = 0; i < careful.size(); ++i)
      careful[i].weights = row_of(weights, axis, first + static_cast<int64_t>(i));
    std::vector<Row> plain = careful;
    round_plainly(factor, block, &plain);
    round_in_turn(factor, block, &careful);
    for (size_t i = 0; i < careful.size(); ++i) {
      // Must be better by both measures: with few rows the first one is easily overfitted. Not
      // finite: plain rounding.
      const bool gains = careful[i].error < plain[i].error && careful[i].damped < plain[i].damped;
      Row& better = gains ? careful[i] : plain[i];
      set_row(&result.blocks, first + static_cast<int64_t>(i), better.numbers, better.scales);
      result.error += better.error;
      result.plain_error += plain[i].error;
      for (float value : better.weights) signal += static_cast<double>(value) * value;
      noise += better.set_lost(block);
    }
  }
  result.blocks.sqnr = decibels(signal, noise);
  return result;
}

}  // namespace heddle::quantize
