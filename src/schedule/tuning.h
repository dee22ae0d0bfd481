// Tuning of the GEMM family (docs/gemm.md): the records worth measuring for a shape, and the key
// under which the best one is kept. Records are stored with the target (Target::records);
// choose_gemm() prefers them to its static rule.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "schedule/gemm.h"
#include "stage/records.h"

namespace heddle::schedule {

// Everything compiled into a kernel that decides its time, as one line. Products that differ only
// in the digits of their rows share a key.
std::string gemm_key(const GemmShape& shape, const Stage& stage, int64_t a_bytes);
std::string gemm_key(int64_t m, int64_t n, int64_t k);

// The record kept for a key, if it can be used: lanes of the target, registers for the tile, and
// panels of `nv` vectors if B is already packed (0: any).
// Making keys takes time: do not call this without records (Target::records).
std::optional<Gemm> tuned_gemm(const std::string& key, int nv, const target::Target& target);
bool fits_registers(const Gemm& gemm, const target::Target& target);

// At most `most` records worth measuring: the static rule's first, then others by predicted time.
// `any_panels`: B, if packed, can be repacked for each. `considered`: if not null, gets the number
// of records from which they were chosen.
std::vector<Gemm> gemm_candidates(const GemmShape& shape, const Stage& stage, int64_t a_bytes,
                                  const target::Target& target, bool any_panels, size_t most,
                                  int64_t* considered = nullptr);

}  // namespace heddle::schedule
