// Operators that interpolate between elements: GridSample, DeformConv, AffineGrid.
// Positions are computed, elements are gathered and weighted.
#include <algorithm>
#include <cmath>

#include "import/onnx_emit.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

Instr* add(Op& op, Instr* a, Instr* b) { return op.b.binary(Opcode::add, a, b); }
Instr* times(Op& op, Instr* a, Instr* b) { return op.b.binary(Opcode::multiply, a, b); }

Instr* clamp(Op& op, Instr* x, double low, double high) {
  return binary(op, Opcode::minimum, binary(op, Opcode::maximum, x, low), high);
}

// x[b, c, at[b, p]] of x [B,C,S] and at s32[B,P]: [B,C,P].
Instr* pick(Op& op, Instr* x, Instr* at) {
  hlo::GatherAttrs attrs;
  attrs.operand_batching_dims = attrs.start_indices_batching_dims = {0};
  attrs.collapsed_slice_dims = attrs.start_index_map = {2};
  attrs.offset_dims = {1};
  attrs.index_vector_dim = 2;
  attrs.slice_sizes = {1, x->shape().dim(1), 1};
  return op.b.gather(x, at, std::move(attrs));
}

enum class Padding { zeros, border, reflection };

// Reads values [B,C,extents...] (as [B,C,S]) at integer coordinates.
struct Image {
  Instr* values = nullptr;  // [B,C,S]
  Ints extents;             // S is their product
  Padding padding = Padding::zeros;
  bool align_corners = false;

  double low() const { return align_corners ? 0 : -0.5; }
  double high(size_t d) const {
    return static_cast<double>(extents[d]) - (align_corners ? 1 : 0.5);
  }
};

// Mirrors x at the ends of [low, high] until it is inside.
Instr* reflect(Op& op, Instr* x, double low, double high) {
  const double span = high - low;
  if (span <= 0) return op.b.full(x->shape(), low);
  Instr* distance = op.b.unary(Opcode::abs, binary(op, Opcode::subtract, x, low));
  Instr* rest = binary(op, Opcode::remainder, distance, 2 * span);
  Instr* back = op.b.binary(Opcode::subtract, op.b.full(x->shape(), 2 * span), rest);
  return binary(op, Opcode::add, op.b.binary(Opcode::minimum, rest, back), low);
}

// The elements at integer coordinates at[d], float [B,P]; weighted by `weight` [B,P].
Instr* pixels(Op& op, const Image& image, std::vector<Instr*> at, Instr* weight) {
  Instr *linear = nullptr, *inside = nullptr;
  for (size_t d = 0; d < at.size(); ++d) {
    const auto last = static_cast<double>(image.extents[d] - 1);
    Instr* x = at[d];
    if (image.padding == Padding::reflection)
      x = op.b.unary(Opcode::round_nearest_even, reflect(op, x, image.low(), image.high(d)));
    if (image.padding == Padding::zeros) {
      Instr* ok = op.b.binary(Opcode::and_, compare(op, Direction::ge, x, 0),
                              compare(op, Direction::le, x, last));
      inside = inside == nullptr ? ok : op.b.binary(Opcode::and_, inside, ok);
    }
    x = op.b.convert(clamp(op, x, 0, last), Type::s32);
    linear =
        linear == nullptr ? x : add(op, binary(op, Opcode::multiply, linear, image.extents[d]), x);
  }
  if (inside != nullptr)
    weight = select(op, inside, weight, op.b.scalar(weight->shape().type(), 0));
  Instr* values = pick(op, image.values, linear);
  const Ints extents = values->shape().extents();
  Instr* factor = op.b.broadcast(op.b.convert(weight, values->shape().type()), extents, {0, 2});
  values = times(op, values, factor);
  // Elements outside count as zero even if the nearest element is NaN or infinite.
  if (inside == nullptr) return values;
  return select(op, op.b.broadcast(inside, extents, {0, 2}), values,
                op.b.scalar(values->shape().type(), 0));
}

