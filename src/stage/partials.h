// Private to stage and schedule: splits a reduction into several stages, for a cut graph
// (phases.h).
#pragma once

#include <optional>

#include "stage/stage_graph.h"

namespace heddle::stage {

// A dimension in strips, the last of which may be shorter.
struct Strips {
  int64_t extent = 0, strip = 0, parts = 0;
  bool is_ragged() const { return parts * strip != extent; }
};

// The neutral element of a combine of one operator, in `type`; none: another combine.
std::optional<uint64_t> neutral_bits(const Stage& stage, Type type);
// The type of partial results: f32 for f16 and bf16.
Type partial_type(Type type);
// The reduction of one strip: out digit 0 is the strip, and the position within it takes the place
// of `digit`.
Stage partial_sum(Stage stage, int digit, const Strips& strips, Type type, uint64_t neutral);
// Reduces all red digits except `digit`, which becomes out digit 0.
Stage row_sum(Stage stage, int digit, Type type, uint64_t neutral);
// Combines partial results: `rest` is the digit that is left to reduce. Its one load has no source
// yet.
Stage combining(const Stage& stage, Type type, const Digit& rest);

// Whether it is a reduce of one value that starts from the neutral element of its operator.
bool starts_neutral(const Stage& stage);

}  // namespace heddle::stage
