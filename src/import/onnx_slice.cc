// Operators that slice, split or pad a value.
#include <algorithm>
#include <limits>

#include "import/onnx_emit.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

struct Range {
  int64_t start = 0, limit = 0, step = 1;  // numpy's, normalised; limit -1: before the first
};

// numpy's rule for start:end:step over a dimension.
Range clamp_range(int64_t start, int64_t end, int64_t step, int64_t extent) {
  const auto absolute = [extent](int64_t at) { return at < 0 ? at + extent : at; };
  if (start < -extent) start = -extent - 1;  // no overflow below
  if (end < -extent) end = -extent - 1;
  start = absolute(start);
  end = absolute(end);
  if (step > 0)
    return {std::clamp<int64_t>(start, 0, extent), std::clamp<int64_t>(end, 0, extent), step};
  return {std::clamp<int64_t>(start, -1, extent - 1), std::clamp<int64_t>(end, -1, extent - 1),
          step};
}

// The dimensions that a Slice cuts, with their ranges.
std::vector<std::pair<int64_t, Range>> slice_ranges(Op& op) {
  const bool inputs = op.opset() >= 10;
  const Ints starts = inputs ? op.known_ints(1, "starts") : op.ints_attr("starts");
  const Ints ends = inputs ? op.known_ints(2, "ends") : op.ints_attr("ends");
  const auto count = static_cast<int64_t>(starts.size());
  Ints axes = range(0, count), steps(starts.size(), 1);
  if (inputs) {
    if (op.has(3)) axes = op.known_ints(3, "axes");
    if (op.has(4)) steps = op.known_ints(4, "steps");
  } else {
    axes = op.ints_attr("axes", axes);
  }
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    op.fail("{} starts, {} ends, {} axes and {} steps; wanted equally many of each", starts.size(),
            ends.size(), axes.size(), steps.size());
  op.axes(axes, op.rank(0));  // no axis twice
  std::vector<std::pair<int64_t, Range>> ranges;
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t axis = op.axis(axes[i], op.rank(0));
    if (steps[i] == 0) op.fail("step 0 for axis {}", axis);
    const int64_t step =
        std::clamp<int64_t>(steps[i], -op.limits().value_elems - 1, op.limits().value_elems + 1);
    ranges.emplace_back(axis, clamp_range(starts[i], ends[i], step, op.shape(0).dim(axis)));
  }
  return ranges;
}

// Inside a loop: slices whose start varies by trip but whose size does not. Null otherwise.
Instr* moving_slice(Op& op) {
  if (op.opset() < 10 || (op.known(1) != nullptr && op.known(2) != nullptr)) return nullptr;
  const auto table = [&](size_t i) {
    std::vector<Literal> all;
    if (const Literal* known = op.known(i)) all = {*known};
    if (const std::vector<Literal>* varying = op.varying(i)) all = *varying;
    return all;
  };
  const std::vector<Literal> starts = table(1), ends = table(2);
  if (starts.empty() || ends.empty() || op.rank(1) != 1 || op.rank(2) != 1) return nullptr;
  const int64_t count = op.shape(1).dim(0);
  const Ints axes = op.has(3) ? op.known_ints(3, "axes") : range(0, count);
  if (op.has(4)) {
    for (int64_t step : op.known_ints(4, "steps")) {
      if (step != 1) return nullptr;
    }
  }
  if (static_cast<int64_t>(axes.size()) != count || op.shape(2).dim(0) != count) return nullptr;
  op.axes(axes, op.rank(0));
  Ints sizes = op.shape(0).extents();
  std::vector<Instr*> at(sizes.size(), op.b.scalar(Type::s64, 0));
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(op.axis(axes[i], op.rank(0)));
    const int64_t extent = sizes[axis];
    int64_t size = -1;
    for (size_t trip = 0; trip < std::max(starts.size(), ends.size()); ++trip) {
      const auto k = static_cast<int64_t>(i);
      const int64_t start = starts[starts.size() == 1 ? 0 : trip].get_s64(k);
      const int64_t end = std::min(ends[ends.size() == 1 ? 0 : trip].get_s64(k), extent);
      if (start < 0 || start > end || (size >= 0 && end - start != size)) return nullptr;
      size = end - start;
    }
    Instr* start =
        op.b.slice(op.in(1), {static_cast<int64_t>(i)}, {static_cast<int64_t>(i) + 1}, {});
    at[axis] = reshape(op, op.b.convert(start, Type::s64), {});
    sizes[axis] = size;
  }
  return op.b.dynamic_slice(op.in(0), at, sizes);
}

