// inline_calls: a call, a fusion, an asynchronous pair and a custom-call that wraps a computation
// are replaced by a copy of the computation: fusion is our own decision, and on one device
// asynchrony gains nothing. Callees first, so that the copied computation is already flat.
// inline_lazily: the same, but large computations that the entry calls repeatedly stay functions
// until they are fused (lazy_calls.h).
#include <unordered_map>
#include <unordered_set>

#include "interp/evaluator.h"
#include "opt/lazy_calls.h"
#include "opt/match.h"
#include "opt/merge_computations.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

// A chain of computations that each call the next twice grows as 2^n: refused before copying.
constexpr int64_t kMaxInlined = 4'000'000;

// The instruction whose computation gives `instr` its value, or null.
Instr* caller_of(Instr* instr) {
  switch (instr->opcode()) {
    case Opcode::call:
    case Opcode::fusion:
      return instr;
    case Opcode::custom_call:  // wraps a computation, if its target is a known one
      return instr->called().size() == 1 && !interp::refusal(*instr) ? instr : nullptr;
    case Opcode::async_done: {
      Instr* start = instr->operand(0);
      while (start->is(Opcode::async_update)) start = start->operand(0);
      return start->is(Opcode::async_start) ? start : nullptr;
    }
    default:
      return nullptr;
  }
}

bool fits(const Instr* instr, const Instr* caller, const Computation& callee) {
  if (callee.parameters().size() != caller->operands().size()) return false;
  for (size_t i = 0; i < callee.parameters().size(); ++i)
    if (!callee.parameters()[i]->shape().compatible(caller->operand(i)->shape())) return false;
  return callee.root()->shape().compatible(instr->shape());
}

// The call that is replaced together with `instr`, or null.
Instr* inlined_caller(Instr* instr) {
  Instr* caller = caller_of(instr);
  return caller && fits(instr, caller, *caller->called()[0]) ? caller : nullptr;
}

// Adds up the sizes after inlining before anything is copied.
Status check_growth(const std::vector<Computation*>& callees_first) {
  std::unordered_map<const Computation*, int64_t> sizes;
  int64_t grown = 0;
  for (const Computation* computation : callees_first) {
    auto size = static_cast<int64_t>(computation->instrs().size());
    for (Instr* instr : computation->instrs()) {
      const Instr* caller = inlined_caller(instr);
      if (!caller) continue;
      size += sizes.at(caller->called()[0]);
      grown += sizes.at(caller->called()[0]);
      if (grown > kMaxInlined)
        return user_error(
            "inlining %{} of %{}: the module would grow by more than {} instructions; its "
            "computations call each other too often",
            instr->name(), computation->name(), kMaxInlined);
    }
    sizes.emplace(computation, size);
  }
  return {};
}

class Inliner {
 public:
  // `context`: for lazy inlining; null: all calls are inlined.
  Result<bool> run(hlo::Module& module, const PassContext* context) {
    bool changed = context != nullptr && merge_computations(module, *context);
    const std::vector<Computation*> callees_first = module.post_order();
    HEDDLE_RETURN_IF_ERROR(check_growth(callees_first));
    for (Computation* computation : callees_first) {
      KeptCalls kept;
      if (context != nullptr && computation == module.entry()) {
        std::vector<std::string> notes;
        kept = keep_calls(&module, &notes);
        for (std::string& note : notes) context->note(std::move(note));
        changed |= kept.changed;
      }
      const std::vector<Instr*> all = computation->instrs();
      gone_.clear();
      for (Instr* instr : all) {
        if (gone_.contains(instr) || kept.calls.contains(instr)) continue;
        Instr* caller = inlined_caller(instr);
        if (!caller) continue;
        inline_one(computation, instr, caller);
        changed = true;
      }
    }
    return changed;
  }

 private:
  void inline_one(Computation* computation, Instr* instr, Instr* caller) {
    const Computation& callee = *caller->called()[0];
    std::vector<Instr*> copies;
    Instr* root = inline_computation(computation, callee, caller->operands(), &copies);
    // Control edges of the call now apply to every copied instruction.
    const auto before = caller->control_predecessors();
    const auto after = instr->control_successors();
    for (Instr* copy : copies) {
      for (Instr* predecessor : before) computation->add_control_edge(predecessor, copy);
      for (Instr* successor : after)
        if (hlo::has_effect(*copy)) computation->add_control_edge(copy, successor);
    }
    computation->replace_all_uses(instr, root);
    remove_chain(computation, instr, caller);
  }

  // Removes done, updates and start, each if it has no other readers.
  void remove_chain(Computation* computation, Instr* instr, Instr* caller) {
    for (;;) {
      if (!instr->users().empty() || !instr->control_successors().empty() ||
          instr == computation->root())
        return;
      Instr* next = instr == caller ? nullptr : instr->operand(0);
      gone_.insert(instr);
      computation->remove(instr);
      if (!next) return;
      instr = next;
    }
  }

  std::unordered_set<const Instr*> gone_;
};

}  // namespace

Result<bool> inline_calls(hlo::Module& module, const PassContext&) {
  return Inliner().run(module, nullptr);
}

Result<bool> inline_lazily(hlo::Module& module, const PassContext& context) {
  return Inliner().run(module, &context);
}

}  // namespace heddle::opt
