// Private to schedule: a reduction as several stages, which a cut graph (phases.h) is made of.
#pragma once

#include <optional>

#include "stage/stage_graph.h"

namespace heddle::stage {

// A dimension in strips, the last of which may be shorter.
struct Strips {
  int64_t extent = 0, strip = 0, parts = 0;
  bool is_ragged() const { return parts * strip != extent; }
};

// The element that a combine of one operator does not notice, in `type`; none: another combine.
std::optional<uint64_t> neutral_bits(const Stage& stage, Type type);
// What partial results have: f32 for f16 and bf16.
Type partial_type(Type type);
// The reduction of one strip: out digit 0 is the strip, its own rest stands where `digit` stood.
Stage partial_sum(Stage stage, int digit, const Strips& strips, Type type, uint64_t neutral);
// All but reduced digit `digit` is reduced: one value for each of its elements, out digit 0.
Stage row_sum(Stage stage, int digit, Type type, uint64_t neutral);
// Puts parts together: `rest` is the digit that is left to reduce. Its one load has no source yet.
Stage combining(const Stage& stage, Type type, const Digit& rest);

// A reduce of one value whose start is the neutral element of its operator.
bool starts_neutral(const Stage& stage);

}  // namespace heddle::stage