// The dimension of which a slice takes the first elements, if it takes all of the others.
std::optional<int64_t> cut_at_end(const Ints& starts, const Ints& limits, const Ints& steps,
                                  const Ints& extents) {
  std::optional<int64_t> found;
  for (size_t d = 0; d < extents.size(); ++d) {
    if (starts[d] != 0 || steps[d] != 1) return std::nullopt;
    if (limits[d] == extents[d]) continue;
    if (found) return std::nullopt;
    found = static_cast<int64_t>(d);
  }
  return found;
}

// One that starts or ends at a product of extents with names. Null: it is something else.
Instr* open_slice(Op& op, const std::vector<std::pair<int64_t, Range>>& ranges) {
  if (op.opset() < 10 || ranges.size() != 1 || ranges[0].second.step != 1) return nullptr;
  const bool known = op.known(1) != nullptr && op.known(2) != nullptr;
  if (!known || (!op.open_product(1, 0) && !op.open_product(2, 0))) return nullptr;
  const int64_t given[] = {op.known_ints(1, "starts")[0], op.known_ints(2, "ends")[0]};
  if (given[0] < 0 || given[1] < given[0]) return nullptr;
  const auto& [axis, range] = ranges[0];
  const auto value = [&](size_t i) {
    Instr* open = op.open_extent(i, 0);
    const double here = static_cast<double>(given[i - 1]);
    return open ? op.b.convert(open, Type::s64) : op.b.scalar(Type::s64, here);
  };
  Instr *start = value(1), *end = value(2);
  if (Instr* extent = op.computed_extents(op.in(0), axis, axis + 1))
    end = op.b.binary(Opcode::minimum, end, op.b.reshape(extent, {}));
  Instr* size = op.b.binary(Opcode::subtract, end, start);
  return op.open_part(op.in(0), axis, start, std::max<int64_t>(range.limit - range.start, 0), size);
}

Outputs slice(Op& op) {
  if (Instr* moving = moving_slice(op)) return {moving};
  const Ints extents = op.shape(0).extents();
  Ints starts(extents.size(), 0), limits = extents, steps(extents.size(), 1), reversed;
  const std::vector<std::pair<int64_t, Range>> ranges = slice_ranges(op);
  if (Instr* open = open_slice(op, ranges)) return {open};
  for (const auto& [axis, r] : ranges) {
    const auto at = static_cast<size_t>(axis);
    if (r.step > 0) {
      starts[at] = r.start;
      limits[at] = std::max(r.start, r.limit);
      steps[at] = r.step;
    } else {  // reversed: the same positions counted from the end
      reversed.push_back(axis);
      starts[at] = extents[at] - 1 - r.start;
      limits[at] = std::max(starts[at], extents[at] - 1 - r.limit);
      steps[at] = -r.step;
    }
  }
  Instr* x = op.in(0);
  if (!reversed.empty()) x = op.b.reverse(x, reversed);
  if (const auto axis = cut_at_end(starts, limits, steps, extents); axis && reversed.empty())
    return {op.first_part(x, *axis, limits[static_cast<size_t>(*axis)])};
  const bool whole =
      starts == Ints(extents.size(), 0) && limits == extents && steps == Ints(extents.size(), 1);
  return {whole && !op.stays_slice(x) ? x : op.b.slice(x, starts, limits, steps)};
}

