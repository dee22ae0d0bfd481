#include "opt/follow_layout.h"

#include <algorithm>

namespace heddle::opt {

using hlo::DimKind;
using hlo::DimLink;
using hlo::Mapping;

bool moves_nothing(const Ints& order, const Ints& extents) {
  Ints moved;
  for (int64_t d : order)
    if (extents[static_cast<size_t>(d)] != 1) moved.push_back(d);
  return is_ascending(moved);
}

int64_t place_of(const Ints& order, int64_t d) {
  return std::find(order.begin(), order.end(), d) - order.begin();
}

Ints seen_in(const Instr* x, const DimLink& link) {
  Ints result;
  if (link.kind == DimKind::located && link.to == link.to_end && link.other >= 0) {
    for (const DimLink& position : hlo::index_map(*x, static_cast<size_t>(link.other)).links)
      if (position.kind == DimKind::same) result.push_back(position.to);
    return result;
  }
  for (int64_t d = link.to; d < link.to_end; ++d) result.push_back(d);
  return result;
}

bool is_take(const Instr* x) {
  if (!x->is(Opcode::gather) || !x->attrs_as<hlo::GatherAttrs>().operand_batching_dims.empty())
    return false;
  const std::vector<DimLink> links = hlo::index_map(*x, 0).links;
  const DimLink* axis = nullptr;
  for (const DimLink& link : links) {
    if (link.kind == DimKind::same) continue;
    if (axis || link.kind != DimKind::located || link.other_dim >= 0) return false;
    axis = &link;
  }
  if (!axis) return false;
  Ints expected = counting(x->operand(1)->shape().rank());
  for (int64_t& d : expected) d += axis->from;
  return seen_in(x, *axis) == expected;
}

namespace {

class Follower {
 public:
  Follower(Instr* x, size_t lead, const Stored& kept, const StoreAs& store_as, hlo::Builder& b)
      : x_(x),
        lead_(x->operand(lead)),
        map_(hlo::index_map(*x, lead)),
        order_(kept.order),
        kept_(kept),
        store_as_(store_as),
        b_(b) {
    find_order();
  }

  std::optional<Stored> run() {
    if (map_.is_opaque || !x_->shape().is_array()) return std::nullopt;
    switch (opcode_info(x_->opcode()).mapping) {
      case Mapping::same:
      case Mapping::join:
        return beside_others();
      case Mapping::broadcast:
      case Mapping::affine:
        return rebuilt({kept_.instr});
      case Mapping::reduce:
        return keeps_sums() ? rebuilt({kept_.instr}) : std::nullopt;
      case Mapping::window:
        if (x_->is(Opcode::convolution) || !keeps_sums()) return std::nullopt;
        return rebuilt({kept_.instr});
      case Mapping::runtime:
        if (!is_take(x_) || lead_ != x_->operand(0) || lead_ == x_->operand(1)) return std::nullopt;
        return take();
      case Mapping::regroup:
        return regrouped();
      case Mapping::permute:  // only renames the dimensions
        return Stored{result_, kept_.instr};
      default:
        return std::nullopt;
    }
  }

 private:
  // Result dimensions take the order of the operand dimensions that map to them; dimensions that
  // are merged or split stay together, and a new dimension comes right after its logical
  // predecessor.
  void find_order() {
    for (int64_t d : order_) {
      if (contains(gathered_, d)) continue;
      const DimLink* link = map_.of_operand(d);
      if (!link) {
        gathered_.push_back(d);
        continue;
      }
      for (int64_t i = link->from; i < link->from_end; ++i) gathered_.push_back(i);
      for (int64_t to : seen_in(x_, *link)) result_.push_back(to);
    }
    for (int64_t d = 0; x_->shape().is_array() && d < x_->shape().rank(); ++d) {
      if (contains(result_, d)) continue;
      const auto before = std::find(result_.begin(), result_.end(), d - 1);
      result_.insert(before == result_.end() ? result_.begin() : before + 1, d);
    }
  }