// Keys' cubic weight of an element at this distance.
Instr* cubic_weight(Op& op, Instr* distance, bool near) {
  constexpr double a = -0.75;
  Instr* d = distance;
  const auto horner = [&](std::initializer_list<double> coefficients) {
    Instr* sum = nullptr;
    for (double c : coefficients)
      sum =
          sum == nullptr ? op.b.full(d->shape(), c) : binary(op, Opcode::add, times(op, sum, d), c);
    return sum;
  };
  return near ? horner({a + 2, -(a + 3), 0, 1}) : horner({a, -5 * a, 8 * a, -4 * a});
}

// The weighted sum over the `taps` nearest integer coordinates of each dimension: 2 (linear) or 4
// (cubic). at[d]: [B,P].
Instr* interpolate(Op& op, const Image& image, const std::vector<Instr*>& at, int taps) {
  std::vector<std::vector<std::pair<Instr*, Instr*>>> choices;  // position and weight
  for (Instr* x : at) {
    auto& of_dim = choices.emplace_back();
    Instr* floor = op.b.unary(Opcode::floor, x);
    Instr* t = op.b.binary(Opcode::subtract, x, floor);
    for (int k = taps == 2 ? 0 : -1; k <= taps / 2; ++k) {
      // |t - k|
      Instr* distance = k <= 0 ? binary(op, Opcode::subtract, t, k)
                               : op.b.binary(Opcode::subtract, op.b.full(t->shape(), k), t);
      Instr* weight = taps == 2 ? op.b.binary(Opcode::subtract, op.b.full(t->shape(), 1), distance)
                                : cubic_weight(op, distance, k == 0 || k == 1);
      of_dim.emplace_back(k == 0 ? floor : binary(op, Opcode::add, floor, k), weight);
    }
  }
  Instr* sum = nullptr;
  std::vector<size_t> which(at.size(), 0);
  for (;;) {
    std::vector<Instr*> position;
    Instr* weight = nullptr;
    for (size_t d = 0; d < at.size(); ++d) {
      const auto& [x, w] = choices[d][which[d]];
      position.push_back(x);
      weight = weight == nullptr ? w : times(op, weight, w);
    }
    Instr* part = pixels(op, image, position, weight);
    sum = sum == nullptr ? part : add(op, sum, part);
    size_t d = 0;
    while (d < at.size() && ++which[d] == choices[d].size()) which[d++] = 0;
    if (d == at.size()) return sum;
  }
}

struct GridSettings {
  std::string mode;
  Padding padding = Padding::zeros;
  bool align_corners = false;
};

GridSettings read_grid_settings(Op& op) {
  GridSettings s;
  s.mode = op.string_attr("mode", op.opset() < 20 ? "bilinear" : "linear");
  if (s.mode == "bilinear") s.mode = "linear";
  if (s.mode == "bicubic") s.mode = "cubic";
  if (s.mode != "linear" && s.mode != "cubic" && s.mode != "nearest")
    op.fail("mode is {}, wanted linear, cubic or nearest", quoted(s.mode));
  const std::string padding = op.string_attr("padding_mode", "zeros");
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    op.fail("padding_mode is {}, wanted zeros, border or reflection", quoted(padding));
  s.padding = padding == "zeros"    ? Padding::zeros
              : padding == "border" ? Padding::border
                                    : Padding::reflection;
  s.align_corners = op.int_attr("align_corners", 0) != 0;
  return s;
}

