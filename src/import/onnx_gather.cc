// Operators that read or write at positions given by values.
//
// ONNX counts negative positions from the end; HLO does not, so they are wrapped first. Positions
// out of range are errors (Op::demand).
#include <algorithm>

#include "import/index_range.h"
#include "import/onnx_emit.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

void check_indices(Op& op, size_t input) {
  if (op.type(input) != Type::s64 && op.type(input) != Type::s32)
    op.fail("input {} (indices) is {}, wanted int32 or int64", input, to_string(op.shape(input)));
}

// Valid positions along a dimension of the first input, from its begin or from its end. What the
// model computes from extents that have names is not checked: for those it is clamped.
tensor::IndexRange positions_of(Op& op, int64_t dim) {
  const int64_t extent = op.shape(0).dim(dim);
  if (op.is_computed(op.in(0), dim)) return {INT64_MIN, INT64_MAX};
  return {-extent, extent - 1};
}

// Positions of which negative ones are from the end of a dimension of the first input.
Instr* from_the_beginning_of(Op& op, Instr* positions, int64_t dim) {
  Instr* extent =
      op.is_computed(op.in(0), dim) ? op.computed_extents(op.in(0), dim, dim + 1) : nullptr;
  if (extent == nullptr) return from_the_beginning(op, positions, op.shape(0).dim(dim));
  extent = op.b.convert(op.b.reshape(extent, {}), positions->shape().type());
  extent = op.b.broadcast(extent, positions->shape().extents(), {});
  return op.b.select(compare(op, Direction::lt, positions, 0),
                     op.b.binary(Opcode::add, positions, extent), positions);
}

// Whether an input is known to have no negative entry, by its value or by how it is computed, so
// that no wrapping is needed.
bool known_not_negative(Op& op, size_t input) {
  const Literal* known = op.known(input);
  if (known == nullptr) {
    const auto range = index_range(op.in(input));
    return range && range->low >= 0;
  }
  if (known->elems() > op.limits().fold_elems) return false;
  for (int64_t i = 0; i < known->elems(); ++i) {
    if (known->get_s64(i) < 0) return false;
  }
  return true;
}

Instr* wrap(Op& op, size_t input, int64_t dim) {
  Instr* indices = op.in(input);
  return known_not_negative(op, input) ? indices : from_the_beginning_of(op, indices, dim);
}

// Positions first, first + step, first + 2 step, ... along a dimension.
struct Progression {
  int64_t first = 0, step = 1, count = 0;
};

std::optional<Progression> progression(const Ints& positions) {
  Progression p{positions.empty() ? 0 : positions[0], 1, static_cast<int64_t>(positions.size())};
  if (p.count == 0) return std::nullopt;
  if (p.count > 1) p.step = positions[1] - positions[0];
  if (p.step < 1) return std::nullopt;
  for (int64_t i = 0; i < p.count; ++i) {
    if (positions[static_cast<size_t>(i)] != p.first + i * p.step) return std::nullopt;
  }
  return p;
}

Instr* slice_dim(Op& op, Instr* x, int64_t dim, const Progression& p) {
  if (p.count == x->shape().dim(dim) && !op.stays_slice(x)) return x;
  Ints starts(static_cast<size_t>(x->shape().rank()), 0), limits = x->shape().extents(),
                                                          steps(starts.size(), 1);
  const auto d = static_cast<size_t>(dim);
  starts[d] = p.first;
  limits[d] = p.first + (p.count - 1) * p.step + 1;
  steps[d] = p.step;
  return op.b.slice(x, starts, limits, steps);
}