Instr* slice_dim(Op& op, Instr* x, int64_t dim, int64_t from, int64_t to) {
  Ints starts(static_cast<size_t>(x->shape().rank()), 0), limits = x->shape().extents();
  starts[static_cast<size_t>(dim)] = from;
  limits[static_cast<size_t>(dim)] = to;
  return op.b.slice(x, starts, limits, {});
}

// Sizes: an attribute before opset 13, an input from then on; else equal parts, the last smaller.
Ints split_sizes(Op& op, int64_t extent) {
  const auto parts = static_cast<int64_t>(op.outputs());
  if (op.opset() >= 13 && op.has(1)) return op.known_ints(1, "split");
  if (op.opset() < 13 && op.has_attr("split")) return op.ints_attr("split");
  const int64_t count = op.opset() >= 18 ? op.int_attr("num_outputs", parts) : parts;
  if (count != parts || count < 1) op.fail("num_outputs is {}, the node has {}", count, parts);
  const int64_t each = (extent + count - 1) / count;
  if (op.opset() < 18 && each * count != extent)
    op.fail("{} equal parts of a dimension of {}", count, extent);
  Ints sizes(static_cast<size_t>(count), each);
  for (int64_t i = count - 1, over = each * count - extent; i >= 0 && over > 0; --i) {
    const int64_t cut = std::min(over, each);
    sizes[static_cast<size_t>(i)] -= cut;
    over -= cut;
  }
  return sizes;
}

// Where extents have names and decide the sizes, which no slice could follow: what stands from the
// sum of the sizes in front. No value: the sizes are the same for all extents.
std::optional<Outputs> open_parts(Op& op, int64_t axis, const Ints& sizes) {
  std::vector<Instr*> open;
  for (size_t k = 0; op.has(1) && k < sizes.size(); ++k)
    open.push_back(op.open_extent(1, static_cast<int64_t>(k)));
  if (std::all_of(open.begin(), open.end(), [](Instr* size) { return size == nullptr; }))
    return std::nullopt;
  Outputs outputs;
  Instr* at = op.b.scalar(Type::s64, 0);
  for (size_t k = 0; k < sizes.size(); ++k) {
    outputs.emplace_back(op.open_part(op.in(0), axis, at, sizes[k], open[k]));
    Instr* size = open[k] ? op.b.convert(open[k], Type::s64)
                          : op.b.scalar(Type::s64, static_cast<double>(sizes[k]));
    at = op.b.binary(Opcode::add, at, size);
  }
  return outputs;
}

Outputs split(Op& op) {
  const int64_t axis = op.axis_attr(0, op.rank(0));
  const int64_t extent = op.shape(0).dim(axis);
  const Ints sizes = split_sizes(op, extent);
  if (sizes.size() != op.outputs()) op.fail("{} sizes for {} outputs", sizes.size(), op.outputs());
  int64_t total = 0;
  for (int64_t size : sizes) {
    if (size < 0 || size > extent - total)
      op.fail("sizes [{}] do not sum to {}", fmt::join(sizes, ","), extent);
    total += size;
  }
  if (total != extent) op.fail("sizes [{}] do not sum to {}", fmt::join(sizes, ","), extent);
  if (std::optional<Outputs> parts = open_parts(op, axis, sizes)) return *std::move(parts);
  Outputs outputs;
  int64_t at = 0;
  for (int64_t size : sizes) {
    outputs.emplace_back(slice_dim(op, op.in(0), axis, at, at + size));
    at += size;
  }
  return outputs;
}

// Mirrors the dimension at its ends to pad it.
Instr* pad_reflect(Op& op, Instr* x, int64_t dim, int64_t low, int64_t high) {
  const int64_t extent = x->shape().dim(dim);
  if (low == 0 && high == 0) return x;  // an empty dimension too
  if (low > extent - 1 || high > extent - 1)
    op.fail("reflects {} and {} of a dimension of {}", low, high, extent);
  std::vector<Instr*> parts;
  if (low > 0) parts.push_back(op.b.reverse(slice_dim(op, x, dim, 1, low + 1), {dim}));
  parts.push_back(x);
  if (high > 0)
    parts.push_back(op.b.reverse(slice_dim(op, x, dim, extent - 1 - high, extent - 1), {dim}));
  return parts.size() == 1 ? x : op.b.concatenate(parts, dim);
}

