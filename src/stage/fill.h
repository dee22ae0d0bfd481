// Private to stage: builds one stage from its instruction. Refusals have a code of can_stage, or
// `unknown-map`.
#pragma once

#include <unordered_map>

#include "stage/stage_graph.h"

namespace heddle::stage {

// The stages of instructions that have one already.
using Stages = std::unordered_map<const hlo::Instr*, StageId>;

Decision fill(const Members& members, const Stages& stages, bool scans, const hlo::Instr* instr,
              Stage* stage);
// For an in-place update (hlo/in_place.h): only the elements that it writes.
Decision fill_box(const Members& members, const Stages& stages, const hlo::Instr* update,
                  Stage* stage);
// A copy of `value`, which is an input or has a stage.
Decision fill_copy(const Members& members, const Stages& stages, const hlo::Instr* value,
                   Stage* stage);
// Operand `number` of a concatenation, which begins at `start` in the joined dimension (parts.h).
Decision fill_part(const Members& members, const Stages& stages, const hlo::Instr* joined,
                   size_t number, int64_t start, Stage* stage);

}  // namespace heddle::stage
