// reroll: an unrolled recurrence becomes a loop: its steps are compiled once, and a loop of little
// work is one kernel. The steps' slices of a sequence are taken in the loop; products of such
// slices with one matrix become one product before it. Exact, except that this product sums in its
// own order. Each rewrite leaves fewer instructions outside of loops.
#include <algorithm>
#include <unordered_set>

#include "hlo/loop_trips.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"
#include "opt/unrolled.h"

namespace heddle::opt {
namespace {

using hlo::Builder;
using Kind = StepValue::Kind;

constexpr size_t kLeastSteps = 8;
constexpr size_t kMostOutputs = 4;  // values that are read outside for every step
constexpr size_t kMostLate = 3;     // first steps that may differ

class Roller {
 public:
  Roller(Computation* computation, Unrolled unrolled)
      : computation_(computation), unrolled_(std::move(unrolled)), outside_(computation) {}

  // The loop's results are used, and it does not depend on them itself.
  bool may_roll() {
    if (unrolled_.steps() < kLeastSteps) return false;
    find_outputs();
    return outputs_.size() <= kMostOutputs && !needs_itself();
  }

  void roll() {
    find_products();
    find_state();
    Computation* body = make_body();
    std::vector<Instr*> init;
    for (const Leaf& leaf : leaves_) init.push_back(leaf.init);
    Instr* loop = outside_.while_loop(make_condition(), body, outside_.tuple(init));
    hlo::set_trips(loop, steps());
    for (const size_t number : outputs_) replace(number, loop);
    outside_.check();
    computation_->sort();
    computation_->remove_dead();
  }

 private:
  // An element of the loop's state.
  struct Leaf {
    Instr* init = nullptr;
    size_t value = 0;       // of the step
    bool gathers = false;   // collects the value of every step
    Instr* next = nullptr;  // in the body; null: loop-invariant
  };
  // A product of every step as a slice of one product.
  struct Product {
    Instr* whole = nullptr;
    int64_t dim = 0;  // the dimension of the steps
  };

  int64_t steps() const { return static_cast<int64_t>(unrolled_.steps()); }
  const StepValue& value(size_t number) const { return unrolled_.values[number]; }

  bool is_inside(const Instr* x) const { return unrolled_.computed.count(x) > 0; }
  bool is_read_outside(const Instr* x) const {
    return x == computation_->root() ||
           std::any_of(x->users().begin(), x->users().end(),
                       [&](const Instr* user) { return !is_inside(user); });
  }

  void find_outputs() {
    for (const size_t number : unrolled_.order) {
      const StepValue& one = value(number);
      if (one.kind == Kind::computed &&
          std::any_of(one.at.begin(), one.at.end(),
                      [&](const Instr* x) { return is_read_outside(x); }))
        outputs_.push_back(number);
    }
    // If only a state's last value is read, it is the final value of the loop's state.
    for (size_t i = 0; i < unrolled_.values.size(); ++i) {
      if (value(i).kind != Kind::carried) continue;
      const std::vector<Instr*>& at = value(value(i).of).at;
      if (std::none_of(at.begin(), at.end() - 1,
                       [&](const Instr* x) { return is_read_outside(x); }))
        last_.emplace(value(i).of, i);
    }
  }

  // Whether the loop's input arrays or initial states depend on the loop's own values.
  bool needs_itself() const {
    std::vector<const Instr*> work;
    std::unordered_set<const Instr*> seen;
    auto visit = [&](const Instr* x) {
      if (seen.insert(x).second) work.push_back(x);
    };
    for (const StepValue& one : unrolled_.values)
      if (one.kind != Kind::computed)
        visit(one.kind == Kind::piece ? one.at[0]->operand(0) : one.at[0]);
    while (!work.empty()) {
      const Instr* at = work.back();
      work.pop_back();
      if (is_inside(at)) return true;
      for (const Instr* operand : at->operands()) visit(operand);
      for (const Instr* before : at->control_predecessors()) visit(before);
    }
    return false;
  }

  // --- Products over the whole sequence, before the loop. ---

  void find_products() {
    for (const size_t number : unrolled_.order)
      if (value(number).kind == Kind::computed && value(number).at[0]->is(Opcode::dot))
        find_product(number);
  }

