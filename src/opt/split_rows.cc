// split_rows: dimensions that a reshape merges are kept apart, as far as that goes. PyTorch writes
// a layer on [batch, length, features] as a product of [batch * length, features]; if both extents
// are dynamic, theirs is no multiple of either, and the model could not be bounded
// (hlo/dim_classes.h). From each reshape that merges a dynamic dimension with the one around it,
// what follows is made once more with both: elementwise operators, reductions, broadcasts,
// transposes and products, up to a reshape or a reduction, which takes the place of the old one.
// What is not reached stays as it was. One walk over the entry, and another where that has shown
// more of what is dynamic.
#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "hlo/builder.h"
#include "hlo/dim_classes.h"
#include "opt/match.h"
#include "opt/passes.h"

namespace heddle::opt {
namespace {

constexpr int kMostWalks = 64;

// A value whose dimension `at` is kept as two: `at` and the next one of `instr`.
struct Split {
  Instr* instr = nullptr;
  int64_t at = 0;
};

Ints extents_of(const Instr* x) { return x->shape().extents(); }

// The extents with dimension `at` as two.
Ints apart(Ints extents, int64_t at, int64_t outer, int64_t inner) {
  extents[static_cast<size_t>(at)] = inner;
  extents.insert(extents.begin() + at, outer);
  return extents;
}

// Dimensions behind `at` are one further; `at` itself becomes two.
Ints apart(const Ints& dimensions, int64_t at) {
  Ints result;
  for (int64_t d : dimensions) {
    result.push_back(d > at ? d + 1 : d);
    if (d == at) result.push_back(at + 1);
  }
  return result;
}

class Splitter {
 public:
  explicit Splitter(hlo::Module* module) : entry_(module->entry()), b_(entry_), classes_(*module) {
    std::vector<std::pair<const Instr*, int64_t>> open;
    for (const hlo::Symbol& symbol : module->symbols)
      for (const auto& [parameter, dimension] : symbol.places)
        open.emplace_back(entry_->parameters().at(static_cast<size_t>(parameter)), dimension);
    for (const auto& [x, dimension] : classes_.and_windows_over(open))
      open_.insert(classes_.of(x, dimension));
  }

  bool run() {
    const std::vector<Instr*> all = entry_->instrs();
    for (Instr* x : all) visit(x);
    b_.check();
    entry_->remove_dead();
    entry_->sort();
    return changed_;
  }

 private:
  void visit(Instr* x) {
    if (!is_static_array(x)) return;
    if (x->is(Opcode::reshape)) return visit_reshape(x);
    const bool follows = std::any_of(x->operands().begin(), x->operands().end(),
                                     [&](Instr* operand) { return split_.count(operand) > 0; });
    if (!follows) return;
    if (is_elementwise(x)) return visit_elementwise(x);
    switch (x->opcode()) {
      case Opcode::reduce:
        return visit_reduce(x);
      case Opcode::broadcast:
        return visit_broadcast(x);
      case Opcode::transpose:
        return visit_transpose(x);
      case Opcode::dot:
        return visit_dot(x);
      default:
        return;
    }
  }

  void keep(Instr* x, Instr* made, int64_t at) {
    if (made != x->operand(0)) made->add_notes(*x);
    split_[x] = {made, at};
  }

  void replace(Instr* x, Instr* made) {
    if (made != x) made->add_notes(*x);
    entry_->replace_all_uses(x, made);
    changed_ = true;
  }

  void visit_reshape(Instr* x) {
    Instr* from = x->operand(0);
    const auto known = split_.find(from);
    if (known == split_.end()) return begin(x);
    const auto [instr, at] = known->second;
    for (const ReshapePiece& piece : reshape_pieces(extents_of(from), extents_of(x))) {
      if (at < piece.from_begin || at >= piece.from_end) continue;
      const Ints outer_inner = two(instr, at);
      if (piece.from_end == piece.from_begin + 1 && piece.to_end == piece.to_begin + 1)
        return keep(
            x,
            reshaped(instr, apart(extents_of(x), piece.to_begin, outer_inner[0], outer_inner[1])),
            piece.to_begin);
    }
    replace(x, reshaped(instr, extents_of(x)));
  }

  // A reshape that merges a dynamic dimension with the one around it.
  void begin(Instr* x) {
    Instr* from = x->operand(0);
    for (const ReshapePiece& piece : reshape_pieces(extents_of(from), extents_of(x))) {
      const int64_t outer = piece.from_begin, at = piece.to_begin;
      if (piece.from_end != outer + 2 || piece.to_end != at + 1 ||
          open_.count(classes_.of(from, outer + 1)) == 0)
        continue;
      const Ints extents = two(from, outer);
      return keep(x, reshaped(from, apart(extents_of(x), at, extents[0], extents[1])), at);
    }
  }

  static Ints two(const Instr* instr, int64_t at) {
    return {instr->shape().dim(at), instr->shape().dim(at + 1)};
  }

  Instr* reshaped(Instr* x, const Ints& extents) {
    return extents_of(x) == extents ? x : b_.reshape(x, extents);
  }

