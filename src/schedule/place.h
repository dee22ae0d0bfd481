// place: a kernel's members become a stage graph with a legal schedule, or is refused with a
// reason. The explorer (fuse) and the code generator (stitch) ask this one function
// (docs/architecture.md).
#pragma once

#include "schedule/stage_names.h"
#include "target/target.h"

namespace heddle::schedule {

// Codes: those of can_stage, stage::build_stage_graph and place_values; `unmatched-output` (outputs
// without common loops), `gemm-epilogue` (a map behind a dot does not follow its tiles),
// `one-task` (all work would fall to one task), those of place_chain.
// `fast_forms`: false under --numerics=strict.
// `attempts`: every strategy that was asked (strategies.def), in order.
struct Attempt {
  std::string_view strategy;
  Decision decision = Decision::yes();
  double ns = 0;  // by cost::latency, of legal ones that are priced
};
std::string to_string(const std::vector<Attempt>& attempts);  // a line each
PlacedFusion place(const stage::Members& members, const target::Target& target,
                   bool fast_forms = true, std::vector<Attempt>* attempts = nullptr);

}  // namespace heddle::schedule
