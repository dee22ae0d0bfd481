#include "opt/rewriter.h"

#include <algorithm>
#include <unordered_map>

namespace heddle::opt {
namespace {

// Rules lower a measure at each step, so few instructions are visited more than a handful of times.
constexpr int64_t kVisitsPerInstr = 32;
constexpr int64_t kLeastVisits = 10'000;

// The source location survives rewriting. (So do the names of nodes, in any pass.)
void inherit_metadata(const Instr& from, Instr& to) {
  if (!to.annotations().empty() || to.is(Opcode::parameter)) return;
  for (const auto& [key, value] : from.annotations())
    if (key == "metadata") to.annotations().emplace_back(key, value);
}

}  // namespace

bool is_removable(const Instr& instr) {
  return !instr.is(Opcode::parameter) && instr.control_successors().empty() &&
         instr.control_predecessors().empty() && !hlo::has_effect(instr);
}

Rewriter::Rewriter(Computation* computation, const PassContext& context, std::string_view pass,
                   Wants wants)
    : computation_(computation),
      context_(context),
      pass_(pass),
      wants_(wants),
      builder_(computation) {
  for (Instr* instr : computation->instrs()) {
    push(instr);
    newest_id_ = std::max(newest_id_, instr->id());
  }
}

void Rewriter::push(Instr* instr) {
  if (wants_ && !wants_(instr)) return;
  if (queued_.insert(instr).second) work_.push_back(instr);
}

// Queues the replacement and the instructions built for it.
void Rewriter::push_new(Instr* to, int64_t newest) {
  std::vector<Instr*> stack{to};
  std::unordered_set<const Instr*> seen;
  while (!stack.empty()) {
    Instr* instr = stack.back();
    stack.pop_back();
    newest_id_ = std::max(newest_id_, instr->id());
    push(instr);
    for (Instr* operand : instr->operands())
      if (operand->id() > newest && seen.insert(operand).second) stack.push_back(operand);
  }
}

void Rewriter::remove_dead(Instr* instr, bool push_readers, bool has_effect_too) {
  std::vector<Instr*> stack{instr};
  while (!stack.empty()) {
    Instr* dead = stack.back();
    stack.pop_back();
    if (!dead->users().empty() || dead == computation_->root()) continue;
    if (!is_removable(*dead) && !(has_effect_too && dead == instr)) continue;
    std::vector<Instr*> operands = dead->operands();
    std::sort(operands.begin(), operands.end(),
              [](const Instr* a, const Instr* b) { return a->id() < b->id(); });
    operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
    queued_.erase(dead);
    computation_->remove(dead);
    for (Instr* operand : operands) {
      if (operand->users().empty()) stack.push_back(operand);
      // A rule may have waited for this user to be the only reader.
      if (push_readers && operand->users().size() == 1) push(operand->users()[0]);
    }
  }
}

bool Rewriter::accept(Instr* from, const Proposal& proposal) {
  const int64_t newest = newest_id_;
  Instr* to = proposal.to;
  const bool fits = from->shape().without_layout() == to->shape().without_layout();
  const bool asked = proposal.rule.empty();
  if (!fits || (!asked && !context_.allow(pass_, proposal.rule))) {
    if (to->id() > newest) remove_dead(to, /*push_readers=*/false);
    return false;
  }
  if (to->id() > newest) inherit_metadata(*from, *to);
  const std::vector<Instr*> users = from->users();
  computation_->replace_all_uses(from, to);
  push_new(to, newest);
  for (Instr* user : users) push(user);  // their rules may apply now
  remove_dead(from, /*push_readers=*/true, proposal.drop_effect);
  return true;
}

bool Rewriter::run(const Visit& visit) {
  bool changed = false;
  int64_t visits_left =
      kLeastVisits + kVisitsPerInstr * static_cast<int64_t>(computation_->instrs().size());
  while (!work_.empty()) {
    Instr* instr = work_.front();
    work_.pop_front();
    // Removed instructions are not queued any more. (A newer one may have the same address:
    // harmless.)
    if (queued_.erase(instr) == 0) continue;
    const bool dead = instr->users().empty() && instr != computation_->root();
    if (dead && !hlo::has_effect(*instr)) continue;  // left to dce
    if (--visits_left < 0) {
      context_.note(
          fmt::format("{}: gave up on %{}: too many rewrites", pass_, computation_->name()));
      break;
    }
    const Proposal proposal = visit(instr);
    builder_.check();
    if (proposal.to && proposal.to != instr) changed |= accept(instr, proposal);
  }
  return changed;
}

bool rewrite_module(hlo::Module& module, const PassContext& context, std::string_view pass,
                    const std::function<Rewriter::Proposal(Instr*, hlo::Builder&)>& visit,
                    Rewriter::Wants wants) {
  bool changed = false;
  for (Computation* computation : module.post_order()) {
    Rewriter rewriter(computation, context, pass, wants);
    changed |= rewriter.run([&](Instr* instr) { return visit(instr, rewriter.builder()); });
  }
  return changed;
}

Instr* inline_computation(Computation* into, const Computation& callee,
                          const std::vector<Instr*>& arguments, std::vector<Instr*>* added) {
  std::unordered_map<const Instr*, Instr*> copies;
  for (const Instr* instr : callee.instrs()) {
    if (instr->is(Opcode::parameter)) {
      copies.emplace(instr, arguments.at(static_cast<size_t>(instr->parameter_number())));
      continue;
    }
    std::vector<Instr*> operands;
    operands.reserve(instr->operands().size());
    for (const Instr* operand : instr->operands()) operands.push_back(copies.at(operand));
    Instr* copy = into->add(instr->opcode(), instr->shape(), std::move(operands), instr->attrs(),
                            instr->called(), instr->name());
    copy->copy_notes(*instr);
    copies.emplace(instr, copy);
    if (added) added->push_back(copy);
  }
  for (const Instr* instr : callee.instrs()) {
    if (instr->is(Opcode::parameter)) continue;
    for (const Instr* before : instr->control_predecessors())
      if (!before->is(Opcode::parameter))
        into->add_control_edge(copies.at(before), copies.at(instr));
  }
  return copies.at(callee.root());
}

}  // namespace heddle::opt
