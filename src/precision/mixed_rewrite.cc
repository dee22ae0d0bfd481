#include "precision/mixed_rewrite.h"

#include "hlo/builder.h"

namespace heddle::precision {
namespace {

using hlo::Builder;
using hlo::Instr;
using hlo::Opcode;
using tensor::Type;

// Every reader but the root gets `x` as the small type holds it.
bool round(Instr* x, Type low, Builder& b, MixedCounts* counts) {
  hlo::Computation* computation = x->parent();
  const std::vector<Instr*> users = x->users();
  Instr* narrow = b.convert(x, low);
  Instr* wide = b.convert(narrow, Type::f32);
  bool any = false;
  for (Instr* user : users)
    if (!user->is(Opcode::tuple) || user != computation->root())
      for (size_t i = 0; i < user->operands().size(); ++i)
        if (user->operand(i) == x) {
          computation->replace_operand(user, i, wide);
          any = true;
        }
  if (any) counts->casts += 2;
  return any;
}

void narrow_operands(Instr* x, Type low, Builder& b, MixedCounts* counts) {
  for (size_t i = 0; i < x->operands().size(); ++i) {
    Instr* narrow = b.convert(x->operand(i), low);
    x->parent()->replace_operand(x, i, narrow);
    ++counts->casts;
  }
}

}  // namespace

MixedCounts apply_mixed(const MixedPlan& plan, hlo::Module* module) {
  hlo::Computation* entry = module->entry();
  Builder b(entry);
  MixedCounts counts;
  // Products first: the values' conversions then stand in front of theirs.
  for (const bool products : {true, false})
    for (const MixedChoice& choice : plan.choices) {
      if (!choice.low || choice.is_product != products) continue;
      Instr* x = entry->find(choice.name);
      if (!x || x->opcode() != choice.opcode || x->shape().type() != Type::f32 ||
          x->shape().extents() != choice.extents)
        continue;
      if (products) {
        narrow_operands(x, plan.low, b, &counts);
        ++counts.products;
      } else if (x != entry->root()) {
        counts.values += round(x, plan.low, b, &counts) ? 1 : 0;
      }
    }
  b.check();
  entry->sort();
  return counts;
}

}  // namespace heddle::precision
