// narrow_indices: exporters write a gather or a scatter along one axis with one index vector per
// element: the element's own position in all other dimensions, and along the axis an index that is
// repeated over a row. If one part of the index vectors is the position along dimension d of the
// index array, and the other parts do not vary along d, whole rows are read and written: the slice
// gets the extent of d in that dimension of the operand, and the index array loses d. The same
// elements go to the same places in the same order. Each rewrite leaves one part of index vectors
// less. A gather whose index vectors have a single part, a position, is its operand, broadcast.
#include <algorithm>
#include <map>

#include "opt/coordinate.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

using hlo::Builder;

constexpr int kDeepest = 24;

int64_t place_of(const Ints& list, int64_t value) {
  const auto found = std::find(list.begin(), list.end(), value);
  return found == list.end() ? -1 : found - list.begin();
}

// The dimension whose coordinate every element of x equals; -1: none.
int64_t coordinate_of(const Instr* x) {
  const std::optional<Coordinate> found = coordinate_in(x);
  return found && found->step == 1 && found->offset == 0 ? found->dimension : -1;
}

// Removes a dimension from values that do not vary along it.
class Narrower {
 public:
  explicit Narrower(Builder& b) : b_(b) {}

  static bool can(const Instr* x, int64_t d, int depth = 0) {
    if (depth > kDeepest || !are_static_arrays(x)) return false;
    if (x->shape().dim(d) == 1) return true;
    if (x->is(Opcode::iota)) return x->attrs_as<hlo::DimensionAttrs>().dimension != d;
    if (x->operands().empty() || !(is_elementwise(x) || is_moved(x))) return false;
    for (size_t k = 0; k < x->operands().size(); ++k) {
      const hlo::IndexMap map = hlo::index_map(*x, k);
      const hlo::DimLink* link = map.of_result(d);
      if (map.is_opaque) return false;
      if (!link) continue;  // repeated
      if (link->kind != hlo::DimKind::same || !can(x->operand(k), link->from, depth + 1))
        return false;
    }
    return true;
  }

  // Precondition: can(x, d).
  Instr* without(Instr* x, int64_t d) {
    Instr*& known = made_[{x, d}];
    if (!known) known = make(x, d);
    return known;
  }

 private:
  static bool is_moved(const Instr* x) {
    return x->is(Opcode::broadcast) || x->is(Opcode::transpose) || x->is(Opcode::reshape);
  }
  static int64_t source(const Instr* x, int64_t d) {
    return hlo::index_map(*x, 0).of_result(d)->from;
  }
  static Ints dropped(Ints list, int64_t d) {
    list.erase(list.begin() + d);
    return list;
  }
  static Ints moved_up(Ints dimensions, int64_t d) {
    for (int64_t& dimension : dimensions) dimension -= dimension > d;
    return dimensions;
  }

  Instr* make(Instr* x, int64_t d) {
    const Ints extents = dropped(x->shape().extents(), d);
    if (x->shape().dim(d) == 1) return b_.reshape(x, extents);
    switch (x->opcode()) {
      case Opcode::iota: {
        const int64_t along = x->attrs_as<hlo::DimensionAttrs>().dimension;
        return b_.iota(Shape::array(x->shape().type(), extents), along - (along > d));
      }
      case Opcode::broadcast: {
        const int64_t from = place_of(x->dimensions(), d);
        if (from < 0) return b_.broadcast(x->operand(0), extents, moved_up(x->dimensions(), d));
        return b_.broadcast(without(x->operand(0), from), extents,
                            moved_up(dropped(x->dimensions(), from), d));
      }
      case Opcode::transpose: {
        const int64_t from = source(x, d);
        return b_.transpose(without(x->operand(0), from),
                            moved_up(dropped(x->dimensions(), d), from));
      }
      case Opcode::reshape:
        return b_.reshape(without(x->operand(0), source(x, d)), extents);
      default: {
        std::vector<Instr*> operands;
        for (Instr* operand : x->operands())
          operands.push_back(operand->shape().rank() == 0 ? operand : without(operand, d));
        const Shape shape = Shape::array(x->shape().type(), extents);
        return b_.make(x->opcode(), std::move(operands), x->attrs(), {}, &shape);
      }
    }
  }

  Builder& b_;
  std::map<std::pair<const Instr*, int64_t>, Instr*> made_;
};

