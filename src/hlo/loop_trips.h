// Facts about a while beyond its computations (facts.h), which passes keep.
#pragma once

#include <cstdint>
#include <optional>

#include "hlo/module.h"

namespace heddle::hlo {

// The trip count, if known at compile time; the pass that finds it calls set_trips.
std::optional<int64_t> known_trips(const Instr* loop);
void set_trips(Instr* loop, int64_t trips);

// The loop runs over strips of a batch: each trip reads and writes its own rows only. Leaf 0 of its
// state counts the trips, leaf 1 is the first row of the strip (fuse/strips.h).
bool is_strips(const Instr* loop);
void set_strips(Instr* loop);
// The inner loop, whose trips are the steps of a strip; `loop` itself if it is not over strips.
const Instr* loop_of_steps(const Instr* loop);

// An initial value of a loop over strips that each trip overwrites before reading it.
bool is_unread(const Instr* value);
void set_unread(Instr* value);

// The leaf of `loop`'s state is loop-invariant.
bool is_invariant_leaf(const Instr* loop, int64_t leaf);

}  // namespace heddle::hlo