// Known positions in arithmetic progression become a slice and a reshape: picking one token,
// removing padding, masks indexed by all their positions. Null otherwise.
Instr* take_slice(Op& op, int64_t axis) {
  const Literal* known = op.known(1);
  const int64_t extent = op.shape(0).dim(axis);
  if (known == nullptr || known->elems() > op.limits().fold_elems) return nullptr;
  Ints positions;
  for (int64_t i = 0; i < known->elems(); ++i) {
    const int64_t at = known->get_s64(i);
    positions.push_back(at < 0 ? at + extent : at);
  }
  const std::optional<Progression> p = progression(positions);
  if (!p) return nullptr;
  const Ints from = op.shape(0).extents(), indices = op.shape(1).extents();
  Ints result(from.begin(), from.begin() + axis);
  result.insert(result.end(), indices.begin(), indices.end());
  result.insert(result.end(), from.begin() + axis + 1, from.end());
  return reshape(op, slice_dim(op, op.in(0), axis, *p), op.check_extents(result));
}

Outputs gather(Op& op) {
  if (op.rank(0) == 0) op.fail("data is a scalar");
  const int64_t axis = op.axis_attr(0, op.rank(0));
  check_indices(op, 1);
  const int64_t extent = op.shape(0).dim(axis);
  op.demand(1, {positions_of(op, axis)});
  if (op.rank(0) + op.rank(1) > kMaxRank) op.fail("result of rank {}", op.rank(0) + op.rank(1) - 1);
  if (Instr* x = take_slice(op, axis)) return {x};
  if (extent == 0 && op.shape(1).elems() != 0) op.fail("takes from an empty dimension");
  if (extent == 0) {  // no indices: an empty result
    Ints result = op.shape(0).extents();
    const Ints indices = op.shape(1).extents();
    result.erase(result.begin() + axis);
    result.insert(result.begin() + axis, indices.begin(), indices.end());
    return {op.b.full(Shape::array(op.type(0), result), 0)};
  }
  return {op.b.take(op.in(0), wrap(op, 1, axis), axis)};
}

// positions[..., k]: the index of every element of `indices` (which are along `axis`) in the data's
// dimensions `dims`.
Instr* element_positions(Op& op, Instr* indices, int64_t axis, const Ints& dims) {
  const Ints extents = indices->shape().extents();
  Ints column = extents;
  column.push_back(1);
  std::vector<Instr*> parts;
  for (const int64_t dim : dims) {
    Instr* part = dim == axis ? indices : iota(op, indices->shape().type(), extents, dim);
    parts.push_back(reshape(op, part, column));
  }
  return op.b.concatenate(parts, static_cast<int64_t>(extents.size()));
}

// Checks that indices has data's rank and is nowhere larger, except along `axis`.
void check_elements(Op& op, int64_t axis) {
  check_indices(op, 1);
  bool ok = op.rank(1) == op.rank(0);
  for (int64_t dim = 0; ok && dim < op.rank(0); ++dim)
    ok = dim == axis || op.shape(1).dim(dim) <= op.shape(0).dim(dim);
  if (!ok)
    op.fail("data is {}, indices {}: wanted the same rank and no larger dimensions",
            to_string(op.shape(0)), to_string(op.shape(1)));
  op.demand(1, {positions_of(op, axis)});
}

Outputs gather_elements(Op& op) {
  const int64_t rank = op.rank(0);
  const int64_t axis = op.axis_attr(0, rank);
  check_elements(op, axis);
  if (op.shape(0).elems() == 0 && op.shape(1).elems() != 0) op.fail("takes from an empty value");
  if (op.shape(0).elems() == 0)
    return {op.b.full(Shape::array(op.type(0), op.shape(1).extents()), 0)};
  // All elements are equal: neither the indices nor the number of rows matters.
  if (const Instr* x = op.in(0); x->is(Opcode::broadcast) && x->operand(0)->shape().rank() == 0)
    return {splat(op, x->operand(0), op.shape(1).extents())};
  hlo::GatherAttrs attrs;
  attrs.slice_sizes = Ints(static_cast<size_t>(rank), 1);
  attrs.index_vector_dim = rank;
  Instr* positions = wrap(op, 1, axis);
  // Along equal dimensions each row has its own indices.
  for (int64_t d = 0; d < rank; ++d)
    if (d != axis && op.shape(0).dim(d) == op.shape(1).dim(d))
      attrs.operand_batching_dims.push_back(d);
    else
      attrs.start_index_map.push_back(d);
  attrs.start_indices_batching_dims = attrs.operand_batching_dims;
  attrs.collapsed_slice_dims = attrs.start_index_map;
  if (attrs.start_index_map.size() > 1)
    positions = element_positions(op, positions, axis, attrs.start_index_map);
  return {op.b.gather(op.in(0), positions, std::move(attrs))};
}

