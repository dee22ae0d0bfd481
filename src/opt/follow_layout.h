// Rebuilds an operator whose operand is stored with its dimensions in another order. Private to
// choose_layout.
#pragma once

#include <functional>
#include <optional>

#include "hlo/builder.h"
#include "opt/match.h"

namespace heddle::opt {

// A value kept as transpose(value, order): dimension i of `instr` is the value's dimension
// order[i].
struct Stored {
  Ints order;
  Instr* instr = nullptr;
};

// Returns `value` with its dimensions in this order.
using StoreAs = std::function<Instr*(Instr* value, const Ints& order)>;

// Rebuilds x, whose operand number `lead` is stored as `kept`; `store_as` gives the other operands.
// None: x needs its operands in logical order; nothing has been built then. Sums keep their order.
std::optional<Stored> follow_layout(Instr* x, size_t lead, const Stored& kept,
                                    const StoreAs& store_as, hlo::Builder& b);

// The dimensions of x to which the link maps; for a dimension that is indexed by positions, those
// of the positions.
Ints seen_in(const Instr* x, const hlo::DimLink& link);
// A gather of positions along one dimension, as in numpy take.
bool is_take(const Instr* x);
int64_t place_of(const Ints& order, int64_t d);

// Whether transposing an array of these extents by `order` moves only extents of 1.
bool moves_nothing(const Ints& order, const Ints& extents);

}  // namespace heddle::opt
