// How FusionStitching's search (explore.h) goes about a computation, and what it found.
#pragma once

#include <cstdint>

namespace heddle::fuse {

// What says how long a kernel takes. `calls`: every kernel the same, so that only their number
// counts; the delta evaluator (cost/delta.h) knows no schedule; the latency evaluator
// (cost/latency.h) asks for one.
enum class Pricing { calls, delta, latency };

// The defaults are the published ones. The others are there to be measured.
struct SearchOptions {
  bool search = true;     // else what the basic fusion made stays
  int top = 3;            // patterns kept for a vertex
  int beam = 3;           // plans kept while a cover is made
  int most_members = 48;  // of a pattern that is searched; what is offered may be larger
  bool remote = true;     // groups without an edge between them may be packed (on a CPU never:
                          // tables and composites do it, and keep their loops apart)
  Pricing patterns = Pricing::delta;  // of patterns, while they are made
  Pricing covers = Pricing::latency;  // of finished covers
  // What is found takes the place of a region of the basic fusion if it takes so many times less,
  // and so many nanoseconds less: nearer than that the evaluators cannot tell.
  double least_gain = 1.03, least_gain_ns = 100;
  // If it has more kernels, the gain must also be more than the latency evaluator errs (its error
  // in geometric mean, as `heddle calibrate` states it), and than so many nanoseconds for every
  // kernel more: calls and passes over memory are certain, the gain is not. (The backward of a
  // gelu, 13,000 elements: three kernels for one were to gain 8.5 us and lost 0.9.)
  double latency_error = 0.28, least_gain_ns_by_kernel = 10'000;
  // Of a region's graph of so few operators every cover is looked at, if not too many kernels could
  // be made of them; 0: never.
  int most_enumerated = 12;
  int refinements = 128;  // schedules asked for while the cover is moved by small steps (refine.h)
};

// May a cover with `more` kernels more than the one that it replaces take its place?
inline bool may_add_kernels(double found_ns, double instead_ns, int64_t more,
                            const SearchOptions& options) {
  const double gain = instead_ns - found_ns;
  return more <= 0 || (gain > options.latency_error * instead_ns &&
                       gain > options.least_gain_ns_by_kernel * static_cast<double>(more));
}

// Of all computations of a module together; nanoseconds by the latency evaluator, bytes of
// temporaries alive at once, of the kernels that the search may change. `basic`: as they were.
struct SearchReport {
  double ns = 0, basic_ns = 0;
  int64_t peak_bytes = 0, basic_peak_bytes = 0;
  int64_t kernels = 0, basic_kernels = 0;
  int64_t placements = 0, unions = 0;  // the work it took
};

}  // namespace heddle::fuse
