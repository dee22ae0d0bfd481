// place: turns a kernel's members into a stage graph with a legal schedule, or refuses with a
// reason. Both the explorer (fuse) and the code generator (stitch) call it (docs/architecture.md).
#pragma once

#include "schedule/stage_names.h"
#include "target/target.h"

namespace heddle::schedule {

// Codes: those of can_stage, stage::build_stage_graph, place_values and place_chain;
// `unmatched-output` (outputs without common loops), `gemm-epilogue` (a map after a dot does not
// follow its tiles), `one-task` (all work would fall to one task).
// `fast_forms`: false under --numerics=strict.
// `attempts`: every strategy that was tried (strategies.def), in order.
struct Attempt {
  std::string_view strategy;
  Decision decision = Decision::yes();
  double ns = 0;  // by cost::latency, if legal and priced
};
std::string to_string(const std::vector<Attempt>& attempts);  // one line each
PlacedFusion place(const stage::Members& members, const target::Target& target,
                   bool fast_forms = true, std::vector<Attempt>* attempts = nullptr);

}  // namespace heddle::schedule