  // dot(reshape(piece), matrix): the reshape drops the dimension of the steps.
  void find_product(size_t number) {
    const StepValue& dot = value(number);
    const auto& attrs = dot.at[0]->attrs_as<hlo::DotAttrs>();
    const StepValue& view = value(dot.operands[0]);
    if (!attrs.lhs_batch_dims.empty() || value(dot.operands[1]).kind != Kind::same ||
        view.kind != Kind::computed || !view.at[0]->is(Opcode::reshape))
      return;
    const StepValue& piece = value(view.operands[0]);
    if (piece.kind != Kind::piece || (piece.stride != 1 && piece.stride != -1)) return;
    Ints extents = piece.at[0]->shape().extents();
    const auto dim = static_cast<size_t>(piece.dim);
    if (extents[dim] != 1) return;
    extents.erase(extents.begin() + piece.dim);
    if (view.at[0]->shape().extents() != extents) return;
    const auto& slice = piece.at[0]->attrs_as<hlo::SliceAttrs>();
    Ints starts = slice.starts, limits = slice.limits;
    starts[dim] = std::min(piece.start, piece.start + (steps() - 1) * piece.stride);
    limits[dim] = starts[dim] + steps();
    hlo::DotAttrs all = attrs;
    int64_t before = 0;  // dropped dimensions of the left side that precede
    for (int64_t& contracted : all.lhs_contracting_dims) {
      if (contracted >= piece.dim)
        ++contracted;
      else
        ++before;
    }
    Instr* sequence = outside_.slice(piece.at[0]->operand(0), starts, limits, {});
    products_[number] = {outside_.dot(sequence, value(dot.operands[1]).at[0], all),
                         piece.dim - before};
  }

  // --- The loop. ---

  // Values that the body reads, traced from its results; not those replaced by products before the
  // loop.
  std::vector<bool> find_needed() const {
    std::vector<bool> needed(unrolled_.values.size(), false);
    for (const size_t number : outputs_) needed[number] = true;
    for (bool more = true; more;) {
      more = false;
      auto need = [&](size_t number) {
        more |= !needed[number];
        needed[number] = true;
      };
      for (size_t i = 0; i < needed.size(); ++i) {
        if (!needed[i] || products_.count(i)) continue;
        if (value(i).kind == Kind::carried) need(value(i).of);
        for (const size_t operand : value(i).operands) need(operand);
      }
    }
    return needed;
  }

  void find_state() {
    needed_ = find_needed();
    leaves_.push_back({outside_.scalar(Type::s32, 0)});
    for (size_t i = 0; i < needed_.size(); ++i) {
      const StepValue& one = value(i);
      if (!needed_[i] || (one.kind == Kind::computed && !products_.count(i))) continue;
      if (is_made_inside(one)) continue;
      leaf_of_[i] = leaves_.size();
      Instr* init = products_.count(i)        ? products_.at(i).whole
                    : one.kind == Kind::piece ? one.at[0]->operand(0)
                                              : one.at[0];
      leaves_.push_back({init, i});
    }
    for (const size_t number : outputs_) {
      if (last_.count(number)) continue;
      Ints extents = value(number).at[0]->shape().extents();
      extents.insert(extents.begin(), steps());
      gathered_[number] = leaves_.size();
      leaves_.push_back(
          {outside_.full(Shape::array(value(number).at[0]->shape().type(), extents), 0), number,
           true});
    }
  }

  // Constants and their broadcasts become part of the loop's body, not of its state, so that they
  // can still be packed as weights.
  static bool is_made_inside(const StepValue& one) {
    return one.kind == Kind::same && base_of(one.at[0])->is(Opcode::constant);
  }
  static Instr* base_of(Instr* x) {
    while (x->is(Opcode::broadcast)) x = x->operand(0);
    return x;
  }
  static Instr* made_inside(Builder& body, const Instr* x) {
    if (x->is(Opcode::constant)) return body.constant(x->literal());
    return body.broadcast(made_inside(body, x->operand(0)), x->shape().extents(), x->dimensions());
  }

  Shape state_shape() const {
    std::vector<Shape> shapes;
    for (const Leaf& leaf : leaves_) shapes.push_back(leaf.init->shape());
    return Shape::make_tuple(shapes);
  }

  Computation* make_condition() {
    Builder condition(computation_->module()->add_computation("more"));
    Instr* state = condition.parameter(0, state_shape(), "state");
    condition.computation()->set_root(
        condition.compare(hlo::Direction::lt, condition.get_tuple_element(state, 0),
                          condition.scalar(Type::s32, static_cast<double>(steps()))));
    condition.check();
    return condition.computation();
  }

