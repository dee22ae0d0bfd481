// What an operator becomes when its operands are kept with their dimensions in another order.
// Private to choose_layout.
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

// `value` with its dimensions in this order.
using StoreAs = std::function<Instr*(Instr* value, const Ints& order)>;

// x, whose operand number `lead` is kept as `kept`; the other operands are asked of `store_as`.
// None: x must have its operands as they are; nothing has been built then. Sums keep their order.
std::optional<Stored> follow_layout(Instr* x, size_t lead, const Stored& kept,
                                    const StoreAs& store_as, hlo::Builder& b);

// The dimensions of x in which those of an operand are seen; of a dimension that positions pick
// from, those of the positions.
Ints seen_in(const Instr* x, const hlo::DimLink& link);
// A gather of positions along one dimension, as numpy takes them.
bool is_take(const Instr* x);
int64_t place_of(const Ints& order, int64_t d);

// Transposing an array of these extents by `order` moves nothing but extents of 1.
bool moves_nothing(const Ints& order, const Ints& extents);

}  // namespace heddle::opt