// Maps -1 ... 1 to positions; those outside are handled by the padding mode.
Instr* denormalise(Op& op, Instr* x, const Image& image, size_t d, bool nearest) {
  const auto extent = static_cast<double>(image.extents[d]);
  x = binary(op, Opcode::add, x, 1);
  if (image.align_corners) {
    x = binary(op, Opcode::multiply, x, (extent - 1) / 2);
  } else {
    x = binary(op, Opcode::subtract, binary(op, Opcode::multiply, x, extent / 2), 0.5);
  }
  if (nearest) x = op.b.unary(Opcode::round_nearest_even, x);
  if (image.padding == Padding::zeros) return x;
  Instr* outside = op.b.binary(Opcode::or_, compare(op, Direction::lt, x, image.low()),
                               compare(op, Direction::gt, x, image.high(d)));
  Instr* moved = image.padding == Padding::border ? clamp(op, x, 0, extent - 1)
                                                  : reflect(op, x, image.low(), image.high(d));
  return op.b.select(outside, moved, x);
}

Outputs grid_sample(Op& op) {
  op.check_float(1);
  const GridSettings s = read_grid_settings(op);
  const Ints extents = op.shape(0).extents(), grid_extents = op.shape(1).extents();
  const auto dims = static_cast<int64_t>(extents.size()) - 2;
  constexpr int64_t kMostDims = 3;
  if (dims < 1 || dims > kMostDims || grid_extents.size() != extents.size() ||
      grid_extents.back() != dims || grid_extents[0] != extents[0] || op.shape(0).elems() == 0)
    op.fail("X is {}, grid is {}: wanted [N,C,...] and [N,...,{}], 1 to {} dimensions",
            to_string(op.shape(0)), to_string(op.shape(1)), dims, kMostDims);
  const Type type = op.type(0), compute = compute_type(type);
  Image image;
  image.extents = Ints(extents.begin() + 2, extents.end());
  image.padding = s.padding;
  image.align_corners = s.align_corners;
  image.values = reshape(op, tensor::is_float(type) ? op.b.convert(op.in(0), compute) : op.in(0),
                         {extents[0], extents[1], product(image.extents)});
  if (!tensor::is_float(type)) op.fail("X is {}, wanted floating point", to_string(op.shape(0)));
  const int64_t points = product(grid_extents, 1, dims + 1);
  Instr* grid = op.b.convert(op.in(1), compute_type(op.type(1)));
  grid = reshape(op, grid, {extents[0], points, dims});
  std::vector<Instr*> at;
  for (int64_t d = 0; d < dims; ++d) {  // the grid lists them from last to first
    Instr* x = op.b.slice(grid, {0, 0, dims - 1 - d}, {extents[0], points, dims - d}, {});
    x = reshape(op, x, {extents[0], points});
    at.push_back(denormalise(op, x, image, static_cast<size_t>(d), s.mode == "nearest"));
  }
  Instr* y;
  if (s.mode == "nearest") {
    y = pixels(op, image, at, op.b.full(at[0]->shape(), 1));
  } else {
    y = interpolate(op, image, at, s.mode == "linear" ? 2 : 4);
  }
  Ints result{extents[0], extents[1]};
  result.insert(result.end(), grid_extents.begin() + 1, grid_extents.end() - 1);
  return {reshape(op, op.b.convert(y, type), op.check_extents(result))};
}

// Homogeneous coordinates of all points of a regular grid, [points, D + 1], x first.
Literal base_grid(Op& op, const Ints& extents, Type type, bool align_corners) {
  const auto dims = static_cast<int64_t>(extents.size());
  const int64_t points = product(extents);
  op.check_extents({points, dims + 1});
  Literal grid = value_or_throw(Literal::make(Shape::array(type, {points, dims + 1})));
  for (int64_t p = 0; p < points; ++p) {
    int64_t rest = p;
    for (int64_t d = dims; d-- > 0;) {
      const int64_t extent = extents[static_cast<size_t>(d)], i = rest % extent;
      rest /= extent;
      const auto n = static_cast<double>(extent), x = static_cast<double>(i);
      const double at =
          align_corners ? (extent == 1 ? 0 : 2 * x / (n - 1) - 1) : (2 * x + 1) / n - 1;
      grid.set_f64(p * (dims + 1) + (dims - 1 - d), at);
    }
    grid.set_f64(p * (dims + 1) + dims, 1);
  }
  return grid;
}