  Computation* make_body() {
    Builder body(computation_->module()->add_computation("step"));
    Instr* state = body.parameter(0, state_shape(), "state");
    Instr* trip = body.get_tuple_element(state, 0);
    std::vector<Instr*> made(unrolled_.values.size(), nullptr);
    for (size_t i = 0; i < made.size(); ++i) {
      const auto leaf = leaf_of_.find(i);
      if (leaf != leaf_of_.end())
        made[i] = body.get_tuple_element(state, static_cast<int64_t>(leaf->second));
      else if (needed_[i] && value(i).kind == Kind::same)
        made[i] = made_inside(body, value(i).at[0]);
    }
    for (const size_t number : unrolled_.order) {
      if (!needed_[number]) continue;
      const StepValue& one = value(number);
      if (const auto product = products_.find(number); product != products_.end()) {
        const StepValue& piece = value(value(one.operands[0]).operands[0]);
        const Shape& whole = product->second.whole->shape();
        Ints sizes = whole.extents();
        sizes[static_cast<size_t>(product->second.dim)] = 1;
        Instr* at = piece.stride > 0 ? trip : backwards(body, trip);
        made[number] = body.reshape(
            slice_at(body, made[number], product->second.dim, at, sizes, Ints(sizes.size(), 0)),
            one.at[0]->shape().extents());
      } else if (one.kind == Kind::piece) {
        Instr* at = scaled(body, trip, one.start, one.stride);
        made[number] = slice_at(body, made[number], one.dim, at, one.at[0]->shape().extents(),
                                one.at[0]->attrs_as<hlo::SliceAttrs>().starts);
      } else {
        std::vector<Instr*> operands;
        for (const size_t operand : one.operands) operands.push_back(made[operand]);
        made[number] =
            body.computation()->add(one.at[0]->opcode(), one.at[0]->shape(), operands,
                                    one.at[0]->attrs(), one.at[0]->called(), one.at[0]->name());
        for (const Instr* at : one.at) made[number]->add_nodes(at->nodes());
      }
    }
    std::vector<Instr*> next{body.binary(Opcode::add, trip, body.scalar(Type::s32, 1))};
    for (size_t l = 1; l < leaves_.size(); ++l) {
      Instr* element = body.get_tuple_element(state, static_cast<int64_t>(l));
      if (leaves_[l].gathers) {
        Instr* x = made[leaves_[l].value];
        Ints one = x->shape().extents();
        one.insert(one.begin(), 1);
        std::vector<Instr*> starts(one.size(), body.scalar(Type::s32, 0));
        starts[0] = trip;
        element = body.dynamic_update_slice(element, body.reshape(x, one), starts);
      } else if (value(leaves_[l].value).kind == Kind::carried) {
        element = made[value(leaves_[l].value).of];
      }
      next.push_back(element);
    }
    body.computation()->set_root(body.tuple(next));
    body.check();
    body.computation()->remove_dead();
    return body.computation();
  }

  Instr* backwards(Builder& b, Instr* trip) const {
    return b.binary(Opcode::subtract, b.scalar(Type::s32, static_cast<double>(steps() - 1)), trip);
  }
  static Instr* scaled(Builder& b, Instr* trip, int64_t start, int64_t stride) {
    Instr* at = trip;
    if (stride != 1)
      at = b.binary(Opcode::multiply, at, b.scalar(Type::s32, static_cast<double>(stride)));
    if (start != 0) at = b.binary(Opcode::add, at, b.scalar(Type::s32, static_cast<double>(start)));
    return at;
  }
  static Instr* slice_at(Builder& b, Instr* x, int64_t dim, Instr* at, const Ints& sizes,
                         const Ints& first) {
    std::vector<Instr*> starts;
    for (size_t d = 0; d < first.size(); ++d)
      starts.push_back(
          static_cast<int64_t>(d) == dim ? at : b.scalar(Type::s32, static_cast<double>(first[d])));
    return b.dynamic_slice(x, starts, sizes);
  }

  // --- After the loop. ---