// Common form of gather and scatter.
struct Access {
  Instr* indices = nullptr;
  const Shape* operand = nullptr;
  const Shape* rows = nullptr;  // the result of a gather, the updates of a scatter
  int64_t vector_dim = 0;
  Ints to_operand;      // by part of the index vectors
  Ints window, single;  // dimensions of `rows` inside windows; operand dimensions windows lack
  Ints operand_batch, index_batch;
};

// The removed part, and the attributes after its removal.
struct Narrowed {
  size_t part = 0;    // of the concatenation
  int64_t along = 0;  // dimension of the indices
  int64_t into = 0;   // dimension of the operand
  Ints window, single;
};

// Whether the index vectors are a concatenation of parts of one component each.
bool has_parts(const Access& a) {
  if (!a.indices->is(Opcode::concatenate) || a.indices->dimensions()[0] != a.vector_dim ||
      a.indices->operands().size() < 2 || a.indices->operands().size() != a.to_operand.size())
    return false;
  return are_static_arrays(a.indices);
}

std::optional<Narrowed> narrow(const Access& a) {
  if (!has_parts(a) || a.rows->elems() == 0) return std::nullopt;
  const std::vector<Instr*>& parts = a.indices->operands();
  for (size_t i = 0; i < parts.size(); ++i) {
    Narrowed result{i, coordinate_of(parts[i]), a.to_operand[i], a.window, a.single};
    const int64_t d = result.along;
    if (d < 0 || d == a.vector_dim || contains(a.index_batch, d) ||
        !contains(a.single, result.into) || a.indices->shape().dim(d) > a.operand->dim(result.into))
      continue;
    bool alike = true;
    for (size_t j = 0; alike && j < parts.size(); ++j) alike = j == i || Narrower::can(parts[j], d);
    if (!alike) continue;
    // Position of d in `rows`: its dimensions outside the windows are those of the indices.
    int64_t batch = d - (d > a.vector_dim), place = 0;
    for (;; ++place)
      if (!contains(a.window, place) && batch-- == 0) break;
    result.window.insert(std::lower_bound(result.window.begin(), result.window.end(), place),
                         place);
    result.single.erase(std::find(result.single.begin(), result.single.end(), result.into));
    // Dimensions of a window are in the operand's order.
    int64_t before = 0;
    for (int64_t m = 0; m < result.into; ++m)
      before += !contains(result.single, m) && !contains(a.operand_batch, m);
    if (place_of(result.window, place) == before) return result;
  }
  return std::nullopt;
}

Instr* narrow_indices_of(const Access& a, const Narrowed& n, Builder& b) {
  Narrower narrower(b);
  std::vector<Instr*> parts;
  for (size_t i = 0; i < a.indices->operands().size(); ++i)
    if (i != n.part) parts.push_back(narrower.without(a.indices->operand(i), n.along));
  return parts.size() == 1 ? parts[0]
                           : b.concatenate(parts, a.vector_dim - (a.vector_dim > n.along));
}

Ints without_place(Ints list, size_t place) {
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(place));
  return list;
}

Ints lowered(Ints dims, int64_t gone) {
  for (int64_t& dim : dims) dim -= dim > gone;
  return dims;
}

// A gather at the position along a dimension of the indices is just a slice of the operand, with
// its dimensions in the order of the result, broadcast along the indices' other dimensions.
Instr* gather_of_positions(Instr* x, Builder& b) {
  const auto& attrs = x->attrs_as<hlo::GatherAttrs>();
  Instr* operand = x->operand(0);
  const Instr* indices = x->operand(1);
  if (attrs.start_index_map.size() != 1 || x->shape().elems() == 0) return nullptr;
  const int64_t along = coordinate_of(indices), into = attrs.start_index_map[0];
  if (along < 0 || along == attrs.index_vector_dim || !contains(attrs.collapsed_slice_dims, into) ||
      indices->shape().dim(along) > operand->shape().dim(into))
    return nullptr;
  Ints sizes = attrs.slice_sizes, dropped;  // dropped: dimensions of one element
  sizes[static_cast<size_t>(into)] = indices->shape().dim(along);
  std::map<int64_t, int64_t> from;  // by dimension of the result: that of the operand
  std::vector<int64_t> windows;
  for (int64_t m = 0; m < operand->shape().rank(); ++m) {
    if (contains(attrs.operand_batching_dims, m))
      sizes[static_cast<size_t>(m)] = operand->shape().dim(m);
    else if (!contains(attrs.collapsed_slice_dims, m))
      windows.push_back(m);
    else if (m != into)
      dropped.push_back(m);
  }
  for (size_t i = 0; i < windows.size(); ++i) from[attrs.offset_dims[i]] = windows[i];
  int64_t place = 0;
  for (int64_t d = 0; d < indices->shape().rank(); ++d) {
    if (d == attrs.index_vector_dim) continue;
    while (contains(attrs.offset_dims, place)) ++place;
    if (d == along) from[place] = into;
    if (const int64_t batch = place_of(attrs.start_indices_batching_dims, d); batch >= 0)
      from[place] = attrs.operand_batching_dims[static_cast<size_t>(batch)];
    ++place;
  }
  Ints order, dimensions, extents;
  for (const auto& [to, m] : from) {
    dimensions.push_back(to);
    order.push_back(m);
    extents.push_back(sizes[static_cast<size_t>(m)]);
  }
  order.insert(order.end(), dropped.begin(), dropped.end());
  const Ints zeros(sizes.size(), 0), ones(sizes.size(), 1);
  Instr* y = sizes == operand->shape().extents() ? operand : b.slice(operand, zeros, sizes, ones);
  if (!is_counting(order)) y = b.transpose(y, order);
  if (!dropped.empty()) y = b.reshape(y, extents);
  return b.broadcast(y, x->shape().extents(), dimensions);
}

