// Private to choose_layout: propagates a layout upstream. If a convolution needs its input in
// another order, and the computation of that input begins with transposes (a decoder after a
// transformer, say), all of it is computed in the needed order, and the transposes vanish.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>

#include "opt/match.h"

namespace heddle::opt {

// The orders in which to compute the instructions between the transposes and the value.
using Region = std::unordered_map<const Instr*, Ints>;
// Whether a value is available in an order at no cost.
using IsFree = std::function<bool(Instr* value, const Ints& order)>;

// None: no transpose would vanish, or a value would have to be moved or computed twice.
std::optional<Region> pull_layout(Instr* value, const Ints& order, const IsFree& is_free);

// The operand that determines the order of x, and the order that it needs for x to be in `order`;
// none if x has no such operand.
struct Lead {
  size_t operand;
  Ints order;
};
std::optional<Lead> lead_for(const Instr* x, const Ints& order);

}  // namespace heddle::opt