// Index vectors of `depth` entries: wraps each entry by the dimension that it indexes.
Instr* wrap_vectors(Op& op, size_t input, int64_t first_dim, int64_t depth) {
  Instr* indices = op.in(input);
  if (known_not_negative(op, input)) return indices;
  Literal extents(Shape::array(op.type(input), {depth}));
  for (int64_t i = 0; i < depth; ++i) extents.set_s64(i, op.shape(0).dim(first_dim + i));
  Instr* moved = binary(op, Opcode::add, indices, op.b.constant(extents));
  return op.b.select(compare(op, Direction::lt, indices, 0), moved, indices);
}

int64_t vector_depth(Op& op, int64_t batch) {
  check_indices(op, 1);
  const int64_t rank = op.rank(1);
  const int64_t depth = rank > 0 ? op.shape(1).dim(rank - 1) : 0;
  if (rank < 1 || batch < 0 || batch >= rank || depth < 1 || batch + depth > op.rank(0))
    op.fail("data is {}, indices {}, batch_dims {}: the last dimension of indices must be 1 to {}",
            to_string(op.shape(0)), to_string(op.shape(1)), batch, op.rank(0) - batch);
  for (int64_t dim = 0; dim < batch; ++dim) {
    if (op.shape(0).dim(dim) != op.shape(1).dim(dim))
      op.fail("batch dimension {} is {} and {}", dim, op.shape(0).dim(dim), op.shape(1).dim(dim));
  }
  std::vector<tensor::IndexRange> ranges;
  for (int64_t i = 0; i < depth; ++i) ranges.push_back(positions_of(op, batch + i));
  op.demand(1, std::move(ranges));
  return depth;
}

// The same for index vectors over the first dimensions, flattened into one.
Instr* take_slice_nd(Op& op, int64_t depth) {
  const Literal* known = op.known(1);
  if (known == nullptr || known->elems() > op.limits().fold_elems) return nullptr;
  const Ints from = op.shape(0).extents();
  Ints positions;
  for (int64_t i = 0; i < known->elems(); i += depth) {
    int64_t position = 0;
    for (int64_t d = 0; d < depth; ++d) {
      const int64_t extent = from[static_cast<size_t>(d)], at = known->get_s64(i + d);
      position = position * extent + (at < 0 ? at + extent : at);
    }
    positions.push_back(position);
  }
  const std::optional<Progression> p = progression(positions);
  if (!p) return nullptr;
  Ints merged{product(from, 0, depth)}, result = op.shape(1).extents();
  result.pop_back();
  merged.insert(merged.end(), from.begin() + depth, from.end());
  result.insert(result.end(), from.begin() + depth, from.end());
  Instr* x = slice_dim(op, reshape(op, op.in(0), merged), 0, *p);
  return reshape(op, x, op.check_extents(result));
}

Outputs gather_nd(Op& op) {
  const int64_t batch = op.int_attr("batch_dims", 0);
  const int64_t depth = vector_depth(op, batch), rank = op.rank(0), index_rank = op.rank(1);
  if (batch == 0) {
    if (Instr* x = take_slice_nd(op, depth)) return {x};
  }
  if (op.shape(0).elems() == 0 && op.shape(1).elems() != 0) op.fail("takes from an empty value");
  if (op.shape(0).elems() == 0) {
    Ints result = op.shape(1).extents();
    const Ints from = op.shape(0).extents();
    result.pop_back();
    result.insert(result.end(), from.begin() + batch + depth, from.end());
    return {op.b.full(Shape::array(op.type(0), result), 0)};
  }
  hlo::GatherAttrs attrs;
  attrs.operand_batching_dims = attrs.start_indices_batching_dims = range(0, batch);
  attrs.collapsed_slice_dims = attrs.start_index_map = range(batch, batch + depth);
  attrs.offset_dims = range(index_rank - 1, index_rank - 1 + rank - batch - depth);
  attrs.index_vector_dim = index_rank - 1;
  attrs.slice_sizes = op.shape(0).extents();
  std::fill_n(attrs.slice_sizes.begin(), batch + depth, 1);
  return {op.b.gather(op.in(0), wrap_vectors(op, 1, batch, depth), std::move(attrs))};
}

