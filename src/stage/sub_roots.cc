#include <algorithm>
#include <functional>
#include <set>

#include "hlo/in_place.h"
#include "hlo/top_k_part.h"
#include "stage/stage_builder.h"

namespace heddle::stage {

namespace {

constexpr int kCheap = 12;  // six operators, about

bool is_reduction(const Instr* instr) {
  hlo::StageKind kind = opcode_info(instr->opcode()).stage;
  return kind == hlo::StageKind::reduce || kind == hlo::StageKind::dot ||
         kind == hlo::StageKind::conv || hlo::top_k_part(*instr);
}

// Moves data only: never worth a separate stage between two readers.
bool moves_data(const Instr* instr) {
  switch (instr->opcode()) {
    case Opcode::constant:
    case Opcode::get_tuple_element:
    case Opcode::tuple:
    case Opcode::broadcast:
    case Opcode::reshape:
    case Opcode::transpose:
    case Opcode::slice:
    case Opcode::reverse:
    case Opcode::iota:
    case Opcode::copy:
    case Opcode::bitcast:
      return true;
    default:
      return false;
  }
}

// The rough cost of computing an element again: 2 for a plain operator.
int inline_cost(const Instr* instr) {
  if (is_costly(instr->opcode())) return 16;
  if (instr->is(Opcode::convert)) return 1;
  return has_trait(instr->opcode(), hlo::elementwise) ? 2 : 1;
}

const Instr* producer(const Instr* instr, const Members& members) {
  const bool element = instr->is(Opcode::get_tuple_element) && !members.is_input(instr);
  return element ? instr->operand(0) : instr;
}

// Whether the value is an input or has no operands.
bool is_source(const Instr* value, const Members& members) {
  return value->operands().empty() || members.is_input(value);
}

// Whether a member computes the value, and it is not a scalar; conversions and padding alone do not
// count.
bool is_computed(const Instr* value, const Members& members) {
  while (!is_source(value, members) &&
         (moves_data(value) || value->is(Opcode::convert) || value->is(Opcode::pad)))
    value = value->operand(0);
  return !is_source(value, members) && !value->shape().is_scalar();
}

// Calls `found` for the factors of the products that a sum adds up, through nested sums and
// products.
void each_factor(const Instr* x, const Members& members, std::unordered_set<const Instr*>* seen,
                 const std::function<void(const Instr*)>& found) {
  constexpr size_t kMost = 100;
  if (is_source(x, members) || !(x->is(Opcode::multiply) || x->is(Opcode::add)) ||
      seen->size() == kMost || !seen->insert(x).second)
    return;
  for (const Instr* operand : x->operands()) {
    if (x->is(Opcode::multiply)) found(operand);
    each_factor(operand, members, seen, found);
  }
}

// A sum of products is treated like a product: a factor that is read for many results becomes a
// stage.
void add_factors(const Instr* sum, const Members& members,
                 std::unordered_set<const Instr*>* roots) {
  constexpr int64_t kMany = 64;
  if (!sum->is(Opcode::reduce) || !sum->called()[0]->root()->is(Opcode::add)) return;
  const int64_t products =
      sum->operand(0)->shape().is_array() && sum->operand(0)->shape().is_static()
          ? sum->operand(0)->shape().elems()
          : 0;
  std::unordered_set<const Instr*> seen;
  each_factor(sum->operand(0), members, &seen, [&](const Instr* factor) {
    bool repeated = false;
    while (moves_data(factor) && !is_source(factor, members)) {
      repeated |= factor->is(Opcode::broadcast);
      factor = factor->operand(0);
    }
    if (repeated && factor->shape().is_array() && factor->shape().is_static() &&
        is_computed(factor, members) && factor->shape().elems() <= products / kMany)
      roots->insert(factor);
  });
}

// Makes the left operand of a product a stage, so that it is not computed for every column.
void add_links(const Members& members, std::unordered_set<const Instr*>* roots) {
  auto is_product = [](const Instr* instr) {
    return instr->is(Opcode::dot) || instr->is(Opcode::convolution);
  };
  std::unordered_set<const Instr*> behind;  // products, and values that depend on one
  for (const Instr* instr : members.instrs()) {
    const auto& operands = instr->operands();
    const bool reads = std::any_of(operands.begin(), operands.end(),
                                   [&](const Instr* x) { return behind.count(x) > 0; });
    if (reads || is_product(instr)) behind.insert(instr);
    add_factors(instr, members, roots);
    if (!is_product(instr)) continue;
    const Instr* left = instr->operand(0);
    while (moves_data(left) && !is_source(left, members)) left = left->operand(0);
    if (behind.count(left) || (instr->is(Opcode::dot) && is_computed(left, members)))
      roots->insert(left);
  }
}

// The instructions that depend on a reduction, directly or indirectly.
std::unordered_set<const Instr*> behind_reductions(const Members& members) {
  std::unordered_set<const Instr*> behind;
  for (const Instr* instr : members.instrs())
    for (const Instr* operand : instr->operands())
      if (const Instr* made = producer(operand, members);
          !members.is_input(made) && (is_reduction(made) || behind.count(made)))
        behind.insert(instr);
  return behind;
}

}  // namespace

std::unordered_set<const Instr*> choose_sub_roots(const Members& members, Repeat repeat) {
  std::unordered_set<const Instr*> roots;
  for (const Instr* output : members.outputs())
    if (!members.is_input(output)) roots.insert(producer(output, members));
  for (const Instr* instr : members.instrs())
    if (is_reduction(instr) || instr->is(Opcode::scatter)) roots.insert(instr);
  add_links(members, &roots);

  // The cost of an element with all its producers, down to inputs and reductions.
  std::unordered_map<const Instr*, int> cost;
  for (const Instr* instr : members.instrs()) {
    int& sum = cost[instr];
    if (roots.count(instr)) continue;
    // The operand of a broadcast is computed once, if that pays.
    if (instr->is(Opcode::broadcast) && instr->shape().elems() > instr->operand(0)->shape().elems())
      continue;
    sum = moves_data(instr) ? 0 : inline_cost(instr);
    for (const Instr* operand : instr->operands()) sum = std::min(1000, sum + cost[operand]);
  }

  std::unordered_set<const Instr*> behind;
  if (repeat == Repeat::all) behind = behind_reductions(members);

  // Visits readers first: finds the stages into which an instruction would be inlined, and whether
  // a broadcast on the way multiplies its evaluations.
  struct Reach {
    std::set<const Instr*> stages;
    bool broadcast = false;
  };
  std::unordered_map<const Instr*, Reach> reach;
  for (auto it = members.instrs().rbegin(); it != members.instrs().rend(); ++it) {
    const Instr* instr = *it;
    Reach& mine = reach[instr];
    for (const Instr* user : members.readers(instr)) {
      // Start indices of in-place updates are computed outside the stages.
      if (hlo::is_in_place(*user) && instr != user->operand(1)) continue;
      if (roots.count(user)) {
        mine.stages.insert(user);
      } else {
        mine.stages.insert(reach[user].stages.begin(), reach[user].stages.end());
        mine.broadcast |= reach[user].broadcast;
      }
      mine.broadcast |=
          user->is(Opcode::broadcast) && user->shape().elems() > user->operand(0)->shape().elems();
    }
    if (roots.count(instr) || moves_data(instr)) continue;
    bool shared = mine.stages.size() > 1;
    // A broadcast value is computed once if that saves enough: always if it is expensive or depends
    // on a reduction (one value per row), else it is cheaper to repeat.
    bool hangs_on_reduction =
        std::any_of(instr->operands().begin(), instr->operands().end(), [&](const Instr* operand) {
          const Instr* made = producer(operand, members);
          return !members.is_input(made) && (is_reduction(made) || roots.count(made));
        });
    const bool costly =
        is_costly(instr->opcode()) && (repeat != Repeat::all || behind.count(instr));
    bool repeated = mine.broadcast && (costly || hangs_on_reduction);
    const bool cheap =
        repeat == Repeat::all || (repeat == Repeat::cheap && cost.at(instr) <= kCheap);
    if ((shared && inline_cost(instr) > 1 && !cheap) || repeated) roots.insert(instr);
  }
  return roots;
}

}  // namespace heddle::stage
