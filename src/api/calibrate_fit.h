// Private to api: from measured times to a target's figures, and how well its predictions fit.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "api/calibrate.h"

namespace heddle::api {

// Three digits, as target files have them; 0 for what is not positive.
double three_digits(double value);

// One command, of two programs of which the second has `more` of them. At least 1.
double command_ns(double few_ns, double many_ns, int64_t more);

// What the cores cost beyond the work, of programs of `kernels` kernels that one core and `cores`
// of them compute. Between 50 ns and 50 us: beyond that the measurement was disturbed.
double fork_ns(double alone_ns, double shared_ns, int64_t kernels, int cores);

// Bytes read and written a nanosecond by a copy of `elems` floats.
double copy_bytes_per_ns(int64_t elems, double ns, double command_ns);

// One core reads an array of `bytes`; a copy also writes one.
struct TransferTime {
  int64_t bytes = 0;
  bool is_copy = true;
  double ns = 0;
};
// Makes the last cache as small as these times say it is for us (cost/rates.h), with the rates that
// stand in `target`, but not smaller than arrays of `least` bytes want. Without times it stays.
void fit_last_cache(target::Target* target, std::span<const TransferTime> times, int64_t least);

// `measured`: cycles of a vector with what stands around the operator; `bare`: the same with a
// negation in its place, which takes as long as an addition. Faster forms stand in larger patterns
// only: one keeps its part of the whole.
void set_cycles(target::Target* target, const std::string& key, double measured, double bare);

// exp(mean |log(predicted / measured)|) - 1, and the largest of them. 0 without fits.
struct FitErrors {
  double geomean = 0, worst = 0;
};
FitErrors errors_of(std::span<const CalibrateFit> fits);

}  // namespace heddle::api
