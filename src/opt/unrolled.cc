#include "opt/unrolled.h"

#include <algorithm>
#include <map>

#include "hlo/configuration.h"
#include "opt/match.h"

namespace heddle::opt {

namespace {

using Kind = StepValue::Kind;

constexpr size_t kMostValues = 512;  // of a step
constexpr size_t kNone = static_cast<size_t>(-1);

bool is_equal_constant(const Instr* a, const Instr* b) {
  return a->is(Opcode::constant) && b->is(Opcode::constant) && a->shape() == b->shape() &&
         a->literal() == b->literal();
}

// The same operator, ignoring its operands.
bool is_like(const Instr* a, const Instr* b) {
  return a->opcode() == b->opcode() && a->shape() == b->shape() && a->attrs() == b->attrs() &&
         a->called() == b->called() && a->operands().size() == b->operands().size() &&
         hlo::configuration(*a) == hlo::configuration(*b);
}

bool may_repeat(const Instr* x) {
  return hlo::has_trait(x->opcode(), hlo::Trait::pure) && !hlo::has_effect(*x) &&
         !x->operands().empty() && x->shape().is_array() && x->shape().is_static() &&
         x->control_predecessors().empty() && x->control_successors().empty();
}

class Matcher {
 public:
  std::optional<Unrolled> run(const std::vector<Instr*>& states) {
    if (find(states) != 0 || result_.values[0].kind != Kind::computed) return std::nullopt;
    const bool carries =
        std::any_of(result_.values.begin(), result_.values.end(),
                    [](const StepValue& value) { return value.kind == Kind::carried; });
    if (!carries) return std::nullopt;
    while (extend()) {
    }
    return std::move(result_);
  }

 private:
  // The number of the value whose elements are `at`; kNone: the steps differ there.
  size_t find(const std::vector<Instr*>& at) {
    if (std::all_of(at.begin(), at.end(),
                    [&](Instr* x) { return x == at[0] || is_equal_constant(x, at[0]); }))
      return find_same(at[0]);
    // Look up the second step: in the first one a carried value is an initial value from outside.
    if (const auto known = place_of_.find(at[1]); known != place_of_.end()) {
      const auto [number, step] = known->second;
      const std::vector<Instr*>& other = result_.values[number].at;
      if (step == 1 && other == at) return number;
      if (step != 0 || !std::equal(at.begin() + 1, at.end(), other.begin())) return kNone;
      return find_carried(at, number);
    }
    // Slices of one array are a piece of a sequence; slices of the steps' values are computed
    // values.
    if (at[0]->is(Opcode::slice) && at[1]->is(Opcode::slice) &&
        at[0]->operand(0) == at[1]->operand(0))
      return find_piece(at);
    return find_computed(at);
  }

  size_t add(StepValue value) {
    result_.values.push_back(std::move(value));
    return result_.values.size() - 1;
  }

  size_t find_same(Instr* x) {
    const auto [known, fresh] = same_.emplace(x, result_.values.size());
    if (!fresh) return known->second;
    StepValue value;
    value.kind = Kind::same;
    value.at = {x};
    return add(std::move(value));
  }

  size_t find_carried(const std::vector<Instr*>& at, size_t of) {
    const auto [known, fresh] = carried_.emplace(std::pair(of, at[0]->id()), result_.values.size());
    if (!fresh) return known->second;
    if (!(at[0]->shape() == at[1]->shape())) return kNone;
    StepValue value;
    value.kind = Kind::carried;
    value.at = at;
    value.of = of;
    return add(std::move(value));
  }

  size_t find_piece(const std::vector<Instr*>& at) {
    StepValue value;
    value.kind = Kind::piece;
    value.at = at;
    const auto& first = at[0]->attrs_as<hlo::SliceAttrs>();
    const auto& second = at[1]->attrs_as<hlo::SliceAttrs>();
    int differ = 0;
    for (size_t d = 0; d < first.starts.size(); ++d) {
      if (!first.strides.empty() && first.strides[d] != 1) return kNone;
      if (first.starts[d] == second.starts[d]) continue;
      ++differ;
      value.dim = static_cast<int64_t>(d);
      value.start = first.starts[d];
      value.stride = second.starts[d] - first.starts[d];
    }
    if (differ != 1) return kNone;
    for (size_t step = 0; step < at.size(); ++step)
      if (!is_piece(value, at[step], step)) return kNone;
    return keep(std::move(value));
  }

  static bool is_piece(const StepValue& value, const Instr* x, size_t step) {
    if (!x->is(Opcode::slice) || x->operand(0) != value.at[0]->operand(0) ||
        !(x->shape() == value.at[0]->shape()))
      return false;
    Ints expected = value.at[0]->attrs_as<hlo::SliceAttrs>().starts;
    expected[static_cast<size_t>(value.dim)] =
        value.start + static_cast<int64_t>(step) * value.stride;
    const auto& attrs = x->attrs_as<hlo::SliceAttrs>();
    return attrs.starts == expected &&
           attrs.strides == value.at[0]->attrs_as<hlo::SliceAttrs>().strides;
  }

