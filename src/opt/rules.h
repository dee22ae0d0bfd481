// The rules of `algebraic` (rules.def): each looks at one instruction and returns what can stand
// for it, or null. A rule builds only when it has decided, so that a refusal leaves nothing behind.
#pragma once

#include <span>
#include <string_view>

#include "hlo/builder.h"
#include "opt/match.h"

namespace heddle::opt {

using hlo::Builder;

using RuleFunction = Instr* (*)(Instr* x, Builder& b);

namespace rules {
#define HEDDLE_RULE(name, opcode, summary) Instr* name(Instr* x, Builder& b);
#include "opt/rules.def"
}  // namespace rules

struct Rule {
  std::string_view name;
  std::string_view summary;
  RuleFunction function;
};

std::span<const Rule> all_rules();
// The rules that look at instructions of this opcode, in the order of the table.
std::span<const Rule* const> rules_for(Opcode opcode);

// The value of rank 0 that every element of x is (a splat, or a broadcast of a scalar); may be made
// with `b`. Null where it is none; `has_scalar` asks without building.
bool has_scalar(const Instr* x);
Instr* scalar_of(Instr* x, Builder& b);
// `scalar` in every element of an array of these extents.
Instr* broadcast_scalar(Instr* scalar, const Ints& extents, Builder& b);

// What moving a reshape or a transpose over x would make of x (an array that is cheap to have in
// another shape: a splat, a broadcast, an iota, a constant), or null. With `build` false nothing is
// made and any non-null answer means yes.
Instr* reshape_cheaply(Instr* x, const Ints& extents, Builder& b, bool build);
Instr* transpose_cheaply(Instr* x, const Ints& permutation, Builder& b, bool build);

}  // namespace heddle::opt
