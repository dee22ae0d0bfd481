// Private to choose_layout: the way up. A convolution wants its input in another order, and what
// computes that input begins with transposes (a decoder behind a transformer, say): then all of it
// is computed in the wanted order, and the transposes vanish.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>

#include "opt/match.h"

namespace heddle::opt {

// The orders in which the instructions between a value and those transposes are to be computed.
using Region = std::unordered_map<const Instr*, Ints>;
// May a value be had in an order for nothing?
using IsFree = std::function<bool(Instr* value, const Ints& order)>;

// None: nothing would vanish, or something would have to be moved or computed twice.
std::optional<Region> pull_layout(Instr* value, const Ints& order, const IsFree& is_free);

// The operand that decides on the order of x, and the order in which it must come for x to be in
// `order`; none where x has no such operand.
struct Lead {
  size_t operand;
  Ints order;
};
std::optional<Lead> lead_for(const Instr* x, const Ints& order);

}  // namespace heddle::opt
