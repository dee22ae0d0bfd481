#include "precision/mixed_rewrite.h"

#include <unordered_map>

#include "hlo/builder.h"
#include "hlo/symbol.h"

namespace heddle::precision {
namespace {

using hlo::Builder;
using hlo::Instr;
using hlo::Opcode;
using tensor::Type;

using Rounded = std::unordered_map<const Instr*, Instr*>;  // rounded: original

// Every reader except the root gets `x` rounded to the small type.
bool round(Instr* x, Type low, Builder& b, MixedCounts* counts, Rounded* rounded) {
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
  rounded->emplace(wide, x);
  return any;
}

bool is_number(const Instr* x) {
  x = hlo::behind_shapes(x);
  return x->is(Opcode::constant) && x->shape().elems() == 1;
}

// A comparison of a value with the one that it was selected from, as in the gradient of a clipped
// value, must use unrounded values if only one side was rounded: otherwise none would be equal.
void compare_alike(hlo::Computation* entry, const Rounded& rounded) {
  for (Instr* x : entry->instrs()) {
    if (!x->is(Opcode::compare)) continue;
    const hlo::Direction direction = x->attrs_as<hlo::CompareAttrs>().direction;
    if (direction != hlo::Direction::eq && direction != hlo::Direction::ne) continue;
    for (size_t side = 0; side < 2; ++side) {
      const auto found = rounded.find(x->operand(side));
      const Instr* other = x->operand(1 - side);
      if (found != rounded.end() && rounded.count(other) == 0 && !is_number(other))
        entry->replace_operand(x, side, found->second);
    }
  }
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
  Rounded rounded;
  // Products first: the values' conversions then come before theirs.
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
        counts.values += round(x, plan.low, b, &counts, &rounded) ? 1 : 0;
      }
    }
  compare_alike(entry, rounded);
  b.check();
  entry->sort();
  return counts;
}

}  // namespace heddle::precision
