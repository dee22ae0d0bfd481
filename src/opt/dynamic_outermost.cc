// dynamic_outermost: computes the rows of a whole batch as one product. If each sequence of a batch
// has a bounded number of rows (Module::symbols), [batch, rows, features] is stored as [rows,
// batch, features], and likewise for heads, so that the valid rows are the first rows of one
// matrix. The new order starts at looked-up rows, a float input or a transpose and propagates to
// all consumers that can follow; transposes restore the order at its end. Results are bit-identical
// except for products, which run in other kernels. One walk over the entry.
#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "hlo/builder.h"
#include "hlo/dim_classes.h"
#include "opt/follow_layout.h"
#include "opt/passes.h"

namespace heddle::opt {
namespace {

class Mover {
 public:
  explicit Mover(hlo::Module* module)
      : entry_(module->entry()), b_(entry_), classes_(*module), symbols_(module->symbols) {
    store_as_ = [this](Instr* value, const Ints& order) { return stored(value, order); };
  }

  bool run() {
    if (symbols_.empty() || !classes_.assign(symbols_)) return false;
    const std::vector<Instr*> all = entry_->instrs();
    for (Instr* x : all) visit(x);
    if (!changed_) return false;
    if (Instr* root = entry_->root(); kept_.count(root)) entry_->set_root(logical(root));
    b_.check();
    entry_->remove_dead();
    entry_->sort();
    return true;
  }

 private:
  void visit(Instr* x) {
    if (!x->shape().is_array() || !x->shape().is_static()) return give_up(x);
    std::optional<Stored> made;
    if (const std::optional<size_t> lead = leading_operand(x)) {
      made = x->is(Opcode::dot)
                 ? dot(x)
                 : follow_layout(x, *lead, kept_.at(x->operand(*lead)), store_as_, b_);
    } else if (is_batch_of_rows(x)) {
      made = begin(x);
    }
    if (!made) return give_up(x);
    keep(x, *made);
  }

  void give_up(Instr* x) {
    for (size_t i = 0; i < x->operands().size(); ++i)
      if (kept_.count(x->operand(i))) entry_->replace_operand(x, i, logical(x->operand(i)));
  }

  // [batch, rows, ...] with no other dynamic dimension.
  bool is_batch_of_rows(const Instr* x) const {
    if (!is_float(x) || x->shape().rank() < 3 || x->shape().dim(0) == 1) return false;
    for (int64_t d = 0; d < x->shape().rank(); ++d)
      if ((classes_.symbol_of(x, d) >= 0) != (d == 1)) return false;
    return true;
  }

  static Ints rows_first(int64_t rank) {
    Ints order = counting(rank);
    std::swap(order[0], order[1]);
    return order;
  }

  std::optional<Stored> begin(Instr* x) {
    const Ints order = rows_first(x->shape().rank());
    const Shape shape = Shape::array(x->shape().type(), permuted(x->shape().extents(), order));
    switch (x->opcode()) {
      case Opcode::parameter:
        return Stored{order, b_.transpose(x, order)};
      case Opcode::transpose:
        return Stored{order, b_.transpose(x->operand(0), permuted(x->dimensions(), order))};
      case Opcode::gather: {  // rows of a table, indexed by [batch, rows]
        Instr* indices = x->operand(1);
        const hlo::IndexMap by = hlo::index_map(*x, 1), from = hlo::index_map(*x, 0);
        for (int64_t d = 0; d < 2; ++d) {
          const hlo::DimLink* link = by.of_operand(d);
          if (indices->shape().rank() != 2 || link->kind != hlo::DimKind::same || link->to != d ||
              from.of_result(d))
            return std::nullopt;
        }
        return Stored{order, b_.make(Opcode::gather, {x->operand(0), stored(indices, {1, 0})},
                                     x->attrs(), {}, &shape)};
      }
      default:
        return std::nullopt;
    }
  }

  // Takes operands in any order; free dimensions of the result are in the operand's stored order.
  std::optional<Stored> dot(Instr* x) {
    auto attrs = x->attrs_as<hlo::DotAttrs>();
    if (!attrs.rest.empty()) return std::nullopt;
    Ints result = counting(static_cast<int64_t>(attrs.lhs_batch_dims.size()));
    std::vector<Instr*> operands = x->operands();
    const auto batches = static_cast<int64_t>(result.size());
    for (size_t side = 0; side < 2; ++side) {
      const auto kept = kept_.find(operands[side]);
      const Ints order =
          kept == kept_.end() ? counting(operands[side]->shape().rank()) : kept->second.order;
      const hlo::IndexMap map = hlo::index_map(*x, side);
      for (int64_t d : order) {
        const hlo::DimLink* link = map.of_operand(d);
        if (link->kind == hlo::DimKind::same && link->to >= batches) result.push_back(link->to);
      }
      for (Ints* list : {side == 0 ? &attrs.lhs_batch_dims : &attrs.rhs_batch_dims,
                         side == 0 ? &attrs.lhs_contracting_dims : &attrs.rhs_contracting_dims})
        for (int64_t& d : *list) d = place_of(order, d);
      if (kept != kept_.end()) operands[side] = kept->second.instr;
    }
    const Shape shape = Shape::array(x->shape().type(), permuted(x->shape().extents(), result));
    return Stored{result, b_.make(Opcode::dot, std::move(operands), std::move(attrs), {}, &shape)};
  }

  // Records `made` as the replacement of x.
  void keep(Instr* x, const Stored& made) {
    b_.check();
    changed_ = true;
    made.instr->add_notes(*x);
    if (is_counting(made.order)) {
      entry_->replace_all_uses(x, made.instr);
    } else {
      kept_.emplace(x, made);
    }
  }

  // The largest operand that is stored in another order.
  std::optional<size_t> leading_operand(const Instr* x) const {
    std::optional<size_t> lead;
    for (size_t i = 0; i < x->operands().size(); ++i) {
      const Instr* operand = x->operand(i);
      if (!kept_.count(operand)) continue;
      if (!lead || operand->shape().elems() > x->operand(*lead)->shape().elems()) lead = i;
    }
    return lead;
  }

  Instr* logical(Instr* value) { return stored(value, counting(value->shape().rank())); }

  Instr* stored(Instr* value, const Ints& order) {
    const auto kept = kept_.find(value);
    const Ints from = kept == kept_.end() ? counting(value->shape().rank()) : kept->second.order;
    Instr* as_it_is = kept == kept_.end() ? value : kept->second.instr;
    if (from == order) return as_it_is;
    Instr*& made = moved_[std::pair(value, order)];
    if (!made) made = b_.transpose(as_it_is, permuted(inverted(from), order));
    return made;
  }

  hlo::Computation* entry_;
  hlo::Builder b_;
  hlo::DimClasses classes_;
  std::vector<hlo::Symbol> symbols_;
  StoreAs store_as_;
  std::unordered_map<const Instr*, Stored> kept_;
  std::map<std::pair<Instr*, Ints>, Instr*> moved_;
  bool changed_ = false;
};

}  // namespace

Result<bool> dynamic_outermost(hlo::Module& module, const PassContext& context) {
  if (module.symbols.empty() || !context.allow("dynamic_outermost", "rows")) return false;
  return Mover(&module).run();
}

}  // namespace heddle::opt
