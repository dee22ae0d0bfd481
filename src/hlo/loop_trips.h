// What is known of a while beside its computations: an annotation that passes keep.
#pragma once

#include <cstdint>
#include <optional>

#include "hlo/module.h"

namespace heddle::hlo {

// How often its body runs, where that is known before; whoever found out says so with set_trips.
std::optional<int64_t> known_trips(const Instr* loop);
void set_trips(Instr* loop, int64_t trips);

// A fusion that is a loop: it holds a while (or several that do not read each other) whose steps
// are kernels already, and becomes one kernel for all steps.
bool is_loop_fusion(const Computation& computation);

// The leaf of `loop`'s state goes round unchanged.
bool goes_round(const Instr* loop, int64_t leaf);

}  // namespace heddle::hlo
