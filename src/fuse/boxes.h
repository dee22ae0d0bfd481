// Private to fuse: boxes that kernels put where they belong.
#pragma once

#include <vector>

#include "fuse/groups.h"
#include "fuse/refusal.h"

namespace heddle::fuse {

// Behind the cover: an update (is_update()) whose box a fusion makes becomes an output of that
// fusion, which stores the box in the array (hlo/in_place.h): no command of its own, and no box in
// memory. Where the box begins is computed inside if it is scalar arithmetic. An update whose box
// comes from elsewhere becomes a fusion where a kernel says where it begins. Refusals: `once`,
// `in-place-read` (the kernel reads the array, or somebody behind it), `cycle`, `update-cost`,
// those of place().
bool put_boxes_in_place(hlo::Module* module, const target::Target& target,
                        std::vector<Refusal>* refusals);

// What the fusion puts boxes into comes from outside, and nobody else reads it.
bool has_own_arrays(const Instr* fusion);
// One of them reads what the other one writes over: an array that it puts a box into, or a donated
// one whose memory a result takes, unless the reader leads to that. Side by side they need a copy.
bool writes_over_what_is_read(const std::vector<Instr*>& one, const std::vector<Instr*>& other);

}  // namespace heddle::fuse
