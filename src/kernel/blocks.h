// Groups with threads: what a GPU runs. A task of such a group (block_threads = T > 1, a multiple
// of 32) is a block of T / 32 subgroups of 32 lanes.
//
// - Every subgroup runs the group's body. `subgroup w N { … }` gives iteration w to subgroup
//   w mod (T / 32). Subgroups run independently except at a barrier, where all must arrive.
// - A `thread` loop outside a subgroup loop has T lanes: iteration l belongs to thread l mod T of
//   the block. Inside a subgroup loop it has 32, those of the subgroup. There are no vector loops.
// - Statements outside thread loops are uniform: every subgroup that reaches them runs them. A
//   uniform store to memory is done by lane 0 of each of these, so if several reach it, they race.
// - A register with 32 or T lanes is private to a thread, one without lanes to a subgroup.
// - `barrier` outside subgroup loops is the block's: all subgroups meet there, under the same loops
//   and branches. Inside one it is the subgroup's: stores of its lanes before the barrier are
//   visible to its lanes after it. Without it not even the next statement sees them in other lanes.
// - shuffle_xor reaches the lanes of its subgroup; lane() is for thread loops of 32 lanes, or
//   outside of them for values of such loops.
// - An async_copy belongs to the thread that began it, as does the wait for it; other threads see
//   the copied data after a barrier that follows that wait.
//
// Invariant 15 of verify(): the rules on loops and lanes above.
#pragma once

#include "kernel/kernel.h"

namespace heddle::kernel {

inline bool has_threads(const Group& group) { return group.block_threads > 1; }
// Whether a statement of such a group contains a barrier of the whole block.
bool meets_block(const Stmt& stmt);

}  // namespace heddle::kernel