  void replace(size_t number, Instr* loop) {
    const StepValue& one = value(number);
    if (const auto last = last_.find(number); last != last_.end()) {
      const auto leaf = static_cast<int64_t>(leaf_of_.at(last->second));
      computation_->replace_all_uses(one.at.back(), outside_.get_tuple_element(loop, leaf));
      return;
    }
    Instr* all = outside_.get_tuple_element(loop, static_cast<int64_t>(gathered_.at(number)));
    join_concatenation(one, all);
    const Ints extents = one.at[0]->shape().extents();
    for (size_t step = 0; step < one.at.size(); ++step) {
      if (!is_read_outside(one.at[step])) continue;
      Ints starts(extents.size() + 1, 0), limits = all->shape().extents();
      starts[0] = static_cast<int64_t>(step);
      limits[0] = starts[0] + 1;
      computation_->replace_all_uses(
          one.at[step], outside_.reshape(outside_.slice(all, starts, limits, {}), extents));
    }
  }

  // If the steps' values are joined in a concatenation, as they are or with a new dimension of
  // extent 1, it becomes a transpose of the gathered array. Values with other readers are sliced
  // from it.
  void join_concatenation(const StepValue& one, Instr* all) {
    for (Instr* first : std::vector<Instr*>(one.at[0]->users())) {
      const bool view = first->is(Opcode::reshape);
      Instr* whole = view && first->users().size() == 1 ? first->users()[0] : first;
      if (!whole->is(Opcode::concatenate) || is_inside(whole)) continue;
      const int64_t dim = whole->dimensions()[0];
      Ints extents = one.at[0]->shape().extents();
      const Ints plain = extents;
      if (view) extents.insert(extents.begin() + std::min<int64_t>(dim, std::ssize(extents)), 1);
      const Instr* part = view ? first : one.at[0];
      if (part->shape().extents() != extents) continue;
      const auto& parts = whole->operands();
      const auto begin =
          static_cast<size_t>(std::find(parts.begin(), parts.end(), part) - parts.begin());
      bool follows = begin + one.at.size() <= parts.size();
      for (size_t step = 0; follows && step < one.at.size(); ++step) {
        const Instr* at = parts[begin + step];
        follows = view ? at->is(Opcode::reshape) && at->operand(0) == one.at[step] &&
                             at->shape() == part->shape()
                       : at == one.at[step];
      }
      if (!follows) continue;
      // [steps, …] becomes […, steps, …].
      Ints order = counting(all->shape().rank());
      order.erase(order.begin());
      order.insert(order.begin() + dim, 0);
      Ints joined = extents;
      joined[static_cast<size_t>(dim)] *= steps();
      Instr* turned = outside_.reshape(outside_.transpose(all, order), joined);
      std::vector<Instr*> left(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(begin));
      left.push_back(turned);
      left.insert(left.end(), parts.begin() + static_cast<std::ptrdiff_t>(begin + one.at.size()),
                  parts.end());
      computation_->replace_all_uses(whole,
                                     left.size() == 1 ? left[0] : outside_.concatenate(left, dim));
      std::vector<Instr*> views(parts.begin() + static_cast<std::ptrdiff_t>(begin),
                                parts.begin() + static_cast<std::ptrdiff_t>(begin + one.at.size()));
      computation_->remove(whole);
      for (Instr* at : views)
        if (view && at->users().empty()) computation_->remove(at);
      return;
    }
  }

  Computation* computation_;
  Unrolled unrolled_;
  Builder outside_;
  std::vector<size_t> outputs_;
  std::unordered_map<size_t, size_t> last_;  // outputs of which only the last is read: the state
  std::unordered_map<size_t, Product> products_;
  std::vector<bool> needed_;
  std::vector<Leaf> leaves_;
  std::unordered_map<size_t, size_t> leaf_of_, gathered_;
};

// The first steps may be simpler than the others, so up to kMostLate of them are left out.
bool roll_chain(Computation* computation, const std::vector<Instr*>& states,
                const PassContext& context) {
  for (size_t late = 1; late <= kMostLate && states.size() >= late + kLeastSteps; ++late) {
    auto unrolled =
        match_unrolled({states.begin() + static_cast<std::ptrdiff_t>(late), states.end()});
    if (!unrolled) continue;
    Roller roller(computation, std::move(*unrolled));
    if (!roller.may_roll()) continue;
    if (!context.allow("reroll", "recurrence")) return false;
    roller.roll();
    return true;
  }
  return false;
}

}  // namespace

Result<bool> reroll(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  for (Computation* computation : module.post_order()) {
    // Rolling changes the instructions of the other chains.
    for (bool more = true; more;) {
      more = false;
      for (const auto& states : find_chains(*computation, kLeastSteps)) {
        if (!roll_chain(computation, states, context)) continue;
        changed = more = true;
        break;
      }
    }
  }
  return changed;
}

}  // namespace heddle::opt