// (old, new) -> new, or the combination by the reduction.
hlo::Computation* combine(Op& op, Type type) {
  const std::string reduction = op.string_attr("reduction", "none");
  if (reduction == "add") return op.b.scalar_computation(Opcode::add, type);
  if (reduction == "mul") return op.b.scalar_computation(Opcode::multiply, type);
  if (reduction == "max") return op.b.scalar_computation(Opcode::maximum, type);
  if (reduction == "min") return op.b.scalar_computation(Opcode::minimum, type);
  if (reduction != "none")
    op.fail("reduction is {}, wanted none, add, mul, max or min", quoted(reduction));
  hlo::Computation* replace = op.b.module()->add_computation("replace");
  hlo::Builder inner(replace);
  inner.parameter(0, Shape::scalar(type), "old");
  replace->set_root(inner.parameter(1, Shape::scalar(type), "new"));
  return replace;
}

Instr* scatter(Op& op, Instr* indices, hlo::ScatterAttrs attrs) {
  hlo::Computation* to_apply = combine(op, op.type(0));
  return op.b.make(Opcode::scatter, {op.in(0), indices, op.in(2)}, std::move(attrs), {to_apply});
}

// Index vectors of elements that are rows of so many each, [rows, ..., dimensions]: a mask over
// rows that was expanded has found all their elements. Whole rows are written then
// (opt/narrow_indices). Null: another form.
Instr* by_rows(Op& op, size_t input) {
  const Instr* rows = joined_coordinates(op.in(input));
  if (rows == nullptr || rows->operands().size() < 2) return nullptr;
  const auto elements = [](const Instr* row) {
    return row->is(Opcode::reshape) ? row->operand(0)->shape().extents() : Ints();
  };
  Ints each = elements(rows->operand(0));
  const std::vector<Instr*>& all = rows->operands();
  if (each.size() < 2 || !known_not_negative(op, input) ||
      std::any_of(all.begin(), all.end(), [&](const Instr* row) { return elements(row) != each; }))
    return nullptr;
  const int64_t rank = std::ssize(each);
  each.push_back(1);
  std::vector<Instr*> parts;
  for (const Instr* row : all) parts.push_back(reshape(op, row->operand(0), each));
  return op.b.concatenate(parts, rank);
}

Outputs scatter_nd(Op& op) {
  const int64_t depth = vector_depth(op, 0), rank = op.rank(0), index_rank = op.rank(1);
  Ints wanted = op.shape(1).extents();
  wanted.pop_back();
  const Ints data = op.shape(0).extents();
  wanted.insert(wanted.end(), data.begin() + depth, data.end());
  if (op.shape(2).extents() != wanted || op.type(2) != op.type(0))
    op.fail("updates is {}, wanted [{}] of the data's type", to_string(op.shape(2)),
            fmt::join(wanted, ","));
  hlo::ScatterAttrs attrs;
  attrs.inserted_window_dims = attrs.scatter_dims_to_operand_dims = range(0, depth);
  if (Instr* rows = depth == rank ? by_rows(op, 1) : nullptr) {
    attrs.index_vector_dim = rows->shape().rank() - 1;
    Ints each = rows->shape().extents();
    each.pop_back();
    return {op.b.make(Opcode::scatter, {op.in(0), rows, reshape(op, op.in(2), each)},
                      std::move(attrs), {combine(op, op.type(0))})};
  }
  attrs.update_window_dims = range(index_rank - 1, index_rank - 1 + rank - depth);
  attrs.index_vector_dim = index_rank - 1;
  return {scatter(op, wrap_vectors(op, 1, 0, depth), std::move(attrs))};
}

