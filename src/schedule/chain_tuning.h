// What tuning measured of chains: whether the products are faster together.
#pragma once

#include <optional>
#include <string>

#include "schedule/stage_names.h"
#include "target/target.h"

namespace heddle::schedule {

// What tuning measured (schedule/tuning.h): a record under the chain's key says `chain` or `apart`.
inline constexpr const char *kChainRecord = "chain", *kApartRecord = "apart";
std::string chain_key(const PlacedFusion& chain);
// Whether to join; none: nothing was measured.
std::optional<bool> tuned_chain(const PlacedFusion& chain, const target::Target& target);

}  // namespace heddle::schedule
