// How FusionStitching's search (explore.h) goes about a computation, and what it found.
#pragma once

#include <cstdint>

namespace heddle::fuse {

// What says how long a kernel takes. `calls`: every kernel the same, so that only their number
// counts; the delta evaluator (cost/delta.h) knows no schedule; the latency evaluator
// (cost/latency.h) asks for one.
enum class Pricing { calls, delta, latency };

// The defaults are the published ones. The others are there to be measured (row F29).
struct SearchOptions {
  int top = 3;            // patterns kept for a vertex
  int beam = 3;           // plans kept while a cover is made
  int most_members = 48;  // of a pattern that is searched; what is offered may be larger
  bool remote = true;     // groups without an edge between them may be packed
  Pricing patterns = Pricing::delta;  // of patterns, while they are made
  Pricing covers = Pricing::latency;  // of finished covers
  int refinements = 128;  // schedules asked for while the cover is moved by small steps (refine.h)
};

// Of all computations of a module together; nanoseconds by the latency evaluator, bytes of
// temporaries alive at once, of the kernels that the search may change. `basic`: as they were.
struct SearchReport {
  double ns = 0, basic_ns = 0;
  int64_t peak_bytes = 0, basic_peak_bytes = 0;
  int64_t kernels = 0, basic_kernels = 0;
  int64_t placements = 0, unions = 0;  // the work it took
};

}  // namespace heddle::fuse
