// Several phases of one kernel (stages.md §2 split reductions, §4.3, §4.4). One dimension is cut
// into strips, one task each. Reductions along it become partial results per strip, which later
// phases combine; stages that have the dimension are computed strip by strip; stages without it
// (combined sums and maps of them) are computed by each reader, or in a separate phase if that is
// too much work.
#pragma once

#include <vector>

#include "schedule/stage_names.h"
#include "stage/partials.h"

namespace heddle::schedule {

// A stage in the cut graph. The graph has every stage once for each group that computes it.
struct Cut {
  enum class Kind : uint8_t {
    along,    // has the dimension among its out digits: one strip per task
    partial,  // reduces a strip of it: out digit 0 is the task
    whole,    // does not have the dimension
  };
  Kind kind = Kind::whole;
  int digit = -1;  // along: the dimension's digit; partial: the red digit within the strip
};

struct CutGroup {
  std::vector<StageId> stages;  // in the graph's order
  bool strips = false;          // its tasks are strips; else all its stages are `whole`
};

struct CutGraph {
  StageGraph graph;
  std::vector<Cut> cuts;                      // by stage
  std::vector<std::vector<CutGroup>> phases;  // groups of each phase
  stage::Strips strips;
  Decision decision = Decision::yes();
};

// What to cut, for callers that compare several choices: a digit of the largest stage, and about
// how many parts; -1 and 0: cut_graph() chooses.
struct CutChoice {
  int digit = -1;
  int64_t parts = 0;
};
// Codes: `no-dimension` (nothing to cut along), `no-partials` (a reduction along it cannot be
// combined from partial results).
CutGraph cut_graph(const StageGraph& graph, const target::Target& target, CutChoice choice = {});
// The stage to which CutChoice::digit refers.
size_t largest_stage(const StageGraph& graph);

// The tasks of stages that combine partial results: strips of the last digit; strips of the last
// digit for each index of the others; or one task per result, with the lanes along the parts, if
// there are many.
enum class Heads : uint8_t { strips, rows, results };
PlacedFusion place_cut(CutGraph cut, const target::Target& target, Heads heads = Heads::strips);

// The graph with sums of exp(x - max x) over long rows split into strips (cascade.cc). `striped`:
// the stages whose out digit 0 is the strip, placed in a loop over it; empty if the graph is
// unchanged. Only exponentials already marked as fast (mark_fast_forms) are affected: the order of
// summation changes, each summand is rounded once more, and a named rewrite says so.
struct Cascade {
  StageGraph graph;
  std::vector<StageId> striped;
};
Cascade cascade(const StageGraph& graph, const target::Target& target);

// Whether a fusion with reductions has too few tasks for its work.
bool has_few_tasks(const PlacedFusion& placed, const target::Target& target);

}  // namespace heddle::schedule
