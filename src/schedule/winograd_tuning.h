// Tuning of Winograd's algorithm against the direct form of a convolution: the records worth
// measuring, and the key under which the best one is kept (tuning.h does this for products).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "schedule/winograd.h"
#include "stage/records.h"

namespace heddle::schedule {

// At most `most` records worth measuring, of the forms that are accurate enough, by predicted time.
std::vector<Winograd> winograd_candidates(const WinogradShape& shape, const target::Target& target,
                                          size_t most);
// The key of a convolution: extents and padding, whether its filter is transformed or not. Its
// record is a Winograd, or kDirectRecord.
std::string winograd_key(const WinogradShape& shape);
inline constexpr std::string_view kDirectRecord = "direct";

struct TunedWinograd {
  bool direct = false;
  Winograd record;  // unless direct
};
// The record kept for a key, if it can be used for this shape and target (with panels of `nv`
// vectors; 0: any) and is accurate enough.
std::optional<TunedWinograd> tuned_winograd(const std::string& key, const WinogradShape& shape,
                                            int nv, const target::Target& target);

}  // namespace heddle::schedule