// The operand that indices repeat along all dimensions except `axis`; or null. Then whole slices
// are read or written instead of elements.
Instr* repeated_along_others(Instr* indices, int64_t axis) {
  while (indices->is(Opcode::convert)) indices = indices->operand(0);
  const bool repeats = indices->is(Opcode::broadcast) && indices->dimensions() == Ints{axis};
  return repeats ? indices->operand(0) : nullptr;
}

Outputs scatter_elements(Op& op) {
  const int64_t rank = op.rank(0);
  const int64_t axis = op.axis_attr(0, rank);
  check_elements(op, axis);
  if (op.shape(2).extents() != op.shape(1).extents() || op.type(2) != op.type(0))
    op.fail("updates is {}, wanted the shape of indices and the data's type",
            to_string(op.shape(2)));
  hlo::ScatterAttrs attrs;
  Instr* slices = rank > 1 ? repeated_along_others(op.in(1), axis) : nullptr;
  for (int64_t d = 0; d < rank; ++d)
    if (d != axis && op.shape(0).dim(d) != op.shape(1).dim(d)) slices = nullptr;
  if (slices != nullptr) {
    for (int64_t d = 0; d < rank; ++d)
      if (d != axis) attrs.update_window_dims.push_back(d);
    attrs.inserted_window_dims = attrs.scatter_dims_to_operand_dims = {axis};
    attrs.index_vector_dim = 1;
    Instr* positions = known_not_negative(op, 1) ? slices : from_the_beginning_of(op, slices, axis);
    return {scatter(op, reshape(op, positions, {op.shape(1).dim(axis), 1}), std::move(attrs))};
  }
  attrs.inserted_window_dims = attrs.scatter_dims_to_operand_dims = range(0, rank);
  attrs.index_vector_dim = rank;
  Instr* positions = element_positions(op, wrap(op, 1, axis), axis, range(0, op.rank(0)));
  return {scatter(op, positions, std::move(attrs))};
}

// Reverses the first sequence_lens[b] steps of each batch; the rest stays.
Outputs reverse_sequence(Op& op) {
  const int64_t rank = op.rank(0);
  const int64_t batch = op.int_attr("batch_axis", 1), time = op.int_attr("time_axis", 0);
  if (rank < 2 || batch < 0 || batch > 1 || time < 0 || time > 1 || batch == time ||
      op.rank(1) != 1 || op.shape(1).dim(0) != op.shape(0).dim(batch) ||
      !tensor::is_integer(op.type(1)))
    op.fail("input is {}, sequence_lens {}, batch_axis {}, time_axis {}", to_string(op.shape(0)),
            to_string(op.shape(1)), batch, time);
  const Ints extents = op.shape(0).extents(), both{extents[0], extents[1]};
  // If extents may change later, a fixed bound would be wrong.
  if (!op.limits().same_for_all_extents) op.demand(1, {{0, extents[static_cast<size_t>(time)]}});
  Instr* step = iota(op, Type::s64, both, time);
  Instr* length = op.b.broadcast(op.b.convert(op.in(1), Type::s64), both, {batch});
  Instr* back = binary(op, Opcode::subtract, op.b.binary(Opcode::subtract, length, step), 1);
  Instr* from = op.b.select(op.b.compare(Direction::lt, step, length), back, step);
  // Both coordinates of each element of the first two dimensions.
  Ints column = both;
  column.push_back(1);
  Instr* other = reshape(op, iota(op, Type::s64, both, batch), column);
  from = reshape(op, from, column);
  Instr* at = op.b.concatenate(
      time == 0 ? std::vector<Instr*>{from, other} : std::vector<Instr*>{other, from}, 2);
  hlo::GatherAttrs attrs;
  attrs.collapsed_slice_dims = attrs.start_index_map = {0, 1};
  attrs.offset_dims = range(2, rank);
  attrs.index_vector_dim = 2;
  attrs.slice_sizes = extents;
  attrs.slice_sizes[0] = attrs.slice_sizes[1] = 1;
  return {op.b.gather(op.in(0), at, std::move(attrs))};
}

