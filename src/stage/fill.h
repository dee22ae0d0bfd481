// Private to stage: one stage from its instruction. No: with the code of can_stage, or
// `unknown-map`.
#pragma once

#include <unordered_map>

#include "stage/stage_graph.h"

namespace heddle::stage {

// Of the instructions that have one already.
using Stages = std::unordered_map<const hlo::Instr*, StageId>;

Decision fill(const Members& members, const Stages& stages, bool scans, const hlo::Instr* instr,
              Stage* stage);
// Of an update in place (hlo/in_place.h): the elements of its box alone.
Decision fill_box(const Members& members, const Stages& stages, const hlo::Instr* update,
                  Stage* stage);
// A copy of it, which is an input or has a stage.
Decision fill_copy(const Members& members, const Stages& stages, const hlo::Instr* value,
                   Stage* stage);
// Operand `number` of a concatenation, `start` elements behind its beginning (parts.h).
Decision fill_part(const Members& members, const Stages& stages, const hlo::Instr* joined,
                   size_t number, int64_t start, Stage* stage);

}  // namespace heddle::stage
