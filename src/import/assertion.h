// Expectations of a StableHLO test about the values that it computes (operations of the `check`
// dialect).
#pragma once

#include <cstdint>
#include <string>

#include "tensor/literal.h"

namespace heddle::import {

// Outputs `got` and `want` of the module must agree.
struct Assertion {
  enum class Kind : uint8_t {
    equal,         // bit for bit; -0 is +0 and NaN is NaN
    almost_equal,  // each difference at most `tolerance`
    close          // each distance, in representable numbers, within [least_ulp, most_ulp]
  };
  Kind kind = Kind::equal;
  size_t got = 0, want = 0;  // numbers of outputs
  double tolerance = 1e-3;
  uint64_t least_ulp = 0, most_ulp = 3;
  std::string name;  // "check.expect_eq at 12:5"
};

// A one-line description of the failure; empty: the assertion holds.
std::string failure_of(const Assertion& assertion, const tensor::Literal& got,
                       const tensor::Literal& want);

}  // namespace heddle::import