// Writes an update into a cache along one axis, from each batch's start position on.
Outputs tensor_scatter(Op& op) {
  const int64_t rank = op.rank(0);
  const int64_t axis = op.axis_attr(-2, rank);
  const std::string mode = op.string_attr("mode", "linear");
  if (mode != "linear" && mode != "circular")
    op.fail("mode is {}, wanted linear or circular", quoted(mode));
  const Ints extents = op.shape(0).extents(), update = op.shape(1).extents();
  const auto a = static_cast<size_t>(axis);
  if (axis == 0 || op.rank(1) != rank || keeping(update, {axis}) != keeping(extents, {axis}) ||
      update[a] > extents[a] || op.type(1) != op.type(0))
    op.fail("past_cache is {}, update {}, axis {}", to_string(op.shape(0)), to_string(op.shape(1)),
            axis);
  Instr* start = op.b.full(Shape::array(Type::s64, {extents[0]}), 0);
  if (op.has(2)) {
    if (op.rank(2) != 1 || op.shape(2).dim(0) != extents[0] || !tensor::is_integer(op.type(2)))
      op.fail("write_indices is {}, wanted [{}]", to_string(op.shape(2)), extents[0]);
    if (mode == "linear") op.demand(2, {{0, extents[a] - update[a]}});
    start = op.b.convert(op.in(2), Type::s64);
  }
  // For every position of the cache: the index of the update written there.
  Ints flat{extents[0], extents[a]};
  Instr* at =
      op.b.binary(Opcode::subtract, iota(op, Type::s64, flat, 1), op.b.broadcast(start, flat, {0}));
  if (mode == "circular") {
    at = binary(op, Opcode::add, binary(op, Opcode::remainder, at, extents[a]), extents[a]);
    at = binary(op, Opcode::remainder, at, extents[a]);
  }
  Instr* written = op.b.binary(Opcode::and_, compare(op, Direction::ge, at, 0),
                               compare(op, Direction::lt, at, update[a]));
  if (update[a] == 0) return {op.in(0)};
  at = binary(op, Opcode::minimum, binary(op, Opcode::maximum, at, 0), update[a] - 1);
  hlo::GatherAttrs attrs;
  attrs.operand_batching_dims = attrs.start_indices_batching_dims = {0};
  attrs.collapsed_slice_dims = attrs.start_index_map = {axis};
  attrs.index_vector_dim = 2;
  attrs.slice_sizes = update;
  attrs.slice_sizes[0] = attrs.slice_sizes[a] = 1;
  // The taken positions come right after the batch; move the dimensions between in front of them.
  attrs.offset_dims = range(2, rank);
  Instr* moved = op.b.gather(op.in(1), at, std::move(attrs));
  Ints order{0};
  for (int64_t d = 1; d < axis; ++d) order.push_back(d + 1);
  order.push_back(1);
  for (int64_t d = axis + 1; d < rank; ++d) order.push_back(d);
  if (axis != 1) moved = op.b.transpose(moved, order);
  return {op.b.select(op.b.broadcast(written, extents, {0, axis}), moved, op.in(0))};
}

constexpr OpEntry kOps[] = {
    {"Gather", 2, 2, gather, true, Text::passes},
    {"GatherElements", 2, 2, gather_elements, true, Text::passes},
    {"GatherND", 2, 2, gather_nd, true, Text::passes},
    {"ReverseSequence", 2, 2, reverse_sequence, true, Text::passes},
    {"Scatter", 3, 3, scatter_elements, true, Text::passes},
    {"ScatterElements", 3, 3, scatter_elements, true, Text::passes},
    {"ScatterND", 3, 3, scatter_nd, true, Text::passes},
    {"TensorScatter", 2, 3, tensor_scatter},
};

}  // namespace

std::span<const OpEntry> gather_ops() { return kOps; }

}  // namespace heddle::import
