// The delta evaluator (FusionStitching, formula 3): a quick and rough estimate of what a fusion
// saves. Time saved = traffic + calls - penalty; all three are differences of kernel_ns() between
// separate kernels and the fused one. No schedule is needed.
#pragma once

#include "cost/rates.h"
#include "hlo/module.h"

namespace heddle::cost {

// A kernel as the delta evaluator sees it. Add operators and arrays, then call kernel_ns().
struct Work {
  double cycles = 0;        // vector cycles of all operators
  double flops = 0;         // elements computed
  double elems = 0;         // of the widest operator: the parallelism
  double bytes = 0;         // of arrays read and written outside of the kernel
  double moved_one_ns = 0;  // the time to move these by one core, and by all
  double moved_all_ns = 0;
  double scratch_bytes = 0;  // of the operator that needs most, without live ranges
};

class DeltaEvaluator {
 public:
  explicit DeltaEvaluator(const target::Target& target) : target_(target) {}

  void add_operator(const hlo::Instr& instr, Work* work) const;
  // An array that the kernel reads once from outside of it, or writes once.
  void add_array(double bytes, Work* work) const;
  // One array's share of the time to move data, in a kernel on all cores.
  double array_ns(double bytes) const;
  double kernel_ns(const Work& work) const;

 private:
  double occupancy(const Work& work) const;
  const target::Target& target_;
};

// The bytes of a shape, with all leaves of a tuple.
double bytes_of(const tensor::Shape& shape);

}  // namespace heddle::cost