  // Sums keep their order.
  bool keeps_sums() const {
    Ints summed;
    for (int64_t d : order_) {
      const DimLink& link = *map_.of_operand(d);
      const bool is_wide =
          link.kind == DimKind::window ? link.window.size != 1 : lead_->shape().dim(d) != 1;
      if (link.kind != DimKind::same && is_wide) summed.push_back(d);
    }
    return is_ascending(summed);
  }

  // Scalar operands are used unchanged.
  std::optional<Stored> beside_others() {
    for (size_t k = 0; k < x_->operands().size(); ++k)
      if (hlo::index_map(*x_, k).is_opaque) return std::nullopt;
    std::vector<Instr*> operands;
    for (Instr* operand : x_->operands())
      operands.push_back(operand->shape().rank() == 0 ? operand : store_as_(operand, order_));
    return rebuilt(std::move(operands));
  }

  // Operands beyond those given are scalars.
  std::optional<Stored> rebuilt(std::vector<Instr*> operands) {
    for (size_t k = operands.size(); k < x_->operands().size(); ++k)
      operands.push_back(x_->operand(k));
    const Shape shape = Shape::array(x_->shape().type(), permuted(x_->shape().extents(), result_));
    return Stored{result_,
                  b_.make(x_->opcode(), std::move(operands), attrs(), x_->called(), &shape)};
  }

  hlo::Attrs attrs() const {
    if (const auto* pad = std::get_if<hlo::PadAttrs>(&x_->attrs()))
      return hlo::PadAttrs{permuted(pad->low, order_), permuted(pad->high, order_),
                           permuted(pad->interior, order_)};
    if (const auto* slice = std::get_if<hlo::SliceAttrs>(&x_->attrs()))
      return hlo::SliceAttrs{permuted(slice->starts, order_), permuted(slice->limits, order_),
                             permuted(slice->strides, order_)};
    if (const auto* window = std::get_if<hlo::WindowAttrs>(&x_->attrs())) {
      hlo::Window moved;
      for (int64_t d : order_) moved.dims.push_back(window->window.dims[static_cast<size_t>(d)]);
      return hlo::WindowAttrs{moved};
    }
    if (is_elementwise(x_) || !std::holds_alternative<hlo::DimensionsAttrs>(x_->attrs()))
      return x_->attrs();
    Ints dims;
    if (x_->is(Opcode::broadcast)) {
      for (int64_t d : order_) dims.push_back(place_of(result_, map_.of_operand(d)->to));
    } else {
      for (int64_t d : x_->dimensions()) dims.push_back(place_of(order_, d));
      std::sort(dims.begin(), dims.end());
    }
    return hlo::DimensionsAttrs{dims};
  }

  std::optional<Stored> take() {
    for (const DimLink& link : map_.links)
      if (link.kind == DimKind::located)
        return Stored{result_, b_.take(kept_.instr, x_->operand(1), place_of(order_, link.from))};
    return std::nullopt;
  }

  // Dimensions that are merged or split must be adjacent and in order; if not, one transpose brings
  // them together, which going back to the logical order would need as well.
  std::optional<Stored> regrouped() {
    if (x_->shape().type() != lead_->shape().type()) return std::nullopt;
    if (is_counting(result_) && !moves_nothing(order_, lead_->shape().extents()) &&
        gathered_ != order_)
      return std::nullopt;  // no gain
    return Stored{
        result_, b_.reshape(store_as_(lead_, gathered_), permuted(x_->shape().extents(), result_))};
  }

  Instr* x_;
  Instr* lead_;
  const hlo::IndexMap map_;
  const Ints& order_;
  const Stored& kept_;
  const StoreAs& store_as_;
  hlo::Builder& b_;
  Ints gathered_, result_;  // the operand's dimensions, the result's
};

}  // namespace

std::optional<Stored> follow_layout(Instr* x, size_t lead, const Stored& kept,
                                    const StoreAs& store_as, hlo::Builder& b) {
  return Follower(x, lead, kept, store_as, b).run();
}

}  // namespace heddle::opt
