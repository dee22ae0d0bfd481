#include "hlo/verify.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "hlo/shape_inference.h"
#include "hlo/shape_rules.h"
#include "hlo/state_arrays.h"

namespace heddle::hlo {
namespace {

class Verifier {
 public:
  explicit Verifier(const Module& module) : module_(module) {}

  Status run() {
    check_computations();
    for (const auto& computation : module_.computations()) check_computation(*computation);
    check_call_graph();
    check_aliases();
    check_symbols();
    if (module_.entry() && !states_fit(module_))
      violation(13, "the states are not the last parameters and results");
    if (violations_.empty()) return {};
    return user_error("{}", fmt::join(violations_, "\n"));
  }

 private:
  template <typename... Args>
  void violation(int invariant, fmt::format_string<Args...> format, Args&&... args) {
    violations_.push_back(fmt::format("invariant {}: {}", invariant,
                                      fmt::format(format, std::forward<Args>(args)...)));
  }
  static std::string where(const Instr& instr, const Computation& computation) {
    return fmt::format("%{} in %{}", instr.name(), computation.name());
  }

  void check_computations() {
    std::unordered_set<std::string> names;
    for (const auto& computation : module_.computations()) {
      owned_.insert(computation.get());
      if (!names.insert(computation->name()).second)
        violation(9, "two computations are named %{}", computation->name());
    }
    if (!module_.entry()) {
      violation(10, "the module has no entry");
    } else if (!owned_.contains(module_.entry())) {
      violation(10, "the entry is not a computation of the module");
    }
  }

  void check_computation(const Computation& c) {
    places_.clear();
    std::unordered_set<std::string> names;
    for (const Instr* instr : c.instrs()) {
      places_.emplace(instr, places_.size());
      if (!names.insert(instr->name()).second)
        violation(9, "two instructions of %{} are named %{}", c.name(), instr->name());
    }
    if (!c.root()) {
      violation(10, "%{} has no root", c.name());
    } else if (!places_.contains(c.root())) {
      violation(10, "the root of %{} is not one of its instructions", c.name());
    }
    check_parameters(c);
    count_users(c);
    for (const Instr* instr : c.instrs()) {
      const bool linked = check_links(*instr, c);
      check_users(*instr, c);
      if (linked && check_row(*instr, c)) check_shape(*instr, c);
    }
  }

  // Invariants 1, 2, 12 and the first half of 7. False: its operands' shapes cannot be read.
  bool check_links(const Instr& instr, const Computation& c) {
    bool linked = true;
    if (instr.parent() != &c) {
      violation(1, "{}: its parent is another computation", where(instr, c));
      linked = false;
    }
    const size_t place = places_.at(&instr);
    for (size_t i = 0; i < instr.operands().size(); ++i) {
      auto found = places_.find(instr.operands()[i]);
      if (found == places_.end()) {
        violation(1, "{}: operand {} is not of its computation", where(instr, c), i);
        linked = false;
      } else if (found->second >= place) {
        violation(2, "{}: operand {} (%{}) comes after it", where(instr, c), i,
                  instr.operands()[i]->name());
      }
    }
    for (const Instr* before : instr.control_predecessors()) {
      auto found = places_.find(before);
      if (found == places_.end()) {
        violation(1, "{}: a control predecessor is not of its computation", where(instr, c));
      } else if (found->second >= place) {
        violation(12, "{}: its control predecessor %{} depends on it", where(instr, c),
                  before->name());
      }
    }
    for (const Computation* called : instr.called()) {
      if (owned_.contains(called)) continue;
      violation(7, "{}: it calls a computation that is not of the module", where(instr, c));
      linked = false;
    }
    return linked;
  }

  // Number of distinct users of each instruction.
  void count_users(const Computation& c) {
    wanted_users_.clear();
    for (const Instr* instr : c.instrs()) {
      std::unordered_set<const Instr*> seen;
      for (const Instr* operand : instr->operands())
        if (seen.insert(operand).second) ++wanted_users_[operand];
    }
  }

