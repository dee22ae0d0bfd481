// Derives the tolerance of compiled results from a module: from the element types and the
// reductions on the path to each output.
//
// Two quantities are added up along the longest path to an output: roundings of elementwise
// operators, in units of the result (linear), and the variance due to sums and cancellation
// (quadratic: roundings are independent, so n of them rarely exceed 4 sqrt(n) of one;
// tensor/compare.h). A chaotic model can still exceed it; then measured_tolerance decides.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "hlo/module.h"
#include "interp/disturb.h"
#include "tensor/compare.h"
#include "tensor/literal.h"

namespace heddle::api {

// One per leaf of the entry's root; integers and pred: zero.
std::vector<tensor::Tolerance> derive_tolerances(const hlo::Module& module);

// The rounding of one evaluation of an instruction, by the same rules: for
// interp::Options::disturbance. The module must outlive it, unchanged.
std::function<interp::Disturbance::Amounts(const hlo::Instr&)> rounding_amounts(
    const hlo::Module& module);

// `derived`, widened by the uncertainty of the reference: `plain` is an output of the interpreter,
// `others` are the same output with other arithmetic (second_reference.h). Eight times the largest
// change of an element, relative to it or to 2^-10 of the largest element; changes larger than that
// scale add to the absolute tolerance.
tensor::Tolerance measured_tolerance(const tensor::Tolerance& derived, const tensor::Literal& plain,
                                     std::span<const tensor::Literal> others);

}  // namespace heddle::api
