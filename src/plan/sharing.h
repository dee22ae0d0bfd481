// Which values must lie on the memory of which others: a box is put into the array that it is put
// into, the next state of a loop lies where the state lies, the results of branches where the
// branch's result lies.
//
// Correct first: a copy goes into memory that is free to be overwritten. It is left out where the
// value itself may be overwritten (everybody else who reads it can run before, and then does), or
// can be made in its place at once. A next state that is made while the old one is still read is
// made in a buffer of its own and exchanged with it (Node::swapped).
#pragma once

#include "plan/flow.h"

namespace heddle::plan {

// Sets Storage::home, Storage::alone and Node::swapped; adds copies and edges. Updates of an input
// in the entry are left as they are: finish_updates() sees to them when outputs have their places.
void share_memory(Flow& flow);

// Updates of an input which is not overwritten by the output that they make get a copy.
void finish_updates(Flow& flow);

// Whose memory it is by Storage::home: the end of the chain.
StorageId home_of(const Flow& flow, StorageId id);

}  // namespace heddle::plan
