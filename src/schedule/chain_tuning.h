// Tuning records of chains: whether the products are faster in one kernel.
#pragma once

#include <optional>
#include <string>

#include "schedule/stage_names.h"
#include "target/target.h"

namespace heddle::schedule {

// The record under a chain's key (schedule/tuning.h): `chain` (one kernel) or `apart` (separate
// kernels).
inline constexpr const char *kChainRecord = "chain", *kApartRecord = "apart";
std::string chain_key(const PlacedFusion& chain);
// Whether one kernel is faster; nullopt if nothing was measured.
std::optional<bool> tuned_chain(const PlacedFusion& chain, const target::Target& target);

}  // namespace heddle::schedule
