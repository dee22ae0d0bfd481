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

// Codes: `no-dimension` (nothing to cut along), `no-partials` (a reduction along it is not one that
// can be put together from parts).
CutGraph cut_graph(const StageGraph& graph, const target::Target& target);

// How well lanes along `digit` suit the loads: contiguous ones count for it, strided ones against.
int contiguity(const Stage& stage, int digit);
// The first digit that suits them best; -1: none does.
int contiguous_digit(const Stage& stage);

// Too few tasks for what a fusion with reductions has to do.
bool has_few_tasks(const PlacedFusion& placed, const target::Target& target);

// The stage is accumulated from one iteration to the next of a serial loop around its row.
bool is_swept(const PlacedFusion& placed, size_t stage);

}  // namespace heddle::schedule