Outputs affine_grid(Op& op) {
  op.check_float(0);
  const bool align = op.int_attr("align_corners", 0) != 0;
  const Ints size = op.known_ints(1, "size");
  const auto dims = static_cast<int64_t>(size.size()) - 2;
  if ((dims != 2 && dims != 3) || *std::min_element(size.begin(), size.end()) < 1 ||
      op.shape(0).extents() != Ints{size[0], dims, dims + 1})
    op.fail("theta is {}, size [{}]: wanted [N,2,3] and [N,C,H,W], or [N,3,4] and [N,C,D,H,W]",
            to_string(op.shape(0)), fmt::join(size, ","));
  const Ints extents(size.begin() + 2, size.end());
  const Type type = op.type(0), compute = compute_type(type);
  op.check_extents(extents);
  Instr* base = op.b.constant(base_grid(op, extents, compute, align));
  hlo::DotAttrs attrs;
  attrs.lhs_contracting_dims = {2};
  attrs.rhs_contracting_dims = {1};
  Instr* y = op.b.dot(op.b.convert(op.in(0), compute), base, std::move(attrs));  // [N,D,points]
  y = op.b.transpose(y, {0, 2, 1});
  Ints result{size[0]};
  result.insert(result.end(), extents.begin(), extents.end());
  result.push_back(dims);
  return {reshape(op, op.b.convert(y, type), op.check_extents(result))};
}

struct Deform {
  Ints x, w, kernel, strides, dilations, low, output;
  int64_t group, offset_groups, taps, points;
};

Deform read_deform(Op& op) {
  Deform d;
  d.x = op.shape(0).extents();
  d.w = op.shape(1).extents();
  if (d.x.size() != 4 || d.w.size() != 4 || op.rank(2) != 4 || op.shape(0).elems() == 0 ||
      op.shape(1).elems() == 0)
    op.fail("X, W and offset are {}, {} and {}; wanted rank 4", to_string(op.shape(0)),
            to_string(op.shape(1)), to_string(op.shape(2)));
  d.kernel = op.ints_attr("kernel_shape", {d.w[2], d.w[3]});
  d.strides = op.ints_attr("strides", {1, 1});
  d.dilations = op.ints_attr("dilations", {1, 1});
  const Ints pads = op.ints_attr("pads", {0, 0, 0, 0});
  d.group = op.int_attr("group", 1);
  d.offset_groups = op.int_attr("offset_group", 1);
  const int64_t most = op.limits().value_elems;
  const auto sensible = [&](const Ints& values, size_t size, int64_t least) {
    return values.size() == size && std::all_of(values.begin(), values.end(),
                                                [&](int64_t v) { return v >= least && v <= most; });
  };
  if (d.kernel != Ints{d.w[2], d.w[3]} || !sensible(d.strides, 2, 1) ||
      !sensible(d.dilations, 2, 1) || !sensible(pads, 4, 0) || d.group < 1 || d.offset_groups < 1 ||
      d.x[1] % d.group != 0 || d.w[0] % d.group != 0 || d.w[1] * d.group != d.x[1] ||
      d.x[1] % d.offset_groups != 0)
    op.fail("kernel, strides, dilations, pads or groups do not fit X {} and W {}",
            to_string(op.shape(0)), to_string(op.shape(1)));
  d.low = {pads[0], pads[1]};
  d.taps = d.kernel[0] * d.kernel[1];
  for (size_t i = 0; i < 2; ++i)
    d.output.push_back(
        (d.x[2 + i] + pads[i] + pads[i + 2] - (d.kernel[i] - 1) * d.dilations[i] - 1) /
            d.strides[i] +
        1);
  const Ints wanted{d.x[0], d.offset_groups * d.taps * 2, d.output[0], d.output[1]};
  if (op.shape(2).extents() != wanted)
    op.fail("offset is {}, wanted [{}]", to_string(op.shape(2)), fmt::join(wanted, ","));
  d.points = d.output[0] * d.output[1];
  op.check_extents({d.x[0], d.x[1], d.taps, d.points});
  return d;
}

