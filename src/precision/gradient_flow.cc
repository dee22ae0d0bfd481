#include "precision/gradient_flow.h"

#include <algorithm>

#include "hlo/combiner.h"
#include "opt/match.h"

namespace heddle::precision {
namespace {

using hlo::Computation;
using hlo::Instr;
using hlo::Opcode;

using Set = std::unordered_set<const Instr*>;

bool is_float(const Instr* x) {
  return x->shape().is_array() && x->shape().is_static() && tensor::is_float(x->shape().type());
}

bool is_zero(const Instr* x) {
  const tensor::Literal* value = opt::splat_of(x);
  return value && is_float(x) && value->get_f64(0) == 0;
}

void add_ancestors(const Instr* from, Set* to) {
  std::vector<const Instr*> stack{from};
  while (!stack.empty()) {
    const Instr* x = stack.back();
    stack.pop_back();
    if (to->insert(x).second) stack.insert(stack.end(), x->operands().begin(), x->operands().end());
  }
}

bool adds(const Instr* x) {
  return x->called().size() == 1 && hlo::combiner_of(*x->called()[0]) == Opcode::add;
}

// The operands in which an operator is linear.
struct Linear {
  enum class Kind { none, all, one } kind = Kind::none;
  uint64_t operands = 0;  // all: in all of these together (others zero); one: in any one of these
};

Linear linear_in(const Instr* x) {
  using Kind = Linear::Kind;
  switch (x->opcode()) {
    case Opcode::add:
    case Opcode::subtract:
      return {Kind::all, 0b11};
    case Opcode::select:
      return {Kind::all, 0b110};
    case Opcode::concatenate:
      if (x->operands().size() > 64) return {};
      return {Kind::all, ~uint64_t{0} >> (64 - x->operands().size())};
    case Opcode::multiply:
    case Opcode::dot:
    case Opcode::convolution:
      return {Kind::one, 0b11};
    case Opcode::divide:
    case Opcode::negate:
    case Opcode::reshape:
    case Opcode::transpose:
    case Opcode::broadcast:
    case Opcode::slice:
    case Opcode::dynamic_slice:
    case Opcode::gather:
    case Opcode::reverse:
    case Opcode::copy:
    case Opcode::convert:
      return {Kind::one, 0b1};
    case Opcode::pad:
    case Opcode::dynamic_update_slice:
      return {Kind::all, 0b11};
    case Opcode::reduce:
    case Opcode::reduce_window:
      if (x->operands().size() == 2 && adds(x)) return {Kind::all, 0b11};
      return {};
    case Opcode::scatter:
      if (x->operands().size() == 3 && adds(x)) return {Kind::all, 0b101};
      return {};
    default:
      return {};
  }
}

class Finder {
 public:
  explicit Finder(const hlo::Module& module) : module_(module), entry_(*module.entry()) {}

  GradientFlow run() {
    if (!entry_.root()->is(Opcode::tuple) || !find_regions()) return {};
    measure_depth();
    for (Instr* x : entry_.instrs())
      if (is_product(x) && is_backward(x)) visit(x);
    extend();
    list_gradients();
    if (flow_.gradients.empty()) return {};
    flow_.update.insert(update_.begin(), update_.end());
    return std::move(flow_);
  }

 private:
  struct Kept {
    const Instr* value;
    int64_t parameter;
  };

  // Finds the forward pass, the kept results, and the region of the update.
  bool find_regions() {
    const std::vector<Instr*>& outputs = entry_.root()->operands();
    const size_t states = module_.states.size();
    std::vector<bool> is_kept(outputs.size());
    for (size_t i = outputs.size() - states; i < outputs.size(); ++i) is_kept[i] = true;
    for (const hlo::Alias& alias : module_.input_output_alias) {
      if (alias.output_index.size() != 1 || !alias.parameter_index.empty()) continue;
      const auto output = static_cast<size_t>(alias.output_index[0]);
      if (output + states >= outputs.size()) continue;  // a state is not a result of the update
      is_kept[output] = true;
      kept_.push_back({outputs[output], alias.parameter});
    }
    if (kept_.empty()) return false;
    for (const Kept& kept : kept_) add_ancestors(kept.value, &reaching_);
    for (const bool scalars : {true, false}) {  // prefer scalars as losses
      for (size_t i = 0; i < outputs.size(); ++i)
        if (!is_kept[i] && is_float(outputs[i]) && (outputs[i]->shape().rank() == 0) == scalars)
          add_loss(outputs[i]);
      if (!forward_.empty()) break;
    }
    if (forward_.empty()) return false;
    for (const Instr* x : entry_.instrs())
      if (!forward_.contains(x) && is_updated(x)) update_.insert(x);
    return true;
  }