  // Adds a value with distinct elements; kNone: an element already belongs to another value.
  size_t keep(StepValue value) {
    if (result_.values.size() >= kMostValues) return kNone;
    const size_t number = result_.values.size();
    for (size_t step = 0; step < value.at.size(); ++step)
      if (!place_of_.emplace(value.at[step], std::pair(number, step)).second) return kNone;
    const size_t added = add(std::move(value));
    if (result_.values[added].kind == Kind::piece) result_.order.push_back(added);
    return added;
  }

  size_t find_computed(const std::vector<Instr*>& at) {
    for (Instr* x : at)
      if (!is_like(x, at[0]) || !may_repeat(x)) return kNone;
    StepValue value;
    value.at = at;
    const size_t number = keep(std::move(value));
    if (number == kNone) return kNone;
    for (size_t i = 0; i < at[0]->operands().size(); ++i) {
      std::vector<Instr*> operand;
      for (const Instr* x : at) operand.push_back(x->operand(i));
      const size_t found = find(operand);
      if (found == kNone) return kNone;
      result_.values[number].operands.push_back(found);
    }
    result_.order.push_back(number);
    for (const Instr* x : at) result_.computed.emplace(x, number);
    return number;
  }

  // Adds one more step if all its instructions exist.
  bool extend() {
    const size_t step = result_.steps();
    std::vector<Instr*> next(result_.values.size(), nullptr);
    for (size_t i = 0; i < next.size(); ++i) {
      const StepValue& value = result_.values[i];
      if (value.kind == Kind::same) next[i] = value.at[0];
      if (value.kind == Kind::carried) next[i] = result_.values[value.of].at.back();
    }
    for (const size_t number : result_.order) {
      const StepValue& value = result_.values[number];
      Instr* reads = value.kind == Kind::piece ? value.at[0]->operand(0) : nullptr;
      for (size_t i = 0; !reads && i < value.operands.size(); ++i)
        if (result_.values[value.operands[i]].kind != Kind::same) reads = next[value.operands[i]];
      if (!reads) return false;
      for (Instr* user : reads->users()) {
        if (place_of_.count(user)) continue;
        const bool fits =
            value.kind == Kind::piece ? is_piece(value, user, step) : computes(value, user, next);
        if (fits) next[number] = user;
      }
      if (!next[number]) return false;
    }
    for (size_t i = 0; i < next.size(); ++i) {
      StepValue& value = result_.values[i];
      if (value.kind == Kind::same) continue;
      value.at.push_back(next[i]);
      if (value.kind == Kind::carried) continue;
      place_of_.emplace(next[i], std::pair(i, step));
      if (value.kind == Kind::computed) result_.computed.emplace(next[i], i);
    }
    return true;
  }

  static bool computes(const StepValue& value, const Instr* x, const std::vector<Instr*>& next) {
    if (!is_like(x, value.at[0]) || !may_repeat(x)) return false;
    for (size_t i = 0; i < x->operands().size(); ++i) {
      const Instr* wanted = next[value.operands[i]];
      if (x->operand(i) != wanted && !is_equal_constant(x->operand(i), wanted)) return false;
    }
    return true;
  }

  Unrolled result_;
  std::unordered_map<const Instr*, size_t> same_;
  std::map<std::pair<size_t, int64_t>, size_t> carried_;
  std::unordered_map<const Instr*, std::pair<size_t, size_t>> place_of_;
};

}  // namespace

std::optional<Unrolled> match_unrolled(const std::vector<Instr*>& states) {
  return Matcher().run(states);
}

std::vector<std::vector<Instr*>> find_chains(const Computation& computation, size_t least) {
  std::unordered_map<const Instr*, std::vector<Instr*>> readers;  // by right-hand operand
  std::vector<const Instr*> sides;
  for (Instr* instr : computation.instrs()) {
    if (!instr->is(Opcode::dot)) continue;
    std::vector<Instr*>& dots = readers[instr->operand(1)];
    if (dots.empty()) sides.push_back(instr->operand(1));
    dots.push_back(instr);
  }
  std::vector<std::vector<Instr*>> chains;
  for (const Instr* side : sides) {
    std::vector<Instr*> states;
    for (const Instr* dot : readers.at(side)) {
      Instr* value = dot->operand(0);
      while (value->is(Opcode::reshape) || value->is(Opcode::transpose)) value = value->operand(0);
      states.push_back(value);
    }
    if (states.size() < least || std::find(chains.begin(), chains.end(), states) != chains.end())
      continue;
    chains.push_back(std::move(states));
  }
  return chains;
}

}  // namespace heddle::opt
