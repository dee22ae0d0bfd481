#include "opt/follow_layout.h"

#include <algorithm>

namespace heddle::opt {

bool moves_nothing(const Ints& order, const Ints& extents) {
  Ints moved;
  for (int64_t d : order)
    if (extents[static_cast<size_t>(d)] != 1) moved.push_back(d);
  return is_ascending(moved);
}

namespace {

using hlo::Builder;

int64_t place_of(const Ints& order, int64_t d) {
  return std::find(order.begin(), order.end(), d) - order.begin();
}

bool same_extents(const Instr* a, const Instr* b) {
  return a->shape().extents() == b->shape().extents();
}

// Scalars that select and clamp take beside arrays.
bool is_beside(const Instr* x, const Instr* operand) {
  return operand->shape().rank() == 0 && x->shape().rank() != 0;
}

class Follower {
 public:
  Follower(Instr* x, size_t lead, const Stored& kept, const StoreAs& store_as, Builder& b)
      : x_(x), lead_(x->operand(lead)), kept_(kept), store_as_(store_as), b_(b) {}

  std::optional<Stored> run() {
    if (is_elementwise(x_)) return elementwise();
    switch (x_->opcode()) {
      case Opcode::broadcast:
        return broadcast();
      case Opcode::concatenate:
        return concatenate();
      case Opcode::gather:
        return take();
      case Opcode::pad:
        return pad();
      case Opcode::reduce:
        return reduce();
      case Opcode::reduce_window:
        return reduce_window();
      case Opcode::reshape:
        return reshape();
      case Opcode::reverse:
        return reverse();
      case Opcode::slice:
        return slice();
      case Opcode::transpose:
        return transpose();
      default:
        return std::nullopt;
    }
  }

 private:
  const Ints& order() const { return kept_.order; }

  // x of other operands and attributes, its dimensions in the kept order.
  Stored same_order(std::vector<Instr*> operands, hlo::Attrs attrs) {
    const Shape shape = Shape::array(x_->shape().type(), permuted(x_->shape().extents(), order()));
    Instr* made =
        b_.make(x_->opcode(), std::move(operands), std::move(attrs), x_->called(), &shape);
    return {order(), made};
  }

  std::optional<Stored> elementwise() {
    for (const Instr* operand : x_->operands()) {
      const bool beside = is_beside(x_, operand);
      if (beside ? !(x_->is(Opcode::select) || x_->is(Opcode::clamp)) : !same_extents(operand, x_))
        return std::nullopt;
    }
    std::vector<Instr*> operands;
    for (Instr* operand : x_->operands())
      operands.push_back(is_beside(x_, operand) ? operand : store_as_(operand, order()));
    return same_order(std::move(operands), x_->attrs());
  }

  // Dimensions that the broadcast adds stand behind the one that they stand behind logically.
  std::optional<Stored> broadcast() {
    const Ints& dims = x_->dimensions();
    if (!is_ascending(dims)) return std::nullopt;
    Ints result;
    auto added_from = [&](int64_t d) {
      for (; d < x_->shape().rank() && !contains(dims, d); ++d) result.push_back(d);
    };
    added_from(0);
    for (int64_t d : order()) {
      result.push_back(dims[static_cast<size_t>(d)]);
      added_from(result.back() + 1);
    }
    Ints places;
    for (int64_t d : order()) places.push_back(place_of(result, dims[static_cast<size_t>(d)]));
    Instr* made = b_.broadcast(kept_.instr, permuted(x_->shape().extents(), result), places);
    return Stored{result, made};
  }

  std::optional<Stored> concatenate() {
    std::vector<Instr*> operands;
    for (Instr* operand : x_->operands()) operands.push_back(store_as_(operand, order()));
    return same_order(std::move(operands),
                      hlo::DimensionsAttrs{{place_of(order(), x_->dimensions().at(0))}});
  }

  // Positions along one dimension, as numpy takes them.
  std::optional<Stored> take() {
    const auto& attrs = x_->attrs_as<hlo::GatherAttrs>();
    const Instr* indices = x_->operand(1);
    if (lead_ != x_->operand(0) || lead_ == indices || attrs.start_index_map.size() != 1 ||
        attrs.collapsed_slice_dims != attrs.start_index_map ||
        attrs.index_vector_dim != indices->shape().rank() || !attrs.operand_batching_dims.empty())
      return std::nullopt;
    const int64_t axis = attrs.start_index_map[0], rank = indices->shape().rank();
    Ints expected;
    for (int64_t d = 0; d < lead_->shape().rank(); ++d) {
      if (d != axis) expected.push_back(d < axis ? d : d - 1 + rank);
      const int64_t whole = d == axis ? 1 : lead_->shape().dim(d);
      if (attrs.slice_sizes[static_cast<size_t>(d)] != whole) return std::nullopt;
    }
    if (attrs.offset_dims != expected) return std::nullopt;
    Ints result;
    for (int64_t d : order()) {
      if (d == axis) {
        for (int64_t i = 0; i < rank; ++i) result.push_back(axis + i);
      } else {
        result.push_back(d < axis ? d : d - 1 + rank);
      }
    }
    return Stored{result, b_.take(kept_.instr, x_->operand(1), place_of(order(), axis))};
  }

