// Resize and Upsample, one dimension after the other. Nearest gathers positions; linear and cubic
// combine the few neighbours of every position, with weights computed here. If antialiased
// downsizing needs more neighbours, they become a product with a matrix of weights [out, in].
#include <algorithm>
#include <cmath>

#include "import/onnx_emit.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

struct Settings {
  std::string mode = "nearest", coordinates = "half_pixel", nearest = "round_prefer_floor";
  double cubic_a = -0.75, extrapolation = 0;
  bool exclude_outside = false, antialias = false;
};

struct Axis {
  int64_t dim = 0, in = 0, out = 0;
  double scale = 1, roi_start = 0, roi_end = 1;
  bool from_any = false;  // from an extent that differs from run to run
  // s32: of an extent that is that of another dimension, or has a name (Op::named_positions).
  Instr* positions = nullptr;
};

// The position of output x among the input positions.
double source_position(const Settings& settings, const Axis& axis, double x) {
  const auto in = static_cast<double>(axis.in), out = static_cast<double>(axis.out);
  const std::string& mode = settings.coordinates;
  if (mode == "asymmetric") return x / axis.scale;
  if (mode == "align_corners") return axis.out == 1 ? 0 : x * (in - 1) / (out - 1);
  if (mode == "pytorch_half_pixel") return axis.out > 1 ? (x + 0.5) / axis.scale - 0.5 : 0;
  if (mode == "tf_half_pixel_for_nn") return (x + 0.5) / axis.scale;
  if (mode == "half_pixel_symmetric") {
    const double centre = in / 2 * (1 - out / (axis.scale * in));
    return centre + (x + 0.5) / axis.scale - 0.5;
  }
  if (mode == "tf_crop_and_resize") {
    if (axis.out == 1) return 0.5 * (axis.roi_start + axis.roi_end) * (in - 1);
    return axis.roi_start * (in - 1) + x * (axis.roi_end - axis.roi_start) * (in - 1) / (out - 1);
  }
  return (x + 0.5) / axis.scale - 0.5;  // half_pixel
}

int64_t nearest_position(const Settings& settings, double at, int64_t in) {
  const std::string& mode = settings.nearest;
  double rounded = std::ceil(at - 0.5);  // round_prefer_floor
  if (mode == "round_prefer_ceil") rounded = std::floor(at + 0.5);
  if (mode == "floor") rounded = std::floor(at);
  if (mode == "ceil") rounded = std::ceil(at);
  return static_cast<int64_t>(std::clamp(rounded, 0.0, static_cast<double>(in - 1)));
}

