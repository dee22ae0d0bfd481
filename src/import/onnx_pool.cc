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

Outputs max_pool(Op& op) {
  if (op.wants(1)) op.fail("output 1 (Indices) is not supported");
  op.ignore({"storage_order"});  // of the indices
  const Spatial s = pool_window(op);
  Instr* start = op.b.constant(hlo::neutral_value(Opcode::maximum, op.type(0)));
  return {op.b.reduce_window(Opcode::maximum, op.in(0), start, whole_window(s))};
}

// How many elements of one dimension (pads too, if `padded`) each of its windows covers. Elements
// that only ceil_mode added never count.
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

// Over all spatial dimensions, which stay as ones.
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
    {"GlobalAveragePool", 1, 1, global_average_pool},
    {"GlobalLpPool", 1, 1, global_lp_pool},
    {"GlobalMaxPool", 1, 1, global_max_pool},
    {"LpPool", 1, 1, lp_pool},
    {"MaxPool", 1, 1, max_pool},
};

}  // namespace

std::span<const OpEntry> pool_ops() { return kOps; }

}  // namespace heddle::import
