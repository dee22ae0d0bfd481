// The rules of `algebraic` (rules.def): each takes one instruction and returns its replacement, or
// null. A rule builds only once it has decided, so that a refusal leaves no instructions behind.
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
// The rules for instructions of this opcode, in the order of the table.
std::span<const Rule* const> rules_for(Opcode opcode);

// The rank-0 value that every element of x equals (a splat, or a broadcast of a scalar); may be
// built with `b`. Null if there is none; `has_scalar` checks without building.
bool has_scalar(const Instr* x);
Instr* scalar_of(Instr* x, Builder& b);
// `scalar` in every element of an array of these extents.
Instr* broadcast_scalar(Instr* scalar, const Ints& extents, Builder& b);

// x after a reshape or a transpose, if x is an array that is as cheap in another shape (a splat, a
// broadcast, an iota, a constant); else null. With `build` false nothing is built and any non-null
// result means yes.
Instr* reshape_cheaply(Instr* x, const Ints& extents, Builder& b, bool build);
Instr* transpose_cheaply(Instr* x, const Ints& permutation, Builder& b, bool build);

}  // namespace heddle::opt
