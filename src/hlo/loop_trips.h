// What is known of a while beside its computations: facts (facts.h) that passes keep.
#pragma once

#include <cstdint>
#include <optional>

#include "hlo/module.h"

namespace heddle::hlo {

// How often its body runs, where that is known before; whoever found out says so with set_trips.
std::optional<int64_t> known_trips(const Instr* loop);
void set_trips(Instr* loop, int64_t trips);

// Its trips are strips of a batch: each reads and writes rows of its own, whatever the others do.
// Leaf 0 of its state counts them, leaf 1 is the first row of the strip (fuse/strips.h).
bool is_strips(const Instr* loop);
void set_strips(Instr* loop);
// The loop inside whose trips are a strip's steps; `loop` itself where it is none over strips.
const Instr* loop_of_steps(const Instr* loop);

// An array that a loop over strips begins with and that its steps write anew: nothing reads it.
bool is_unread(const Instr* value);
void set_unread(Instr* value);

// The leaf of `loop`'s state is loop-invariant.
bool is_invariant_leaf(const Instr* loop, int64_t leaf);

}  // namespace heddle::hlo
