// Private to schedule: fusions with several products, as a chain (chain.h).
#pragma once

#include "schedule/stage_names.h"

namespace heddle::schedule {

// Codes: those of match_chain; `chain-residence` (the values between the products do not fit),
// `gemm-epilogue`.
PlacedFusion place_chain(StageGraph graph, const target::Target& target);

}  // namespace heddle::schedule