Rewriter::Proposal visit_gather(Instr* x, Builder& b) {
  if (Instr* simple = gather_of_positions(x, b)) return {simple, "positions"};
  auto attrs = x->attrs_as<hlo::GatherAttrs>();
  const Access a{x->operand(1),
                 &x->operand(0)->shape(),
                 &x->shape(),
                 attrs.index_vector_dim,
                 attrs.start_index_map,
                 attrs.offset_dims,
                 attrs.collapsed_slice_dims,
                 attrs.operand_batching_dims,
                 attrs.start_indices_batching_dims};
  const std::optional<Narrowed> n = narrow(a);
  if (!n) return {};
  Instr* indices = narrow_indices_of(a, *n, b);
  attrs.offset_dims = n->window;
  attrs.collapsed_slice_dims = n->single;
  attrs.start_index_map = without_place(attrs.start_index_map, n->part);
  attrs.slice_sizes[static_cast<size_t>(n->into)] = a.indices->shape().dim(n->along);
  attrs.start_indices_batching_dims = lowered(attrs.start_indices_batching_dims, n->along);
  attrs.index_vector_dim -= attrs.index_vector_dim > n->along;
  attrs.indices_are_sorted = false;
  return {b.gather(x->operand(0), indices, attrs), "rows"};
}

Rewriter::Proposal visit_scatter(Instr* x, Builder& b) {
  auto attrs = x->attrs_as<hlo::ScatterAttrs>();
  if (x->operands().size() != 3) return {};
  const Access a{x->operand(1),
                 &x->operand(0)->shape(),
                 &x->operand(2)->shape(),
                 attrs.index_vector_dim,
                 attrs.scatter_dims_to_operand_dims,
                 attrs.update_window_dims,
                 attrs.inserted_window_dims,
                 attrs.input_batching_dims,
                 attrs.scatter_indices_batching_dims};
  const std::optional<Narrowed> n = narrow(a);
  if (!n) return {};
  Instr* indices = narrow_indices_of(a, *n, b);
  attrs.update_window_dims = n->window;
  attrs.inserted_window_dims = n->single;
  attrs.scatter_dims_to_operand_dims = without_place(attrs.scatter_dims_to_operand_dims, n->part);
  attrs.scatter_indices_batching_dims = lowered(attrs.scatter_indices_batching_dims, n->along);
  attrs.index_vector_dim -= attrs.index_vector_dim > n->along;
  attrs.indices_are_sorted = false;
  const Shape shape = x->shape().without_layout();
  return {
      b.make(Opcode::scatter, {x->operand(0), indices, x->operand(2)}, attrs, x->called(), &shape),
      "rows"};
}

Rewriter::Proposal visit(Instr* x, Builder& b) {
  if (!are_static_arrays(x)) return {};
  return x->is(Opcode::gather) ? visit_gather(x, b) : visit_scatter(x, b);
}

}  // namespace

Result<bool> narrow_indices(hlo::Module& module, const PassContext& context) {
  return rewrite_module(module, context, "narrow_indices", visit, [](const Instr* instr) {
    return instr->is(Opcode::gather) || instr->is(Opcode::scatter);
  });
}

}  // namespace heddle::opt