  std::optional<Stored> pad() {
    if (lead_ != x_->operand(0)) return std::nullopt;
    const auto& attrs = x_->attrs_as<hlo::PadAttrs>();
    return same_order({kept_.instr, x_->operand(1)},
                      hlo::PadAttrs{permuted(attrs.low, order()), permuted(attrs.high, order()),
                                    permuted(attrs.interior, order())});
  }

  std::optional<Stored> reduce() {
    // Several results are a tuple, which has no order of its own.
    if (x_->operands().size() != 2 || lead_ != x_->operand(0)) return std::nullopt;
    Ints reduced, kept, before, result;  // `before`: the reduced ones, as they were
    for (size_t i = 0; i < order().size(); ++i) {
      const int64_t d = order()[i];
      if (contains(x_->dimensions(), d)) {
        reduced.push_back(static_cast<int64_t>(i));
        if (lead_->shape().dim(d) != 1) before.push_back(d);
      } else {
        kept.push_back(d);
      }
    }
    if (!is_ascending(before)) return std::nullopt;  // another order of the sum
    for (int64_t d : kept) {
      const auto smaller = [&](int64_t other) { return other < d; };
      result.push_back(std::count_if(kept.begin(), kept.end(), smaller));
    }
    const Shape shape = Shape::array(x_->shape().type(), permuted(x_->shape().extents(), result));
    Instr* made = b_.make(Opcode::reduce, {kept_.instr, x_->operand(1)},
                          hlo::DimensionsAttrs{reduced}, x_->called(), &shape);
    return Stored{result, made};
  }

  std::optional<Stored> reduce_window() {
    if (x_->operands().size() != 2 || lead_ != x_->operand(0)) return std::nullopt;
    const auto& window = x_->attrs_as<hlo::WindowAttrs>().window;
    hlo::Window moved;
    Ints wide;
    for (int64_t d : order()) {
      moved.dims.push_back(window.dims[static_cast<size_t>(d)]);
      if (moved.dims.back().size != 1) wide.push_back(d);
    }
    if (!is_ascending(wide)) return std::nullopt;  // another order of the sum
    return same_order({kept_.instr, x_->operand(1)}, hlo::WindowAttrs{moved});
  }

  // Dimensions that are merged or split must lie together, in order; they are brought together
  // where they do not: one transpose, which going back to the logical order would take as well.
  std::optional<Stored> reshape() {
    const Ints from = lead_->shape().extents(), to = x_->shape().extents();
    if (x_->shape().elems() == 0) return std::nullopt;
    const std::vector<ReshapePiece> pieces = reshape_pieces(from, to);
    Ints gathered, result;  // the operand's dimensions, the result's
    for (int64_t d : order()) {
      if (contains(gathered, d)) continue;
      for (const ReshapePiece& piece : pieces) {
        if (d < piece.from_begin || d >= piece.from_end) continue;
        for (int64_t i = piece.from_begin; i < piece.from_end; ++i) gathered.push_back(i);
        for (int64_t i = piece.to_begin; i < piece.to_end; ++i) result.push_back(i);
      }
    }
    // New extents of 1: behind the dimension that they stand behind logically.
    for (int64_t d = 0; d < static_cast<int64_t>(to.size()); ++d) {
      if (contains(result, d)) continue;
      const auto before = std::find(result.begin(), result.end(), d - 1);
      result.insert(before == result.end() ? result.begin() : before + 1, d);
    }
    if (is_counting(result) && !moves_nothing(order(), from) && gathered != order())
      return std::nullopt;  // nothing is won
    return Stored{result, b_.reshape(store_as_(lead_, gathered), permuted(to, result))};
  }

  std::optional<Stored> reverse() {
    Ints dims;
    for (int64_t d : x_->dimensions()) dims.push_back(place_of(order(), d));
    std::sort(dims.begin(), dims.end());
    return same_order({kept_.instr}, hlo::DimensionsAttrs{dims});
  }

  std::optional<Stored> slice() {
    const auto& attrs = x_->attrs_as<hlo::SliceAttrs>();
    return same_order({kept_.instr}, hlo::SliceAttrs{permuted(attrs.starts, order()),
                                                     permuted(attrs.limits, order()),
                                                     permuted(attrs.strides, order())});
  }

  // Only other names for the dimensions.
  std::optional<Stored> transpose() {
    const Ints back = inverted(x_->dimensions());
    return Stored{permuted(back, order()), kept_.instr};
  }

  Instr* x_;
  Instr* lead_;
  const Stored& kept_;
  const StoreAs& store_as_;
  Builder& b_;
};

}  // namespace

std::optional<Stored> follow_layout(Instr* x, size_t lead, const Stored& kept,
                                    const StoreAs& store_as, Builder& b) {
  return Follower(x, lead, kept, store_as, b).run();
}

}  // namespace heddle::opt