Instr* pad_edge(Op& op, Instr* x, int64_t dim, int64_t low, int64_t high) {
  const Ints extents = x->shape().extents();
  const int64_t extent = x->shape().dim(dim);
  if (low == 0 && high == 0) return x;
  if (extent == 0) op.fail("repeats the edge of an empty dimension, which has none");
  const auto edge = [&](int64_t at, int64_t count) {
    Ints to = extents;
    to[static_cast<size_t>(dim)] = count;
    return broadcast_to(op, slice_dim(op, x, dim, at, at + 1), to);
  };
  std::vector<Instr*> parts;
  if (low > 0) parts.push_back(edge(0, low));
  parts.push_back(x);
  if (high > 0) parts.push_back(edge(extent - 1, high));
  return parts.size() == 1 ? x : op.b.concatenate(parts, dim);
}

Instr* pad_wrap(Op& op, Instr* x, int64_t dim, int64_t low, int64_t high) {
  const int64_t extent = x->shape().dim(dim);
  if (low > extent || high > extent)
    op.fail("wraps {} and {} of a dimension of {}", low, high, extent);
  std::vector<Instr*> parts;
  if (low > 0) parts.push_back(slice_dim(op, x, dim, extent - low, extent));
  parts.push_back(x);
  if (high > 0) parts.push_back(slice_dim(op, x, dim, 0, high));
  return parts.size() == 1 ? x : op.b.concatenate(parts, dim);
}

struct Pads {
  Ints low, high;
};

// [begins..., ends...] of all dimensions, or of `axes`.
Pads read_pads(Op& op) {
  const int64_t rank = op.rank(0);
  Ints pads, axes = range(0, rank);
  if (op.opset() >= 11) {
    pads = op.known_ints(1, "pads");
    if (op.has(3)) axes = op.known_ints(3, "axes");
  } else {
    pads = op.ints_attr("pads");
  }
  if (pads.size() != 2 * axes.size())
    op.fail("{} pads for {} dimensions, wanted two each", pads.size(), axes.size());
  op.axes(axes, rank);  // no axis twice
  Pads result{Ints(static_cast<size_t>(rank), 0), Ints(static_cast<size_t>(rank), 0)};
  Ints to = op.shape(0).extents();
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(op.axis(axes[i], rank));
    const int64_t low = pads[i], high = pads[i + axes.size()];
    const int64_t most = op.limits().value_elems;
    if (low < -most || low > most || high < -most || high > most || to[axis] + low + high < 0)
      op.fail("pads {} and {} for a dimension of {}", low, high, to[axis]);
    result.low[axis] = low;
    result.high[axis] = high;
    to[axis] += low + high;
  }
  op.check_extents(to);
  return result;
}

Instr* pad_value(Op& op) {
  if (op.opset() < 11) return op.b.scalar(op.type(0), op.float_attr("value", 0));
  if (!op.has(2)) return op.b.scalar(op.type(0), 0);
  if (op.shape(2).elems() != 1 || op.type(2) != op.type(0))
    op.fail("constant_value is {}, wanted one element of the data's type", to_string(op.shape(2)));
  return reshape(op, op.in(2), {});
}

// Zeros, or other values, behind the elements up to an extent that has a name. Null: it has none.
Instr* pad_to_named(Op& op, Instr* x, int64_t dim, int64_t high, Instr* computed) {
  Instr* size = extent_of(op, x, dim, Type::s32);
  computed = op.b.binary(Opcode::add, op.b.convert(size, Type::s64), computed);
  Instr* positions = op.named_positions(dim, x->shape().dim(dim) + high, computed);
  if (positions == nullptr) return nullptr;
  const Ints line = positions->shape().extents();
  Instr* inside = op.b.compare(Direction::lt, positions, op.b.broadcast(size, line, {}));
  Instr* taken = op.b.take(x, positions, dim);
  return select(op, broadcast_along(op, inside, taken->shape().extents(), dim), taken,
                pad_value(op));
}

