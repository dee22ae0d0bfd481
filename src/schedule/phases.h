// Several phases of one kernel (stages.md §2 split reductions, §4.3, §4.4). One
// dimension is cut into strips, a task each. What is reduced along it becomes partial results of
// the strips, which later phases combine; what follows it is computed strip by strip; what does not
// have it (combined sums and maps of them) is computed by whoever reads it, or in a phase of
// its own where that is too much.
#pragma once

#include <vector>

#include "schedule/stage_names.h"
#include "stage/partials.h"

namespace heddle::schedule {

// A stage in the cut graph. The graph has every stage once for each group that computes it.
struct Cut {
  enum class Kind : uint8_t {
    along,    // has the dimension among its out digits: one strip a task
    partial,  // reduces a strip of it: out digit 0 is the task
    whole,    // has it not
  };
  Kind kind = Kind::whole;
  int digit = -1;  // along: the dimension's digit; partial: that of the strip's rest (a red one)
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

// What to cut, where the caller weighs several: a digit of the largest stage, and about how many
// parts of it; -1 and 0: chosen here.
struct CutChoice {
  int digit = -1;
  int64_t parts = 0;
};
// Codes: `no-dimension` (nothing to cut along), `no-partials` (a reduction along it is not one that
// can be put together from parts).
CutGraph cut_graph(const StageGraph& graph, const target::Target& target, CutChoice choice = {});
// The stage that a choice's digit is one of.
size_t largest_stage(const StageGraph& graph);

// The tasks of what combines partial results: strips of its last digit; strips of its last digit
// for each place of the others; or one a result, with the lanes along the parts, for many of them.
enum class Heads : uint8_t { strips, rows, results };
PlacedFusion place_cut(CutGraph cut, const target::Target& target, Heads heads = Heads::strips);

// The graph with sums of exp(x - max x) of long rows by strips (cascade.cc). `striped`: the stages
// that have the strip as their out digit 0 and stand in a loop over it; empty where the graph is as
// it was. Only exponentials that are fast already (mark_fast_forms) are touched: the sums run in
// another order, each summand is rounded once more, and a named rewrite says so.
struct Cascade {
  StageGraph graph;
  std::vector<StageId> striped;
};
Cascade cascade(const StageGraph& graph, const target::Target& target);

// Too few tasks for what a fusion with reductions has to do.
bool has_few_tasks(const PlacedFusion& placed, const target::Target& target);

}  // namespace heddle::schedule