// The positions of each tap along one side, without its offset: [taps, points].
Literal tap_positions(const Deform& d, size_t side, Type type) {
  Literal at(Shape::array(type, {d.taps, d.points}));
  for (int64_t k = 0; k < d.taps; ++k) {
    for (int64_t p = 0; p < d.points; ++p) {
      const int64_t tap = side == 0 ? k / d.kernel[1] : k % d.kernel[1];
      const int64_t out = side == 0 ? p / d.output[1] : p % d.output[1];
      at.set_f64(k * d.points + p, static_cast<double>(out * d.strides[side] - d.low[side] +
                                                       tap * d.dilations[side]));
    }
  }
  return at;
}

// Reads columns at the shifted positions; the rest is a product with the weights.
Outputs deform_conv(Op& op) {
  op.check_float(0);
  const Deform d = read_deform(op);
  const Type type = op.type(0), compute = compute_type(type);
  const int64_t n = d.x[0], channels = d.x[1], batch = n * d.offset_groups;
  Image image;
  image.extents = {d.x[2], d.x[3]};
  image.values = reshape(op, op.b.convert(op.in(0), compute),
                         {batch, channels / d.offset_groups, d.x[2] * d.x[3]});
  Instr* offset = reshape(op, op.b.convert(op.in(2), compute), {batch, d.taps, 2, d.points});
  std::vector<Instr*> at;
  for (size_t side = 0; side < 2; ++side) {
    const auto s = static_cast<int64_t>(side);
    Instr* moved = op.b.slice(offset, {0, 0, s, 0}, {batch, d.taps, s + 1, d.points}, {});
    moved = reshape(op, moved, {batch, d.taps, d.points});
    Instr* base = op.b.broadcast(op.b.constant(tap_positions(d, side, compute)),
                                 {batch, d.taps, d.points}, {1, 2});
    at.push_back(reshape(op, add(op, moved, base), {batch, d.taps * d.points}));
  }
  Instr* columns = interpolate(op, image, at, 2);  // [N og, C/og, taps points]
  if (op.has(4)) {
    if (op.shape(4).elems() != batch * d.taps * d.points)
      op.fail("mask is {}", to_string(op.shape(4)));
    Instr* mask = reshape(op, op.b.convert(op.in(4), compute), {batch, d.taps * d.points});
    columns = times(op, columns, op.b.broadcast(mask, columns->shape().extents(), {0, 2}));
  }
  const int64_t depth = channels / d.group * d.taps, features = d.w[0] / d.group;
  columns = reshape(op, columns, {n, d.group, depth, d.points});
  Instr* weights = reshape(op, op.b.convert(op.in(1), compute), {d.group, features, depth});
  hlo::DotAttrs attrs;
  attrs.lhs_batch_dims = {0};
  attrs.rhs_batch_dims = {1};
  attrs.lhs_contracting_dims = {2};
  attrs.rhs_contracting_dims = {2};
  Instr* y = op.b.dot(weights, columns, std::move(attrs));  // [g, features, N, points]
  y = reshape(op, op.b.transpose(y, {2, 0, 1, 3}), {n, d.w[0], d.output[0], d.output[1]});
  y = op.b.convert(y, type);
  if (op.has(3)) y = add(op, y, broadcast_along(op, op.in(3), y->shape().extents(), 1));
  return {y};
}

constexpr OpEntry kOps[] = {
    {"AffineGrid", 2, 2, affine_grid},
    {"DeformConv", 3, 5, deform_conv},
    {"GridSample", 2, 2, grid_sample},
};

}  // namespace

std::span<const OpEntry> sample_ops() { return kOps; }

}  // namespace heddle::import
