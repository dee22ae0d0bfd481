// Pools: windows over the spatial dimensions of [N,C,spatial...].
#include <algorithm>
#include <cmath>

#include "import/onnx_emit.h"
#include "import/onnx_ops.h"
#include "import/onnx_window.h"

namespace heddle::import {
namespace {

Spatial pool_window(Op& op) {
  if (op.rank(0) < 3) op.fail("input is {}, wanted [N,C,...]", to_string(op.shape(0)));
  const Ints extents = op.shape(0).extents();
  const Spatial s = read_spatial(op, Ints(extents.begin() + 2, extents.end()), {});
  Ints result{extents[0], extents[1]};
  result.insert(result.end(), s.output.begin(), s.output.end());
  op.check_extents(result);
  return s;
}

// The window over all dimensions.
hlo::Window whole_window(const Spatial& s) {
  hlo::Window window = s.window();
  window.dims.insert(window.dims.begin(), 2, hlo::WindowDim{});
  return window;
}

bool reads_padding(const Ints& extents, const Spatial& s) {
  for (size_t i = 0; i < s.rank(); ++i) {
    const int64_t last = (s.kernel[i] - 1) * s.dilations[i] + (s.output[i] - 1) * s.strides[i];
    if (s.low[i] > 0 || last >= s.low[i] + extents[i + 2]) return true;
  }
  return false;
}

// The position of each window's maximum, as an index into the whole input; the first one of equals.
// Goes through the window's elements one by one.
Instr* max_positions(Op& op, const Spatial& s) {
  const Ints extents = op.shape(0).extents();
  const auto rank = static_cast<int64_t>(extents.size());
  const bool column_major = op.int_attr("storage_order", 0) != 0;
  constexpr int64_t kMostTaps = 1 << 10;
  const int64_t taps = product(s.kernel);
  if (taps > kMostTaps) op.fail("indices of windows of {} elements", taps);
  Ints low(extents.size(), 0), high = low, steps(extents.size(), 1), strides(s.rank(), 1);
  for (size_t i = 0; i < s.rank(); ++i) {
    low[i + 2] = s.low[i];
    high[i + 2] = s.high[i] + s.strides[i];  // ceil_mode: the last window may extend past the end
    steps[i + 2] = s.strides[i];
    for (size_t k = 0; k < s.rank(); ++k) {
      if (column_major ? k < i : k > i) strides[i] *= extents[k + 2];
    }
  }
  Instr* lowest = op.b.constant(hlo::neutral_value(Opcode::maximum, op.type(0)));
  Instr* x = op.b.pad(op.in(0), lowest, low, high, {});
  // Padding never wins, even if all elements are as low.
  Instr* inside = nullptr;
  if (reads_padding(extents, s))
    inside = op.b.pad(op.b.full(Shape::array(Type::pred, extents), 1), op.b.scalar(Type::pred, 0),
                      low, high, {});
  Ints result{extents[0], extents[1]};
  result.insert(result.end(), s.output.begin(), s.output.end());
  Instr *best = nullptr, *where = nullptr, *best_inside = nullptr;
  for (int64_t tap = 0; tap < taps; ++tap) {
    Ints starts(extents.size(), 0), limits = result;
    int64_t rest = tap, offset = 0;
    for (size_t i = s.rank(); i-- > 0;) {
      const int64_t k = rest % s.kernel[i] * s.dilations[i];
      rest /= s.kernel[i];
      offset += (k - s.low[i]) * strides[i];
      starts[i + 2] = k;
      limits[i + 2] = k + (s.output[i] - 1) * s.strides[i] + 1;
    }
    Instr* value = op.b.slice(x, starts, limits, steps);
    Instr* at = op.b.full(Shape::array(Type::s64, result), static_cast<double>(offset));
    Instr* value_inside = inside ? op.b.slice(inside, starts, limits, steps) : nullptr;
    if (best == nullptr) {
      best = value;
      where = at;
      best_inside = value_inside;
      continue;
    }
    Instr* larger = op.b.compare(Direction::gt, value, best);
    if (tensor::is_float(op.type(0)))  // the first NaN wins, as the maximum is NaN
      larger = op.b.binary(Opcode::or_, larger,
                           op.b.binary(Opcode::and_, op.b.compare(Direction::ne, value, value),
                                       op.b.compare(Direction::eq, best, best)));
    if (inside) {
      Instr* first = op.b.unary(Opcode::not_, best_inside);
      larger = op.b.binary(Opcode::and_, value_inside, op.b.binary(Opcode::or_, larger, first));
      best_inside = op.b.binary(Opcode::or_, best_inside, value_inside);
    }
    best = op.b.select(larger, value, best);
    where = op.b.select(larger, at, where);
  }
  for (int64_t d = 0; d < rank; ++d) {
    const auto i = static_cast<size_t>(d);
    const int64_t each = d < 2 ? product(extents, d + 1) : strides[i - 2] * s.strides[i - 2];
    where = op.b.binary(Opcode::add, where,
                        binary(op, Opcode::multiply, iota(op, Type::s64, result, d), each));
  }
  return where;
}

Outputs max_pool(Op& op) {
  const Spatial s = pool_window(op);
  Instr* start = op.b.constant(hlo::neutral_value(Opcode::maximum, op.type(0)));
  Outputs outputs{op.b.reduce_window(Opcode::maximum, op.in(0), start, whole_window(s))};
  op.check_builder();
  if (op.wants(1)) outputs.emplace_back(max_positions(op, s));
  op.ignore({"storage_order"});  // only affects the indices
  return outputs;
}

// Scatters every value to its index; zero elsewhere.
Outputs max_unpool(Op& op) {
  const Ints extents = op.shape(0).extents();
  if (extents.size() < 3 || op.shape(1).extents() != extents || op.type(1) != Type::s64)
    op.fail("X is {}, I is {}", to_string(op.shape(0)), to_string(op.shape(1)));
  const size_t rank = extents.size() - 2;
  const Ints kernel = positive_attr(op, "kernel_shape", rank, {});
  const Ints strides = positive_attr(op, "strides", rank, Ints(rank, 1));
  const Ints pads = op.ints_attr("pads", Ints(2 * rank, 0));
  if (pads.size() != 2 * rank) op.fail("{} pads", pads.size());
  Ints result{extents[0], extents[1]};
  for (size_t i = 0; i < rank; ++i)
    result.push_back((extents[i + 2] - 1) * strides[i] + kernel[i] - pads[i] - pads[i + rank]);
  op.check_extents(result);
  const int64_t elems = product(result);
  op.demand(1, {{0, elems - 1}});
  hlo::ScatterAttrs attrs;
  attrs.inserted_window_dims = attrs.scatter_dims_to_operand_dims = {0};
  attrs.index_vector_dim = 1;
  hlo::Computation* replace = op.b.module()->add_computation("replace");
  hlo::Builder inner(replace);
  inner.parameter(0, Shape::scalar(op.type(0)), "old");
  replace->set_root(inner.parameter(1, Shape::scalar(op.type(0)), "new"));
  const int64_t count = product(extents);
  Instr* y = op.b.make(Opcode::scatter,
                       {op.b.full(Shape::array(op.type(0), {elems}), 0),
                        reshape(op, op.in(1), {count, 1}), reshape(op, op.in(0), {count})},
                       std::move(attrs), {replace});
  y = reshape(op, y, result);
  if (!op.has(2)) return {y};
  // A larger output is zero-padded at its end.
  const Ints wanted = op.check_extents(op.known_ints(2, "output_shape"));
  Ints low(result.size(), 0), high = low;
  for (size_t i = 0; i < result.size(); ++i) {
    if (wanted.size() != result.size() || wanted[i] < result[i])
      op.fail("output_shape is [{}], wanted at least [{}]", fmt::join(wanted, ","),
              fmt::join(result, ","));
    high[i] = wanted[i] - result[i];
  }
  return {op.b.pad(y, op.b.scalar(op.type(0), 0), low, high, {})};
}

// Sums columns [N, C taps, windows] into an image.
Outputs col2im(Op& op) {
  const Ints image = op.known_ints(1, "image_shape"), kernel = op.known_ints(2, "block_shape");
  const size_t rank = image.size();
  const Ints strides = positive_attr(op, "strides", rank, Ints(rank, 1));
  const Ints dilations = positive_attr(op, "dilations", rank, Ints(rank, 1));
  const Ints pads = op.ints_attr("pads", Ints(2 * rank, 0));
  const Ints extents = op.shape(0).extents();
  if (extents.size() != 3 || kernel.size() != rank || rank == 0 || pads.size() != 2 * rank)
    op.fail("input is {}, image_shape [{}], block_shape [{}]", to_string(op.shape(0)),
            fmt::join(image, ","), fmt::join(kernel, ","));
  op.check_extents(image);
  op.check_extents(kernel);
  constexpr int64_t kMostTaps = 1 << 10;
  const int64_t taps = product(kernel);
  if (taps < 1 || taps > kMostTaps || extents[1] % taps != 0)
    op.fail("{} channels in blocks of {}", extents[1], taps);
  Ints windows, apart{extents[0], extents[1] / taps, taps};
  for (size_t i = 0; i < rank; ++i) {
    if (pads[i] < 0 || pads[i + rank] < 0 || pads[i] > op.limits().value_elems ||
        pads[i + rank] > op.limits().value_elems)
      op.fail("pads [{}]", fmt::join(pads, ","));
    windows.push_back((image[i] + pads[i] + pads[i + rank] - (kernel[i] - 1) * dilations[i] - 1) /
                          strides[i] +
                      1);
  }
  if (product(windows) != extents[2])
    op.fail("{} windows, wanted [{}]", extents[2], fmt::join(windows, ","));
  apart.insert(apart.end(), windows.begin(), windows.end());
  Ints whole{apart[0], apart[1]};
  whole.insert(whole.end(), image.begin(), image.end());
  op.check_extents(whole);
  Instr* x = reshape(op, op.in(0), apart);
  Instr* sum = nullptr;
  for (int64_t tap = 0; tap < taps; ++tap) {
    Ints starts(apart.size(), 0), limits = apart, flat{apart[0], apart[1]};
    starts[2] = tap;
    limits[2] = tap + 1;
    flat.insert(flat.end(), windows.begin(), windows.end());
    Instr* part = reshape(op, op.b.slice(x, starts, limits, {}), flat);
    Ints low(2 + rank, 0), high = low, interior = low;
    int64_t rest = tap;
    for (size_t i = rank; i-- > 0;) {
      low[i + 2] = rest % kernel[i] * dilations[i] - pads[i];
      rest /= kernel[i];
      interior[i + 2] = strides[i] - 1;
      high[i + 2] = image[i] - low[i + 2] - ((windows[i] - 1) * strides[i] + 1);
    }
    part = op.b.pad(part, op.b.scalar(op.type(0), 0), low, high, interior);
    sum = sum == nullptr ? part : op.b.binary(Opcode::add, sum, part);
  }
  return {sum};
}

// Number of elements of one dimension (including pads if `padded`) that each of its windows covers.
// Elements added only by ceil_mode never count.
Literal window_counts(Op& op, const Spatial& s, size_t i, int64_t extent, int64_t high,
                      bool padded) {
  Literal counts(Shape::array(op.type(0), {s.output[i]}));
  for (int64_t o = 0; o < s.output[i]; ++o) {
    int64_t count = 0;
    const int64_t start = o * s.strides[i] - s.low[i];
    const int64_t first = padded ? -s.low[i] : 0, last = extent + (padded ? high : 0);
    for (int64_t k = 0; k < s.kernel[i]; ++k) {
      const int64_t at = start + k * s.dilations[i];
      if (at >= first && at < last) ++count;
    }
    counts.set_f64(o, static_cast<double>(count));
  }
  return counts;
}

bool all_equal(const Literal& counts) {
  for (int64_t i = 1; i < counts.elems(); ++i) {
    if (counts.get_f64(i) != counts.get_f64(0)) return false;
  }
  return counts.elems() > 0;
}

Outputs average_pool(Op& op) {
  op.check_float(0);
  const bool padded = op.int_attr("count_include_pad", 0) != 0;
  const Spatial s = pool_window(op);
  const Ints pads = op.ints_attr("pads", Ints(2 * s.rank(), 0));
  const bool same = op.string_attr("auto_pad", "NOTSET") != "NOTSET";
  Instr* y = op.b.reduce_window(Opcode::add, op.in(0), op.b.scalar(op.type(0), 0), whole_window(s));
  op.check_builder();
  double constant = 1;
  for (size_t i = 0; i < s.rank(); ++i) {
    if (s.output[i] > op.limits().fold_elems || s.kernel[i] > op.limits().fold_elems)
      op.fail("{} windows of {} in one dimension; at most {} are supported", s.output[i],
              s.kernel[i], op.limits().fold_elems);
    const int64_t high = same ? s.high[i] : pads[i + s.rank()];
    const int64_t dim = static_cast<int64_t>(i) + 2;
    Literal counts = window_counts(op, s, i, op.shape(0).dim(dim), high, padded);
    if (all_equal(counts)) {
      constant *= counts.get_f64(0);
    } else {
      y = op.b.binary(Opcode::divide, y,
                      broadcast_along(op, op.b.constant(counts), y->shape().extents(), dim));
    }
  }
  return {constant == 1 ? y : binary(op, Opcode::divide, y, constant)};
}

// (sum |x|^p)^(1/p)
Instr* power_sum_root(Op& op, Instr* sum, int64_t p) {
  if (p == 1) return sum;
  if (p == 2) return op.b.unary(Opcode::sqrt, sum);
  return binary(op, Opcode::power, sum, 1.0 / static_cast<double>(p));
}

Instr* power(Op& op, Instr* x, int64_t p) {
  x = op.b.unary(Opcode::abs, x);
  if (p == 1) return x;
  if (p == 2) return op.b.binary(Opcode::multiply, x, x);
  return binary(op, Opcode::power, x, static_cast<double>(p));
}

int64_t read_p(Op& op) {
  op.check_float(0);
  const int64_t p = op.int_attr("p", 2);
  if (p < 1) op.fail("p is {}, wanted 1 or more", p);
  return p;
}

Outputs lp_pool(Op& op) {
  const int64_t p = read_p(op);
  const Spatial s = pool_window(op);
  Instr* sum = op.b.reduce_window(Opcode::add, power(op, op.in(0), p), op.b.scalar(op.type(0), 0),
                                  whole_window(s));
  return {power_sum_root(op, sum, p)};
}

// Reduces all spatial dimensions to extent 1.
template <typename Reduce>
Outputs global(Op& op, Reduce reduce) {
  if (op.rank(0) < 2) op.fail("input is {}, wanted [N,C,...]", to_string(op.shape(0)));
  const Ints dims = range(2, op.rank(0));
  return {reshape(op, reduce(op.in(0), dims), keeping(op.shape(0).extents(), dims))};
}

Outputs global_average_pool(Op& op) {
  op.check_float(0);
  return global(op, [&](Instr* x, const Ints& dims) { return mean(op, x, dims); });
}

Outputs global_max_pool(Op& op) {
  return global(op,
                [&](Instr* x, const Ints& dims) { return op.b.reduce(Opcode::maximum, x, dims); });
}

Outputs global_lp_pool(Op& op) {
  const int64_t p = read_p(op);
  return global(op, [&](Instr* x, const Ints& dims) {
    return power_sum_root(op, op.b.reduce(Opcode::add, power(op, x, p), dims), p);
  });
}

constexpr OpEntry kOps[] = {
    {"AveragePool", 1, 1, average_pool},
    {"Col2Im", 3, 3, col2im},
    {"GlobalAveragePool", 1, 1, global_average_pool},
    {"GlobalLpPool", 1, 1, global_lp_pool},
    {"GlobalMaxPool", 1, 1, global_max_pool},
    {"LpPool", 1, 1, lp_pool},
    {"MaxPool", 1, 1, max_pool},
    {"MaxUnpool", 2, 3, max_unpool},
};

}  // namespace

std::span<const OpEntry> pool_ops() { return kOps; }

}  // namespace heddle::import
