// Options and report of FusionStitching's search (explore.h).
#pragma once

#include <cstdint>

namespace heddle::fuse {

// How the time of a kernel is predicted. `calls`: all kernels are equal, so that only their number
// counts; `delta`: without a schedule (cost/delta.h); `latency`: from a schedule (cost/latency.h).
enum class Pricing { calls, delta, latency };

// The defaults are the published values; others are for measurements.
struct SearchOptions {
  bool search = true;     // else the basic fusion stays
  int top = 3;            // patterns kept for a vertex
  int beam = 3;           // plans kept while a cover is made
  int most_members = 48;  // of a pattern that is searched; offered ones may be larger
  bool remote = true;  // groups without an edge between them may be packed (never on a CPU: tables
                       // and composites do it, with separate loops)
  Pricing patterns = Pricing::delta;  // of patterns, while they are made
  Pricing covers = Pricing::latency;  // of finished covers
  // A cover replaces a region of the basic fusion if it is faster by this factor, and by this many
  // nanoseconds: the evaluators cannot tell smaller differences.
  double least_gain = 1.03, least_gain_ns = 100;
  // If it has more kernels, the gain must also exceed the error of the latency evaluator (its
  // geometric mean, as stated by `heddle calibrate`), and this many nanoseconds for every
  // additional kernel: calls and passes over memory are certain, the gain is not. (The backward of
  // a gelu, 13,000 elements: three kernels instead of one were predicted to gain 8.5 us and lost
  // 0.9.)
  double latency_error = 0.28, least_gain_ns_by_kernel = 10'000;
  // In a region's graph of up to this many operators every cover is tried, if there are not too
  // many possible kernels; 0: never.
  int most_enumerated = 12;
  int refinements = 128;  // schedules requested while the cover is refined (refine.h)
};

// Whether a cover may replace one that has `more` kernels fewer.
inline bool may_add_kernels(double found_ns, double instead_ns, int64_t more,
                            const SearchOptions& options) {
  const double gain = instead_ns - found_ns;
  return more <= 0 || (gain > options.latency_error * instead_ns &&
                       gain > options.least_gain_ns_by_kernel * static_cast<double>(more));
}

// Totals over all computations of a module, for the kernels that the search may change: nanoseconds
// by the latency evaluator, bytes of temporaries live at once. `basic`: before the search.
struct SearchReport {
  double ns = 0, basic_ns = 0;
  int64_t peak_bytes = 0, basic_peak_bytes = 0;
  int64_t kernels = 0, basic_kernels = 0;
  int64_t placements = 0, unions = 0;  // the work it took
};

}  // namespace heddle::fuse