  void check_users(const Instr& instr, const Computation& c) {
    std::unordered_set<const Instr*> seen;
    for (const Instr* user : instr.users()) {
      if (!seen.insert(user).second) {
        violation(3, "{}: a user is listed twice", where(instr, c));
      } else if (!places_.contains(user)) {
        violation(1, "{}: a user is not of its computation", where(instr, c));
      } else if (std::find(user->operands().begin(), user->operands().end(), &instr) ==
                 user->operands().end()) {
        violation(3, "{}: its user %{} does not have it as operand", where(instr, c), user->name());
      }
    }
    auto wanted = wanted_users_.find(&instr);
    const size_t count = wanted == wanted_users_.end() ? 0 : wanted->second;
    if (seen.size() < count)
      violation(3, "{}: {} users are listed, {} have it as operand", where(instr, c), seen.size(),
                count);
  }

  // Invariant 4.
  bool check_row(const Instr& instr, const Computation& c) {
    if (static_cast<int>(instr.attrs().index()) != opcode_info(instr.opcode()).attrs_index) {
      violation(4, "{}: {} has attributes of another opcode", where(instr, c),
                opcode_text(instr.opcode()));
      return false;
    }
    shapes_.clear();
    for (const Instr* operand : instr.operands()) shapes_.push_back(&operand->shape());
    const ShapeQuery q = query(instr);
    for (const Status& status : {check_operand_count(q), check_called_count(q)}) {
      if (status) continue;
      violation(4, "{}: {}", where(instr, c), status.error().message);
      return false;
    }
    return true;
  }

  ShapeQuery query(const Instr& instr) const {
    return {instr.opcode(), shapes_, instr.attrs(), instr.called(), &instr.shape()};
  }

  // Invariants 8 and 5; shapes_ holds the operand shapes of `instr`.
  void check_shape(const Instr& instr, const Computation& c) {
    if (Status status = check_called(query(instr)); !status) {
      violation(8, "{}: {}", where(instr, c), status.error().message);
      return;
    }
    const Result<Shape> shape =
        infer_shape(instr.opcode(), shapes_, instr.attrs(), instr.called(), &instr.shape());
    if (!shape) violation(5, "{}: {}", where(instr, c), shape.error().message);
  }

  void check_parameters(const Computation& c) {
    std::set<int64_t> numbers;
    size_t count = 0;
    for (const Instr* instr : c.instrs()) {
      const auto* attrs = std::get_if<ParameterAttrs>(&instr->attrs());
      if (!instr->is(Opcode::parameter) || !attrs) continue;
      ++count;
      if (!numbers.insert(attrs->number).second)
        violation(6, "{}: parameter {} appears twice", where(*instr, c), attrs->number);
    }
    if (numbers.size() != count) return;
    if (count > 0 &&
        (*numbers.begin() != 0 || *numbers.rbegin() != static_cast<int64_t>(count) - 1)) {
      violation(6, "%{}: {} parameters are numbered {} to {}", c.name(), count, *numbers.begin(),
                *numbers.rbegin());
      return;
    }
    bool listed = count == c.parameters().size();
    for (size_t i = 0; listed && i < count; ++i) {
      const Instr* p = c.parameters()[i];
      listed = places_.contains(p) && p->is(Opcode::parameter) &&
               p->parameter_number() == static_cast<int64_t>(i);
    }
    if (!listed) violation(6, "%{}: parameters() does not list its parameters by number", c.name());
  }

  void check_call_graph() {
    enum : uint8_t { kOpen = 1, kDone };
    std::unordered_map<const Computation*, uint8_t> state;
    for (const auto& start : module_.computations()) {
      if (state.contains(start.get())) continue;
      std::vector<std::pair<const Computation*, std::vector<const Computation*>>> stack;
      stack.emplace_back(start.get(), callees(*start));
      state[start.get()] = kOpen;
      while (!stack.empty()) {
        auto& [computation, pending] = stack.back();
        if (pending.empty()) {
          state[computation] = kDone;
          stack.pop_back();
          continue;
        }
        const Computation* next = pending.back();
        pending.pop_back();
        if (state[next] == kOpen) {
          violation(7, "%{} calls %{}, which calls it", computation->name(), next->name());
        } else if (state[next] == 0) {
          state[next] = kOpen;
          stack.emplace_back(next, callees(*next));
        }
      }
    }
  }

