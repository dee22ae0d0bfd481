// Private to schedule: the loops over tasks around rows (place_rows.cc).
#pragma once

#include <vector>

#include "schedule/stage_names.h"
#include "target/target.h"

namespace heddle::schedule {

struct TaskDigit {
  int digit;  // of the anchor
  int64_t by = 1;
};

// Stages whose out digit 0 is a strip (cascade.cc).
using Striped = std::vector<StageId>;
bool is_striped(const Striped& striped, StageId stage);

bool is_output(const Stage& stage);
// The stage whose loops the others follow: the largest output, of equal ones the last.
size_t choose_anchor(const StageGraph& graph);
std::vector<Row> one_row_a_stage(const StageGraph& graph);
// Parallel loops over the given digits of the anchor, outermost first, around `rows`; striped rows
// are placed in a loop over their strips.
Schedule build_schedule(const StageGraph& graph, size_t anchor, const std::vector<TaskDigit>& tasks,
                        std::vector<Row> rows, const Striped& striped, int lanes,
                        const target::Target& target);
// Whether a digit may become a task loop inside `tasks`: almost nothing is computed twice for it,
// and every output has a corresponding digit.
bool may_be_task(const StageGraph& graph, size_t anchor, std::vector<TaskDigit> tasks, int digit,
                 const Striped& striped, const target::Target& target);

}  // namespace heddle::schedule
