// What a chain saves: the gate of BOLT. The values between its products are neither
// written nor read again; in return every block of rows passes by all weights, and rows alone make
// tasks. Times are of all cores of the target.
#pragma once

#include <optional>
#include <string>

#include "schedule/placed.h"

namespace heddle::schedule {

// A kernel of the GEMM family: one product, or a chain; or of rows, which may join a chain.
double predicted_ns(const PlacedFusion& placed, const target::Target& target);

// Bytes that are read or written, by all cores, as they lie where so many fit.
double moved_ns(double bytes, const target::Target& target);

// What tuning measured (schedule/tuning.h): a record under the chain's key says `chain` or `apart`.
inline constexpr const char *kChainRecord = "chain", *kApartRecord = "apart";
std::string chain_key(const PlacedFusion& chain);
// Whether to join; none: nothing was measured.
std::optional<bool> tuned_chain(const PlacedFusion& chain, const target::Target& target);

}  // namespace heddle::schedule