// Weight of an input at this distance.
double kernel(const Settings& settings, double distance) {
  const double d = std::abs(distance), a = settings.cubic_a;
  if (settings.mode == "linear") return std::max(0.0, 1 - d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

bool shrinks(const Settings& settings, const Axis& axis) {
  return settings.antialias && axis.scale < 1;
}

// The reach of an output position, in input steps.
double reach_of(const Settings& settings, const Axis& axis) {
  const double reach = settings.mode == "linear" ? 1.0 : 2.0;
  return shrinks(settings, axis) ? reach / axis.scale : reach;
}

struct Tap {
  int64_t position = 0;
  double weight = 0;
};

// The input taps of output position o; the weights sum to 1. The same number for every o, unless
// the reach depends on the scale.
std::vector<Tap> taps_of(const Settings& settings, const Axis& axis, int64_t o) {
  const bool shrink = shrinks(settings, axis);
  const double reach = reach_of(settings, axis), last = static_cast<double>(axis.in - 1);
  const double limit = static_cast<double>(axis.in) + 2 * reach;
  const double at =
      std::clamp(source_position(settings, axis, static_cast<double>(o)), -limit, limit);
  const double first = shrink ? std::ceil(at - reach) : std::floor(at) - reach + 1;
  const double end = shrink ? at + reach : std::floor(at) + reach;
  std::vector<Tap> taps;
  double total = 0;
  for (double k = first; k <= end; ++k) {
    const bool outside = k < 0 || k > last;
    double weight = kernel(settings, (k - at) * (shrink ? axis.scale : 1.0));
    if (outside && settings.exclude_outside) weight = 0;
    taps.push_back({static_cast<int64_t>(std::clamp(k, 0.0, last)), weight});
    total += weight;
  }
  for (Tap& tap : taps) tap.weight = total == 0 ? 0 : tap.weight / total;
  return taps;
}

// [out, in]; every row sums to 1.
Literal weights(Op& op, const Settings& settings, const Axis& axis, Type type) {
  constexpr int64_t kMostWeights = int64_t{1} << 24;
  if (axis.out > kMostWeights / axis.in)
    op.fail("resizes a dimension of {} to {}; too large to interpolate", axis.in, axis.out);
  Literal matrix = value_or_throw(Literal::make(Shape::array(type, {axis.out, axis.in})));
  std::vector<double> row(static_cast<size_t>(axis.in));
  for (int64_t o = 0; o < axis.out; ++o) {
    std::fill(row.begin(), row.end(), 0);
    for (const Tap& tap : taps_of(settings, axis, o))
      row[static_cast<size_t>(tap.position)] += tap.weight;
    for (int64_t i = 0; i < axis.in; ++i) {
      if (row[static_cast<size_t>(i)] != 0)
        matrix.set_f64(o * axis.in + i, row[static_cast<size_t>(i)]);
    }
  }
  return matrix;
}

// Repeats every position n times.
Instr* repeat(Op& op, Instr* x, int64_t dim, int64_t times) {
  Ints extents = x->shape().extents(), apart = extents, dims = range(0, x->shape().rank());
  apart.insert(apart.begin() + dim + 1, times);
  for (int64_t& d : dims) d += d > dim ? 1 : 0;
  extents[static_cast<size_t>(dim)] *= times;
  return reshape(op, op.b.broadcast(x, apart, dims), extents);
}

Instr* resize_nearest(Op& op, Instr* x, const Settings& settings, const Axis& axis) {
  Literal positions(Shape::array(Type::s64, op.check_extents({axis.out})));
  const int64_t times = axis.out / axis.in;
  bool repeats = axis.out % axis.in == 0;
  for (int64_t o = 0; o < axis.out; ++o) {
    const int64_t at = nearest_position(
        settings, source_position(settings, axis, static_cast<double>(o)), axis.in);
    positions.set_s64(o, at);
    repeats = repeats && at == o / times;
  }
  if (repeats) return times == 1 ? x : repeat(op, x, axis.dim, times);
  return op.b.take(x, op.b.constant(positions), axis.dim);
}

// Resizes by a product with a matrix of weights.
Instr* resize_by_matrix(Op& op, Instr* x, const Settings& settings, const Axis& axis) {
  hlo::DotAttrs attrs;
  attrs.lhs_contracting_dims = {axis.dim};
  attrs.rhs_contracting_dims = {1};
  Instr* matrix = op.b.constant(weights(op, settings, axis, x->shape().type()));
  const int64_t rank = x->shape().rank();
  x = op.b.dot(x, matrix, std::move(attrs));
  Ints permutation = range(0, rank - 1);  // the new dimension is the last one
  permutation.insert(permutation.begin() + axis.dim, rank - 1);
  return axis.dim == rank - 1 ? x : op.b.transpose(x, permutation);
}

// Positions among elements of which it is known when the program runs how many there are; the
// formulas of source_position.
class OpenPositions {
 public:
  OpenPositions(Op& op, const Settings& settings, Instr* x, const Axis& axis)
      : op_(op), settings_(settings), out_{axis.out} {
    in_ = extent_of(op_, x, axis.dim, Type::f64);
    Instr* out = axis.positions != nullptr ? extent_of(op_, axis.positions, 0, Type::f64)
                                           : op.b.scalar(Type::f64, static_cast<double>(axis.out));
    Instr* o = axis.positions != nullptr
                   ? op.b.convert(axis.positions, Type::f64)
                   : op.b.iota(Shape::array(Type::f64, op.check_extents(out_)), 0);
    if (settings.coordinates == "align_corners") {
      Instr* apart = op.b.binary(Opcode::maximum, less_one(out), op.b.scalar(Type::f64, 1));
      at_ = with(Opcode::divide, with(Opcode::multiply, o, all(last())), all(apart));
      return;
    }
    Instr* scale = all(op.b.binary(Opcode::divide, out, in_));
    if (settings.coordinates == "asymmetric")
      at_ = with(Opcode::divide, o, scale);
    else
      at_ = with(Opcode::subtract, with(Opcode::divide, with(Opcode::add, o, 0.5), scale), 0.5);
    if (settings.coordinates == "pytorch_half_pixel" && axis.positions != nullptr)  // of one
      at_ = with(Opcode::multiply, at_,
                 all(op.b.binary(Opcode::minimum, less_one(out), op.b.scalar(Type::f64, 1))));
  }

  static bool are_for(const Settings& settings, const Axis& axis) {
    static constexpr std::string_view kModes[] = {"half_pixel", "pytorch_half_pixel", "asymmetric",
                                                  "align_corners"};
    return axis.from_any && (axis.out > 1 || axis.positions != nullptr) &&
           settings.mode != "cubic" && !settings.antialias && !settings.exclude_outside &&
           std::find(std::begin(kModes), std::end(kModes), settings.coordinates) !=
               std::end(kModes);
  }

  Instr* nearest(Instr* x, int64_t dim) {
    const std::string& mode = settings_.nearest;
    Instr* at = at_;
    if (mode == "round_prefer_floor") at = with(Opcode::subtract, at, 0.5);
    if (mode == "round_prefer_ceil") at = with(Opcode::add, at, 0.5);
    const bool up = mode == "round_prefer_floor" || mode == "ceil";
    return take(x, op_.b.unary(up ? Opcode::ceil : Opcode::floor, at), dim);
  }

  Instr* linear(Instr* x, int64_t dim) {
    Instr* before = op_.b.unary(Opcode::floor, at_);
    Instr* behind = with(Opcode::add, before, 1);
    Instr* weights[] = {near(before), near(behind)};
    Instr* total = with(Opcode::add, weights[0], weights[1]);
    Instr *parts[2], *positions[] = {before, behind};
    for (size_t k = 0; k < 2; ++k) {
      Instr* taken = take(x, positions[k], dim);
      Instr* weight = op_.b.convert(with(Opcode::divide, weights[k], total), x->shape().type());
      parts[k] = op_.b.binary(Opcode::multiply, taken,
                              broadcast_along(op_, weight, taken->shape().extents(), dim));
    }
    return op_.b.binary(Opcode::add, parts[0], parts[1]);
  }

 private:
  Instr* all(Instr* scalar) { return op_.b.broadcast(scalar, out_, {}); }
  Instr* less_one(Instr* extent) {
    return op_.b.binary(Opcode::subtract, extent, op_.b.scalar(Type::f64, 1));
  }
  Instr* last() { return less_one(in_); }
  Instr* with(Opcode opcode, Instr* a, Instr* b) { return op_.b.binary(opcode, a, b); }
  Instr* with(Opcode opcode, Instr* a, double b) {
    return op_.b.binary(opcode, a, all(op_.b.scalar(Type::f64, b)));
  }
  // 1 - |position - at|
  Instr* near(Instr* position) {
    Instr* apart = op_.b.unary(Opcode::abs, with(Opcode::subtract, position, at_));
    return with(Opcode::subtract, all(op_.b.scalar(Type::f64, 1)), apart);
  }
  Instr* take(Instr* x, Instr* positions, int64_t dim) {
    positions = with(Opcode::maximum, positions, 0.0);
    positions = with(Opcode::minimum, positions, all(last()));
    return op_.b.take(x, op_.b.convert(positions, Type::s64), dim);
  }

  Op& op_;
  const Settings& settings_;
  Ints out_;
  Instr *in_ = nullptr, *at_ = nullptr;
};

// Resizes by a weighted sum of a few neighbours.
Instr* resize_by_taps(Op& op, Instr* x, const Settings& settings, const Axis& axis) {
  const size_t count = taps_of(settings, axis, 0).size();
  const Type type = x->shape().type();
  op.check_extents({axis.out});
  std::vector<Literal> positions(count, Literal(Shape::array(Type::s64, {axis.out})));
  std::vector<Literal> weights(count, Literal(Shape::array(type, {axis.out})));
  for (int64_t o = 0; o < axis.out; ++o) {
    const std::vector<Tap> taps = taps_of(settings, axis, o);
    for (size_t t = 0; t < count; ++t) {
      positions[t].set_s64(o, taps[t].position);
      weights[t].set_f64(o, taps[t].weight);
    }
  }
  Instr* sum = nullptr;
  for (size_t t = 0; t < count; ++t) {
    Instr* taken = op.b.take(x, op.b.constant(positions[t]), axis.dim);
    Instr* weight =
        broadcast_along(op, op.b.constant(weights[t]), taken->shape().extents(), axis.dim);
    Instr* part = op.b.binary(hlo::Opcode::multiply, taken, weight);
    sum = sum ? op.b.binary(hlo::Opcode::add, sum, part) : part;
  }
  return sum;
}

Instr* resize_weighted(Op& op, Instr* x, const Settings& settings, const Axis& axis) {
  constexpr double kMostReach = 2;  // four neighbours
  return reach_of(settings, axis) <= kMostReach && !shrinks(settings, axis)
             ? resize_by_taps(op, x, settings, axis)
             : resize_by_matrix(op, x, settings, axis);
}

// tf_crop_and_resize: positions outside the input give a constant.
Instr* extrapolate(Op& op, Instr* x, const Settings& settings, const Axis& axis) {
  Literal inside(Shape::array(Type::pred, {axis.out}));
  bool all = true;
  for (int64_t o = 0; o < axis.out; ++o) {
    const double at = source_position(settings, axis, static_cast<double>(o));
    const bool ok = at >= 0 && at <= static_cast<double>(axis.in - 1);
    inside.set_s64(o, ok ? 1 : 0);
    all = all && ok;
  }
  if (all) return x;
  Instr* mask = broadcast_along(op, op.b.constant(inside), x->shape().extents(), axis.dim);
  return select(op, mask, x, op.b.scalar(x->shape().type(), settings.extrapolation));
}

Settings read_settings(Op& op) {
  Settings s;
  s.mode = op.string_attr("mode", "nearest");
  if (op.opset() < 11) {
    s.coordinates = "asymmetric";
    s.nearest = "floor";
  } else {
    s.coordinates = op.string_attr("coordinate_transformation_mode", "half_pixel");
    s.nearest = op.string_attr("nearest_mode", "round_prefer_floor");
    s.cubic_a = op.float_attr("cubic_coeff_a", -0.75);
    s.exclude_outside = op.int_attr("exclude_outside", 0) != 0;
    s.extrapolation = op.float_attr("extrapolation_value", 0);
    s.antialias = op.int_attr("antialias", 0) != 0;
  }
  if (s.mode == "bilinear") s.mode = "linear";
  if (s.mode != "nearest" && s.mode != "linear" && s.mode != "cubic")
    op.fail("mode is {}, wanted nearest, linear or cubic", quoted(s.mode));
  static constexpr std::string_view kModes[] = {
      "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
      "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
  if (std::find(std::begin(kModes), std::end(kModes), s.coordinates) == std::end(kModes))
    op.fail("coordinate_transformation_mode is {}, which is not known", quoted(s.coordinates));
  return s;
}

std::vector<double> floats_of(Op& op, size_t i, const char* what) {
  const Literal& literal = op.known_or_fail(i, what);
  if (literal.shape().rank() != 1 || !tensor::is_float(literal.type()) ||
      literal.elems() > 2 * kMaxRank)
    op.fail("{} is {}, wanted a list of floats", what, to_string(literal.shape()));
  std::vector<double> values;
  for (int64_t k = 0; k < literal.elems(); ++k) values.push_back(literal.get_f64(k));
  return values;
}

std::vector<double> read_scales(Op& op) {
  if (op.node().op_type == "Upsample" && op.opset() < 9) {
    const std::vector<float> scales = op.floats_attr("scales");
    return {scales.begin(), scales.end()};
  }
  const size_t input = op.opset() < 11 ? 1 : 2;
  if (!op.has(input) || op.shape(input).elems() == 0) return {};
  return floats_of(op, input, "scales");
}

void scale_axes(Op& op, std::vector<Axis>& axes, const std::vector<double>& scales) {
  for (size_t i = 0; i < axes.size(); ++i) {
    const double out = std::floor(static_cast<double>(axes[i].in) * scales[i]);
    if (!(scales[i] > 0) || !(out <= static_cast<double>(op.limits().value_elems)))
      op.fail("scale {} of a dimension of {}", scales[i], axes[i].in);
    axes[i].scale = scales[i];
    axes[i].out = static_cast<int64_t>(out);
  }
}

bool is_size(const Op& op, int64_t size) { return size >= 1 && size <= op.limits().value_elems; }

void size_axes(Op& op, std::vector<Axis>& axes, const Ints& sizes) {
  const std::string policy = op.string_attr("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    op.fail("keep_aspect_ratio_policy is {}", quoted(policy));
  double common = policy == "not_larger" ? INFINITY : 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!is_size(op, sizes[i])) op.fail("size {}", sizes[i]);
    axes[i].out = sizes[i];
    axes[i].scale = static_cast<double>(sizes[i]) / static_cast<double>(axes[i].in);
    common =
        policy == "not_larger" ? std::min(common, axes[i].scale) : std::max(common, axes[i].scale);
  }
  if (policy == "stretch") return;
  for (Axis& axis : axes) {
    axis.scale = common;
    axis.out = std::llround(common * static_cast<double>(axis.in));
  }
}

// Whether it is resized from any size, to one that is fixed or has a name.
void find_open_size(Op& op, const Settings& settings, Ints* sizes, size_t i, Axis* axis) {
  const auto element = static_cast<int64_t>(i);
  axis->from_any = axis->from_any && !sizes->empty() &&
                   op.string_attr("keep_aspect_ratio_policy", "stretch") == "stretch";
  if (!axis->from_any) return;
  Instr* computed = op.computed_extent(3, element);
  Axis any = *axis;
  any.out = 2;
  if (OpenPositions::are_for(settings, any) && !op.is_multiple(3, element, op.in(0), axis->dim)) {
    if (const std::optional<Place> like = op.dimension_of(3, element))
      axis->positions = op.positions_along(*like);
    else if (computed == nullptr && op.is_bounded(3, element) && is_size(op, (*sizes)[i]))
      axis->positions = op.positions_up_to((*sizes)[i]);
    else
      axis->positions = op.named_positions(axis->dim, std::max<int64_t>((*sizes)[i], 1), computed);
  }
  if (axis->positions != nullptr) (*sizes)[i] = axis->positions->shape().dim(0);
  axis->from_any = axis->positions != nullptr || !op.is_bounded(3, element);
}

std::vector<Axis> read_axes(Op& op, const Settings& settings) {
  const int64_t rank = op.rank(0);
  const Ints dims = op.ints_attr("axes", range(0, rank));
  op.axes(dims, rank);  // no axis twice
  std::vector<Axis> axes;
  for (int64_t dim : dims) {
    const int64_t d = op.axis(dim, rank);
    if (op.shape(0).dim(d) == 0) op.fail("input is {}", to_string(op.shape(0)));
    axes.push_back({d, op.shape(0).dim(d), op.shape(0).dim(d)});
    axes.back().from_any = op.is_bounded(op.in(0), d);
  }
  const std::vector<double> scales = read_scales(op);
  Ints sizes = op.opset() >= 11 && op.has(3) ? op.known_ints(3, "sizes") : Ints();
  if (scales.empty() == sizes.empty() || std::max(scales.size(), sizes.size()) != axes.size())
    op.fail("{} scales and {} sizes for {} dimensions; wanted one of the two", scales.size(),
            sizes.size(), axes.size());
  for (size_t i = 0; i < axes.size(); ++i) find_open_size(op, settings, &sizes, i, &axes[i]);
  if (sizes.empty()) {
    scale_axes(op, axes, scales);
  } else {
    size_axes(op, axes, sizes);
  }
  if (settings.coordinates == "tf_crop_and_resize") {
    const std::vector<double> roi = floats_of(op, 1, "roi");
    if (roi.size() != 2 * axes.size()) op.fail("roi has {} entries", roi.size());
    for (size_t i = 0; i < axes.size(); ++i) {
      axes[i].roi_start = roi[i];
      axes[i].roi_end = roi[i + axes.size()];
      if (!(std::abs(roi[i]) < 1e6 && std::abs(axes[i].roi_end) < 1e6)) op.fail("roi {}", roi[i]);
    }
  }
  return axes;
}

Outputs resize(Op& op) {
  const Settings settings = read_settings(op);
  op.ignore({"keep_aspect_ratio_policy"});
  std::vector<Axis> axes = read_axes(op, settings);
  // Shrinking dimensions first leaves less to do.
  const auto shrinks_more = [](const Axis& a, const Axis& b) {
    return a.out * b.in < b.out * a.in;
  };
  if (std::none_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.from_any; }))
    std::stable_sort(axes.begin(), axes.end(), shrinks_more);
  const Type type = op.type(0);
  const bool nearest = settings.mode == "nearest";
  Instr* x = op.in(0);
  if (!nearest) x = op.b.convert(x, tensor::is_float(type) ? compute_type(type) : Type::f32);
  Ints extents = op.shape(0).extents();
  for (const Axis& axis : axes) {
    extents[static_cast<size_t>(axis.dim)] = axis.out;
    op.check_extents(extents);
    if (OpenPositions::are_for(settings, axis)) {
      OpenPositions positions(op, settings, x, axis);
      x = nearest ? positions.nearest(x, axis.dim) : positions.linear(x, axis.dim);
      continue;
    }
    if (axis.out == axis.in && axis.scale == 1 && settings.coordinates != "tf_crop_and_resize")
      continue;
    x = nearest ? resize_nearest(op, x, settings, axis) : resize_weighted(op, x, settings, axis);
    if (settings.coordinates == "tf_crop_and_resize") x = extrapolate(op, x, settings, axis);
    op.check_builder();
  }
  return {op.b.convert(x, type)};
}

constexpr OpEntry kOps[] = {
    {"Resize", 1, 4, resize},
    {"Upsample", 1, 2, resize},
};

}  // namespace

std::span<const OpEntry> resize_ops() { return kOps; }

}  // namespace heddle::import
