// merge_dots: narrow products of one input with constant matrices become one product with the
// matrices side by side, and slices of it. A matrix of few columns leaves most of a register tile
// unused, and each such product reads its input again. An epilogue common to all of them (constants
// per column, activations) is applied to the whole. Exact: every element is the same sum.
//
// Not done where it does not pay: wide products, few rows, products whose epilogues differ (they
// would end up after the slices, outside the product's kernel). Each rewrite leaves fewer dots.
#include <algorithm>
#include <unordered_map>

#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rules.h"

namespace heddle::opt {
namespace {

using hlo::Builder;

// Columns: a register tile holds about the first number; above the second a separate product is as
// good.
constexpr int64_t kNarrow = 64, kWide = 128, kMostColumns = 512, kLeastRows = 16;

int64_t columns_of(const Instr* dot) { return dot->shape().dim(dot->shape().rank() - 1); }

// [rows…, K] · W, with W a constant matrix that has no other reader.
bool is_candidate(const Instr* x) {
  if (!x->is(Opcode::dot) || x->operands().size() != 2 || !are_static_arrays(x)) return false;
  const auto& attrs = x->attrs_as<hlo::DotAttrs>();
  if (!attrs.lhs_batch_dims.empty() || attrs.rhs_contracting_dims.size() != 1 ||
      !attrs.rest.empty() || x->operand(1)->shape().rank() != 2 || x->shape().elems() == 0)
    return false;
  return columns_of(x) <= kWide && x->shape().elems() / columns_of(x) >= kLeastRows &&
         x->operand(1)->users().size() == 1 && is_constant_expression(x->operand(1));
}

// A constant with one value, or with one value per column.
bool is_column_constant(const Instr* x) {
  if (splat_of(x)) return true;
  return x->is(Opcode::broadcast) && x->dimensions() == Ints{x->shape().rank() - 1} &&
         is_constant_expression(x->operand(0));
}

// The only reader of `value`, if it is an elementwise operator whose other operand, if any, is a
// constant per column.
Instr* next_step(const Instr* value) {
  if (value->users().size() != 1) return nullptr;
  Instr* user = value->users()[0];
  if (!is_elementwise(user) || user->shape().extents() != value->shape().extents()) return nullptr;
  if (user->operands().size() == 1) return user;
  if (user->operands().size() != 2 || user->operand(0) == user->operand(1)) return nullptr;
  const Instr* other = user->operand(user->operand(0) == value ? 1 : 0);
  return is_column_constant(other) && other->shape().extents() == value->shape().extents()
             ? user
             : nullptr;
}

bool is_read_elementwise(const Instr* value) {
  return std::any_of(value->users().begin(), value->users().end(),
                     [](const Instr* user) { return is_elementwise(user); });
}

class Siblings {
 public:
  explicit Siblings(std::vector<Instr*> dots) : ends_(dots), dots_(std::move(dots)) {}

  // Follows the common epilogue. False: merging does not pay.
  bool follow() {
    int64_t columns = 0;
    bool narrow = false;
    for (const Instr* dot : dots_) {
      columns += columns_of(dot);
      narrow |= columns_of(dot) < kNarrow;
    }
    if (dots_.size() < 2 || !narrow || columns > kMostColumns) return false;
    for (std::vector<Instr*> step = next_of_all(); !step.empty(); step = next_of_all()) {
      steps_.push_back(step);
      ends_ = step;
    }
    return std::none_of(ends_.begin(), ends_.end(), is_read_elementwise);
  }