  std::vector<const Computation*> callees(const Computation& c) const {
    std::vector<const Computation*> result;
    std::unordered_set<const Computation*> seen;
    for (const Instr* instr : c.instrs())
      for (const Computation* called : instr->called())
        if (owned_.contains(called) && seen.insert(called).second) result.push_back(called);
    return result;
  }

  // Invariant 11.
  void check_aliases() {
    if (module_.input_output_alias.empty()) return;
    const Computation* entry = module_.entry();
    if (!entry || !owned_.contains(entry) || !entry->root()) return;  // reported already
    std::set<Ints> outputs;
    for (const Alias& alias : module_.input_output_alias) {
      const std::string name =
          fmt::format("alias of output {} and parameter {} {}", text(alias.output_index),
                      alias.parameter, text(alias.parameter_index));
      if (!outputs.insert(alias.output_index).second)
        violation(11, "{}: the output has another alias", name);
      const Shape* output = leaf(entry->root()->shape(), alias.output_index);
      const Shape* input = nullptr;
      if (alias.parameter >= 0 &&
          alias.parameter < static_cast<int64_t>(entry->parameters().size()))
        input = leaf(entry->parameters()[alias.parameter]->shape(), alias.parameter_index);
      if (!output || !input) {
        violation(11, "{}: there is no such {}", name, output ? "parameter" : "output");
      } else if (!output->compatible(*input)) {
        violation(11, "{}: {} and {} differ", name, text(*output), text(*input));
      }
    }
  }

  // Invariant 14.
  void check_symbols() {
    const Computation* entry = module_.entry();
    if (!entry || !owned_.contains(entry)) return;  // reported already
    auto parameter = [&](int64_t number) -> const Shape* {
      const auto count = static_cast<int64_t>(entry->parameters().size());
      return number >= 0 && number < count ? &entry->parameters()[number]->shape() : nullptr;
    };
    // Symbols have no extent parameters before the pass mask_padding, which adds them to all.
    const bool masked = module_.symbols.empty() || module_.symbols[0].extent != -1;
    for (const Symbol& symbol : module_.symbols) {
      const Shape* extent = parameter(symbol.extent);
      const bool right = masked ? extent && extent->is_scalar() && extent->type() == Type::s32
                                : symbol.extent == -1;
      if (!right) violation(14, "symbol {}: parameter {} is no s32[]", symbol.name, symbol.extent);
      for (const auto& [number, dimension] : symbol.places) {
        const Shape* shape = parameter(number);
        if (!shape || !shape->is_array() || dimension < 0 || dimension >= shape->rank())
          violation(14, "symbol {}: there is no dimension {} of parameter {}", symbol.name,
                    dimension, number);
      }
    }
  }

  static const Shape* leaf(const Shape& shape, const Ints& index) {
    const Shape* at = &shape;
    for (int64_t i : index) {
      if (!at->is_tuple() || i < 0 || i >= static_cast<int64_t>(at->elements().size()))
        return nullptr;
      at = &at->elements()[i];
    }
    return at->is_tuple() ? nullptr : at;
  }

  const Module& module_;
  std::vector<std::string> violations_;
  std::unordered_set<const Computation*> owned_;
  std::unordered_map<const Instr*, size_t> places_;        // of the current computation
  std::unordered_map<const Instr*, size_t> wanted_users_;  // likewise
  std::vector<const Shape*> shapes_;                       // of the current instruction's operands
};

}  // namespace

Status verify(const Module& module) { return Verifier(module).run(); }

}  // namespace heddle::hlo
