// algebraic: rewrites by the table of rules.def until none applies.
#include <vector>

#include "opt/passes.h"
#include "opt/rewriter.h"
#include "opt/rules.h"

namespace heddle::opt {
namespace {

// The opcode that a row matches: an opcode's number, or one of these.
constexpr int kElementwise = hlo::kOpcodeCount, kAny = hlo::kOpcodeCount + 1;

struct Row {
  Rule rule;
  int target;
};

const std::vector<Row>& rows() {
  constexpr int elementwise_ = kElementwise, any_ = kAny;
  using enum Opcode;
  static const std::vector<Row> kRows = {
#define HEDDLE_RULE(name, opcode, summary) \
  {{#name, summary, rules::name}, static_cast<int>(opcode)},
#include "opt/rules.def"
  };
  return kRows;
}

}  // namespace

std::span<const Rule> all_rules() {
  static const std::vector<Rule> kRules = [] {
    std::vector<Rule> list;
    for (const Row& row : rows()) list.push_back(row.rule);
    return list;
  }();
  return kRules;
}

std::span<const Rule* const> rules_for(Opcode opcode) {
  static const std::vector<std::vector<const Rule*>> kByOpcode = [] {
    std::vector<std::vector<const Rule*>> lists(hlo::kOpcodeCount);
    for (int i = 0; i < hlo::kOpcodeCount; ++i) {
      const bool elementwise = hlo::has_trait(static_cast<Opcode>(i), hlo::Trait::elementwise);
      for (const Row& row : rows())
        if (row.target == i || row.target == kAny || (row.target == kElementwise && elementwise))
          lists[static_cast<size_t>(i)].push_back(&row.rule);
    }
    return lists;
  }();
  return kByOpcode[static_cast<size_t>(opcode)];
}

Result<bool> algebraic(hlo::Module& module, const PassContext& context) {
  return rewrite_module(module, context, "algebraic",
                        [](Instr* instr, Builder& b) -> Rewriter::Proposal {
                          for (const Rule* rule : rules_for(instr->opcode()))
                            if (Instr* to = rule->function(instr, b)) return {to, rule->name};
                          return {};
                        });
}

}  // namespace heddle::opt