  // x with dimension `at` as two of these extents.
  Instr* as_split(Instr* x, int64_t at, const Ints& extents) {
    const auto known = split_.find(x);
    if (known != split_.end() && known->second.at == at && two(known->second.instr, at) == extents)
      return known->second.instr;
    const Ints wanted = apart(extents_of(x), at, extents[0], extents[1]);
    if (x->is(Opcode::broadcast) && !contains(x->dimensions(), at)) {
      Ints dimensions = x->dimensions();
      for (int64_t& d : dimensions) d += d > at ? 1 : 0;
      return b_.broadcast(x->operand(0), wanted, dimensions);
    }
    return b_.reshape(x, wanted);
  }

  void visit_elementwise(Instr* x) {
    std::optional<Split> lead;
    for (Instr* operand : x->operands())
      if (const auto known = split_.find(operand); !lead && known != split_.end())
        lead = known->second;
    const Ints extents = two(lead->instr, lead->at);
    std::vector<Instr*> operands;
    for (Instr* operand : x->operands())
      operands.push_back(operand->shape().rank() == 0 ? operand
                                                      : as_split(operand, lead->at, extents));
    const Shape shape =
        Shape::array(x->shape().type(), apart(extents_of(x), lead->at, extents[0], extents[1]));
    keep(x, b_.make(x->opcode(), std::move(operands), x->attrs(), {}, &shape), lead->at);
  }

  void visit_reduce(Instr* x) {
    const auto known = split_.find(x->operand(0));
    if (x->operands().size() != 2 || known == split_.end()) return;
    const auto [instr, at] = known->second;
    const Ints& over = x->dimensions();
    Instr* made = b_.reduce({instr}, {x->operand(1)}, apart(over, at), x->called().at(0));
    if (contains(over, at)) return replace(x, made);
    keep(x, made, at - std::count_if(over.begin(), over.end(), [&](int64_t d) { return d < at; }));
  }

  void visit_broadcast(Instr* x) {
    const auto [instr, at] = split_.at(x->operand(0));
    const Ints& dimensions = x->dimensions();
    if (!is_ascending(dimensions)) return;
    const int64_t to = dimensions[static_cast<size_t>(at)];
    const Ints extents = two(instr, at);
    keep(x,
         b_.broadcast(instr, apart(extents_of(x), to, extents[0], extents[1]),
                      apart(dimensions, to)),
         to);
  }

  void visit_transpose(Instr* x) {
    const auto [instr, at] = split_.at(x->operand(0));
    const Ints& order = x->dimensions();
    const auto to = std::find(order.begin(), order.end(), at) - order.begin();
    keep(x, b_.transpose(instr, apart(order, at)), to);
  }

  // Where side `side` of the result's dimension d comes from; -1: from the other side.
  static int64_t dimension_of(const Instr* x, size_t side, int64_t of_operand) {
    const hlo::IndexMap map = hlo::index_map(*x, side);
    const hlo::DimLink* link = map.of_operand(of_operand);
    return link && link->kind == hlo::DimKind::same ? link->to : -1;
  }

  void visit_dot(Instr* x) {
    auto attrs = x->attrs_as<hlo::DotAttrs>();
    if (!attrs.rest.empty()) return;
    const size_t side = split_.count(x->operand(0)) > 0 ? 0 : 1;
    const auto [instr, at] = split_.at(x->operand(side));
    const Ints extents = two(instr, at);
    std::vector<Instr*> operands = x->operands();
    operands[side] = instr;
    Ints* const batch[] = {&attrs.lhs_batch_dims, &attrs.rhs_batch_dims};
    Ints* const contracting[] = {&attrs.lhs_contracting_dims, &attrs.rhs_contracting_dims};
    const int64_t to = dimension_of(x, side, at);
    // The same dimension of the other side, where it is one of both.
    int64_t other = -1;
    for (Ints* const* lists : {batch, contracting})
      if (const auto found = std::find(lists[side]->begin(), lists[side]->end(), at);
          found != lists[side]->end())
        other = (*lists[1 - side])[static_cast<size_t>(found - lists[side]->begin())];
    if (other >= 0) operands[1 - side] = as_split(operands[1 - side], other, extents);
    for (Ints* const* lists : {batch, contracting}) {
      *lists[side] = apart(*lists[side], at);
      if (other >= 0) *lists[1 - side] = apart(*lists[1 - side], other);
    }
    if (to < 0) {
      const Shape shape = x->shape();
      return replace(x, b_.make(Opcode::dot, std::move(operands), std::move(attrs), {}, &shape));
    }
    const Shape shape =
        Shape::array(x->shape().type(), apart(extents_of(x), to, extents[0], extents[1]));
    keep(x, b_.make(Opcode::dot, std::move(operands), std::move(attrs), {}, &shape), to);
  }

  hlo::Computation* entry_;
  hlo::Builder b_;
  hlo::DimClasses classes_;
  std::set<int> open_;  // classes of dynamic dimensions
  std::unordered_map<const Instr*, Split> split_;
  bool changed_ = false;
};

}  // namespace

Result<bool> split_rows(hlo::Module& module, const PassContext&) {
  if (module.symbols.empty() || module.symbols[0].extent >= 0) return false;
  bool changed = false;
  for (int walk = 0; walk < kMostWalks && Splitter(&module).run(); ++walk) changed = true;
  return changed;
}

}  // namespace heddle::opt