  void build(Computation* computation, Builder& b) {
    const auto attrs = dots_[0]->attrs_as<hlo::DotAttrs>();
    std::vector<Instr*> matrices;
    Ints columns;
    for (const Instr* dot : dots_) {
      matrices.push_back(dot->operand(1));
      columns.push_back(columns_of(dot));
    }
    Instr* matrix = b.concatenate(matrices, 1 - attrs.rhs_contracting_dims[0]);
    Ints extents = dots_[0]->shape().extents();
    extents.back() = 0;
    for (int64_t n : columns) extents.back() += n;
    const Shape shape = Shape::array(dots_[0]->shape().type(), extents);
    Instr* value = b.make(Opcode::dot, {dots_[0]->operand(0), matrix}, attrs, {}, &shape);
    name_by(dots_, value);
    std::vector<Instr*> before = dots_;
    for (const std::vector<Instr*>& step : steps_) {
      value = merged_step(step, before, value, columns, b);
      before = step;
    }
    int64_t at = 0;
    for (size_t i = 0; i < ends_.size(); ++i) {
      Ints starts(extents.size(), 0), limits = extents;
      starts.back() = at;
      limits.back() = at += columns[i];
      computation->replace_all_uses(ends_[i], b.slice(value, starts, limits, {}));
    }
    b.check();
  }

 private:
  static int side_of(const Instr* step, const Instr* before) {
    return step->operand(0) == before ? 0 : 1;
  }

  std::vector<Instr*> next_of_all() const {
    std::vector<Instr*> steps;
    for (const Instr* end : ends_) {
      Instr* step = next_step(end);
      if (!step) return {};
      steps.push_back(step);
      const Instr* first = steps[0];
      if (step->opcode() != first->opcode() || !(step->attrs() == first->attrs()) ||
          step->shape().type() != first->shape().type() ||
          step->operands().size() != first->operands().size() ||
          side_of(step, end) != side_of(first, ends_[0]))
        return {};
    }
    return steps;
  }

  // Applies a common step to the merged value.
  static Instr* merged_step(const std::vector<Instr*>& step, const std::vector<Instr*>& before,
                            Instr* value, const Ints& columns, Builder& b) {
    std::vector<Instr*> operands{value};
    if (step[0]->operands().size() == 2) {
      const int side = side_of(step[0], before[0]);
      std::vector<Instr*> parts;
      for (size_t i = 0; i < step.size(); ++i) {
        Instr* other = step[i]->operand(static_cast<size_t>(1 - side));
        parts.push_back(splat_of(other) ? broadcast_scalar(scalar_of(other, b), {columns[i]}, b)
                                        : other->operand(0));
      }
      Instr* all = b.broadcast(b.concatenate(parts, 0), value->shape().extents(),
                               {value->shape().rank() - 1});
      operands.insert(side == 0 ? operands.end() : operands.begin(), all);
    }
    const Shape shape = Shape::array(step[0]->shape().type(), value->shape().extents());
    Instr* merged = b.make(step[0]->opcode(), std::move(operands), step[0]->attrs(), {}, &shape);
    name_by(step, merged);
    return merged;
  }

  static void name_by(const std::vector<Instr*>& all, Instr* merged) {
    for (const Instr* one : all) merged->add_nodes(one->nodes());
  }

  std::vector<Instr*> ends_, dots_;
  std::vector<std::vector<Instr*>> steps_;
};

// Candidates with one input and equal attributes, in program order.
std::vector<std::vector<Instr*>> find_siblings(const Computation& computation) {
  std::vector<std::vector<Instr*>> groups;
  std::unordered_map<const Instr*, std::vector<size_t>> groups_of;
  for (Instr* x : computation.instrs()) {
    if (!is_candidate(x)) continue;
    std::vector<size_t>& known = groups_of[x->operand(0)];
    const auto fits = std::find_if(known.begin(), known.end(), [&](size_t g) {
      const Instr* first = groups[g][0];
      return first->attrs() == x->attrs() && first->shape().type() == x->shape().type() &&
             first->operand(1)->shape().type() == x->operand(1)->shape().type();
    });
    if (fits != known.end()) {
      groups[*fits].push_back(x);
      continue;
    }
    known.push_back(groups.size());
    groups.push_back({x});
  }
  return groups;
}

}  // namespace

Result<bool> merge_dots(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  for (Computation* computation : module.post_order()) {
    Builder b(computation);
    bool here = false;
    for (std::vector<Instr*>& dots : find_siblings(*computation)) {
      Siblings siblings(std::move(dots));
      if (!siblings.follow() || !context.allow("merge_dots", "siblings")) continue;
      siblings.build(computation, b);
      here = true;
    }
    if (here) computation->remove_dead();
    changed |= here;
  }
  return changed;
}

}  // namespace heddle::opt