  // Adds an output as a loss, unless it needs all products, as the norm of all gradients does.
  void add_loss(const Instr* output) {
    Set ancestors;
    add_ancestors(output, &ancestors);
    bool some = false, all = true;
    for (const Instr* x : reaching_)
      if (is_product(x)) (ancestors.contains(x) ? some : all) = ancestors.contains(x);
    if (some && !all) forward_.insert(ancestors.begin(), ancestors.end());
  }

  // Whether it depends on an input that the step updates and that no loss reads: moments of
  // gradients.
  bool is_updated(const Instr* x) const {
    if (x->is(Opcode::parameter))
      return std::any_of(kept_.begin(), kept_.end(),
                         [&](const Kept& kept) { return kept.parameter == x->parameter_number(); });
    return std::any_of(x->operands().begin(), x->operands().end(),
                       [&](const Instr* operand) { return update_.contains(operand); });
  }

  bool is_backward(const Instr* x) const {
    return reaching_.contains(x) && !forward_.contains(x) && !update_.contains(x) && is_float(x);
  }

  // Length of the longest path to a value, in products, then in operators: the path of a gradient
  // is longer than that of the slope that it is multiplied by. Constants and parameters have none.
  void measure_depth() {
    for (const Instr* x : entry_.instrs()) {
      if (!is_backward(x)) continue;
      int64_t depth = 0;
      bool computed = false;
      for (const Instr* operand : x->operands()) {
        const auto found = depth_.find(operand);
        if (found != depth_.end()) depth = std::max(depth, found->second);
        computed |= found != depth_.end() || forward_.contains(operand);
      }
      constexpr int64_t kProduct = int64_t{1} << 32;
      if (computed) depth_[x] = depth + (is_product(x) ? kProduct : 1);
    }
  }
  bool may_carry(const Instr* x) const { return depth_.contains(x); }

  // The operands of `x` through which the factor comes; 0: it begins here.
  uint64_t comes_through(const Instr* x) const {
    const Linear linear = linear_in(x);
    uint64_t found = 0;
    int64_t best = -1;
    for (size_t i = 0; i < x->operands().size() && i < 64; ++i) {
      if ((linear.operands >> i & 1) == 0) continue;
      const Instr* operand = x->operand(i);
      if (linear.kind == Linear::Kind::all) {
        if (is_zero(operand)) continue;
        if (!may_carry(operand)) return 0;
        found |= uint64_t{1} << i;
      } else if (may_carry(operand) && depth_.at(operand) > best) {
        best = depth_.at(operand);
        found = uint64_t{1} << i;
      }
    }
    // x · x is not linear in x.
    if (linear.kind == Linear::Kind::one && x->operands().size() == 2 &&
        x->operand(0) == x->operand(1))
      return 0;
    return found;
  }

  void visit(Instr* from) {
    std::vector<Instr*> stack{from};
    while (!stack.empty()) {
      Instr* x = stack.back();
      stack.pop_back();
      if (!seen_.insert(x).second) continue;
      const uint64_t operands = comes_through(x);
      if (operands == 0) {
        if (x == from) {
          seen_.erase(x);  // it can still become a start for a reader
          plain_.insert(x);
        } else {
          starts_.insert(x);
        }
        continue;
      }
      flow_.carrying[x] = operands;
      for (size_t i = 0; i < x->operands().size(); ++i)
        if (flow_.carries(x, i)) stack.push_back(x->operand(i));
    }
  }

  bool has_factor(const Instr* x) const {
    return starts_.contains(x) || flow_.carrying.contains(x);
  }

