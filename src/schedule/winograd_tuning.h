// Tuning of Winograd's algorithm beside the direct form of a convolution: what is worth measuring,
// and the key under which the best is kept (tuning.h has that of products).
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
// The convolution by extents and padding, whether its filter is transformed or not. What is kept
// there is a Winograd, or kDirectRecord.
std::string winograd_key(const WinogradShape& shape);
inline constexpr std::string_view kDirectRecord = "direct";

struct TunedWinograd {
  bool direct = false;
  Winograd record;  // unless direct
};
// What is kept, where it can be used for this shape and target (with panels of `nv` vectors; 0:
// any) and is accurate enough.
std::optional<TunedWinograd> tuned_winograd(const std::string& key, const WinogradShape& shape,
                                            int nv, const target::Target& target);

}  // namespace heddle::schedule