// Of the pads with constants, those up to extents that have names.
Instr* pad_named(Op& op, Pads* pads) {
  Instr* x = op.in(0);
  const int64_t rank = op.rank(0);
  if (op.opset() < 11 || op.has(3)) return x;
  for (int64_t dim = 0; dim < rank; ++dim) {
    const auto d = static_cast<size_t>(dim);
    if (pads->low[d] != 0 || op.computed_extent(1, dim) != nullptr) continue;
    Instr* computed = op.computed_extent(1, dim + rank);
    Instr* padded =
        computed != nullptr ? pad_to_named(op, x, dim, pads->high[d], computed) : nullptr;
    if (padded == nullptr) continue;
    x = padded;
    pads->high[d] = 0;
  }
  return x;
}

Outputs pad(Op& op) {
  const std::string mode = op.string_attr("mode", "constant");
  Pads pads = read_pads(op);
  if (mode == "constant") {
    Instr* x = pad_named(op, &pads);
    return {op.b.pad(x, pad_value(op), pads.low, pads.high, {})};
  }
  if (mode != "reflect" && mode != "edge" && mode != "wrap")
    op.fail("mode is {}, wanted constant, reflect, edge or wrap", quoted(mode));
  op.ignore({"value"});
  Instr* x = op.in(0);
  for (int64_t dim = 0; dim < op.rank(0); ++dim) {
    int64_t low = pads.low[static_cast<size_t>(dim)], high = pads.high[static_cast<size_t>(dim)];
    // Negative pads crop.
    const int64_t extent = x->shape().dim(dim);
    if (low < 0 || high < 0) {
      const int64_t from = std::max<int64_t>(0, -low), to = extent + std::min<int64_t>(0, high);
      if (from > to) op.fail("pads {} and {} for a dimension of {}", low, high, extent);
      x = slice_dim(op, x, dim, from, to);
      low = std::max<int64_t>(low, 0);
      high = std::max<int64_t>(high, 0);
    }
    x = mode == "reflect" ? pad_reflect(op, x, dim, low, high)
        : mode == "edge"  ? pad_edge(op, x, dim, low, high)
                          : pad_wrap(op, x, dim, low, high);
  }
  return {x};
}

// Crops or zero-pads around the middle.
Outputs center_crop_pad(Op& op) {
  const int64_t rank = op.rank(0);
  const Ints shape = op.known_ints(1, "shape");
  const Ints axes = op.ints_attr("axes", range(0, rank));
  op.axes(axes, rank);  // no axis twice
  if (shape.size() != axes.size()) op.fail("{} sizes for {} axes", shape.size(), axes.size());
  Ints low(static_cast<size_t>(rank), 0), high = low, to = op.shape(0).extents();
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(op.axis(axes[i], rank));
    const int64_t extent = to[axis];
    to[axis] = shape[i];
    op.check_extents(to);
    if (shape[i] >= extent) {
      low[axis] = (shape[i] - extent) / 2;
    } else {
      low[axis] = -((extent - shape[i]) / 2);
    }
    high[axis] = shape[i] - extent - low[axis];
  }
  return {op.b.pad(op.in(0), op.b.scalar(op.type(0), 0), low, high, {})};
}

constexpr OpEntry kOps[] = {
    {"CenterCropPad", 2, 2, center_crop_pad, true, Text::passes},
    {"Pad", 1, 4, pad},
    {"Slice", 1, 5, slice, true, Text::passes},
    {"Split", 1, 2, split, true, Text::passes},
};

}  // namespace

std::span<const OpEntry> slice_ops() { return kOps; }

}  // namespace heddle::import