  // Multiplied by one number for all elements: the first step of the update (a learning rate, the
  // weight of a moment).
  static bool is_weighted(const Instr* x) {
    if (!x->is(Opcode::multiply) && !x->is(Opcode::divide)) return false;
    return std::any_of(x->operands().begin(), x->operands().end(), [](const Instr* operand) {
      return operand->is(Opcode::broadcast) && operand->operand(0)->shape().rank() == 0;
    });
  }

  // Extends the factor to everything linear in its carriers, up to the update.
  void extend() {
    Set& behind = flow_.update;  // so far: depends on gradients and does not carry the factor
    for (Instr* x : entry_.instrs()) {
      if (has_factor(x)) continue;
      const auto is_behind = [&](const Instr* operand) { return behind.contains(operand); };
      const bool goes_on = is_backward(x) && !is_weighted(x) &&
                           std::none_of(x->operands().begin(), x->operands().end(), is_behind);
      if (!goes_on || !extend_to(x))
        if (std::any_of(x->operands().begin(), x->operands().end(), [&](const Instr* operand) {
              return is_behind(operand) || has_factor(operand) || plain_.contains(operand);
            }))
          behind.insert(x);
    }
  }

  bool extend_to(Instr* x) {
    const Linear linear = linear_in(x);
    uint64_t found = 0;
    bool fits = linear.kind != Linear::Kind::none;
    int carrying = 0;
    for (size_t i = 0; i < x->operands().size(); ++i) {
      const bool has = has_factor(x->operand(i));
      const bool may = i < 64 && (linear.operands >> i & 1) != 0;
      if (has && may) found |= uint64_t{1} << i, ++carrying;
      if (has && !may) fits = false;
      if (!has && may && linear.kind == Linear::Kind::all && !is_zero(x->operand(i))) fits = false;
    }
    fits = fits && found != 0 && (linear.kind == Linear::Kind::all || carrying == 1);
    if (fits) flow_.carrying[x] = found;
    return fits;
  }

  void list_gradients() {
    for (Instr* x : entry_.instrs()) {
      if (starts_.contains(x)) flow_.starts.push_back(x);
      if (plain_.contains(x) && !has_factor(x)) flow_.gradients.push_back({x, parameter_of(x)});
      if (!flow_.carrying.contains(x)) continue;
      flow_.carriers.push_back(x);
      const bool is_read =
          std::any_of(x->users().begin(), x->users().end(), [&](const Instr* user) {
            return !flow_.carrying.contains(user) && reaching_.contains(user);
          });
      if (is_read || is_kept(x)) flow_.gradients.push_back({x, parameter_of(x)});
    }
  }
  bool is_kept(const Instr* x) const {
    return std::any_of(kept_.begin(), kept_.end(),
                       [&](const Kept& kept) { return kept.value == x; });
  }

  // The first parameter that it updates: one of equal size, if there is any.
  int64_t parameter_of(const Instr* gradient) const {
    Set reached{gradient};
    std::vector<const Instr*> stack{gradient};
    while (!stack.empty()) {
      const Instr* x = stack.back();
      stack.pop_back();
      for (const Instr* user : x->users())
        if (user != entry_.root() && reached.insert(user).second) stack.push_back(user);
    }
    int64_t any = -1, like = -1;
    for (const Kept& kept : kept_) {
      if (!reached.contains(kept.value)) continue;
      const auto sooner = [&](int64_t than) { return than < 0 || kept.parameter < than; };
      if (sooner(any)) any = kept.parameter;
      if (kept.value->shape().elems() == gradient->shape().elems() && sooner(like))
        like = kept.parameter;
    }
    return like >= 0 ? like : std::max<int64_t>(any, 0);
  }

  const hlo::Module& module_;
  const Computation& entry_;
  std::vector<Kept> kept_;
  Set forward_;   // needed by a loss
  Set reaching_;  // needed by the kept results
  Set update_;
  std::unordered_map<const Instr*, int64_t> depth_;
  Set seen_, starts_;
  Set plain_;  // backward products without an input that could be scaled
  GradientFlow flow_;
};

}  // namespace

bool is_product(const Instr* x) { return x->is(Opcode::dot) || x->is(Opcode::convolution); }

GradientFlow find_gradients(const hlo::Module& module) { return Finder(module).run(); }

}  // namespace heddle::precision
