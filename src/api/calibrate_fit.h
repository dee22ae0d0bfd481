// Private to api: computes a target's figures from measured times, and how well its predictions
// fit.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "api/calibrate.h"

namespace heddle::api {

// Rounds to three digits, as in target files; 0 for values that are not positive.
double three_digits(double value);

// Time of one command, from two programs of which the second has `more` of them. At least 1.
double command_ns(double few_ns, double many_ns, int64_t more);

// Fork and join time of a launch, from the times of programs of `kernels` kernels on one core and
// on `cores` cores. Between 50 ns and 50 us: other values mean that the measurement was disturbed.
double fork_ns(double alone_ns, double shared_ns, int64_t kernels, int cores);

// Bytes read and written per nanosecond by a copy of `elems` floats.
double copy_bytes_per_ns(int64_t elems, double ns, double command_ns);

// One core reads an array of `bytes`; a copy also writes one.
struct TransferTime {
  int64_t bytes = 0;
  bool is_copy = true;
  double ns = 0;
};
// Reduces the last cache's size to the share that these times imply (cost/rates.h), given the rates
// in `target`, but not below what arrays of `least` bytes need. Without times it is unchanged.
void fit_last_cache(target::Target* target, std::span<const TransferTime> times, int64_t least);

// `measured`: cycles per vector of the operator and its surroundings; `bare`: the same with a
// negation instead, which takes as long as an addition. Faster variants exist only in larger
// patterns: they keep their ratio.
void set_cycles(target::Target* target, const std::string& key, double measured, double bare);

// Products of each pair of types that the target multiplies by an instruction of its own
// (kernel/mma.def), f32 first; with `tiles` by the instruction on tiles of that name, else by
// vectors, named by the type of the right side as in Target::mac_rate.
struct MeasuredProduct {
  std::string name;
  tensor::Type a, b, sums;
  bool tiles = false;
};
std::vector<MeasuredProduct> measured_products(const target::Target& target);
// Operations per nanosecond of one core, by these names: the fma instructions of a cycle from f32,
// which must be among them, and all rates relative to it.
void set_rates(target::Target* target, const std::map<std::string, double>& flops_per_ns);

// exp(mean |log(predicted / measured)|) - 1, and the largest such error. 0 without fits.
struct FitErrors {
  double geomean = 0, worst = 0;
};
FitErrors errors_of(std::span<const CalibrateFit> fits);

}  // namespace heddle::api
