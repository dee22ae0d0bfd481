// Which values must share memory: a dynamic-update-slice is done in place in its array, a loop's
// next state is in the state's memory, the results of branches are in the memory of the branch's
// result.
//
// Correct first: a copy goes into memory that may be overwritten. It is omitted if the value itself
// may be overwritten (all its other readers can run earlier, and edges then make them), or can be
// computed directly into its place. A next state that is computed while the old one is still read
// gets a buffer of its own, which is swapped with the state's (Node::swapped).
#pragma once

#include "plan/flow.h"

namespace heddle::plan {

// Sets Storage::home, Storage::alone and Node::swapped; adds copies and edges. Updates of an input
// in the entry are left unchanged for finish_updates(), when outputs have their places.
void share_memory(Flow& flow);

// Adds a copy for updates of an input that is not overwritten by their output.
void finish_updates(Flow& flow);

// The storage whose memory it uses: the end of the chain of Storage::home.
StorageId home_of(const Flow& flow, StorageId id);

}  // namespace heddle::plan
