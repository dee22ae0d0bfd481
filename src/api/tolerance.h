// How far a compiled result may be off, derived from a module: from the element types and the
// reductions on the way to each output.
//
// Along the longest way to an output two things are added up: the roundings of elementwise
// operators, in units of the result (linear), and the variance of what sums and cancellation add
// (quadratic: roundings being independent, n of them add up to hardly ever more than 4 sqrt(n) of
// one; tensor/compare.h). A chaotic model can still exceed it; then measured_tolerance decides.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "hlo/module.h"
#include "interp/disturb.h"
#include "tensor/compare.h"
#include "tensor/literal.h"

namespace heddle::api {

// One a leaf of the entry's root; integers and pred: zero.
std::vector<tensor::Tolerance> derive_tolerances(const hlo::Module& module);

// What one evaluation of an instruction rounds, by the same rules: for
// interp::Options::disturbance. The module stays alive and as it is.
std::function<interp::Disturbance::Amounts(const hlo::Instr&)> rounding_amounts(
    const hlo::Module& module);

// `derived`, widened by how far the reference itself moves: `plain` is one output of the
// interpreter, `others` the same with other arithmetic (second_reference.h). Eight times what the
// worst element moves, in relation to it or to 2^-10 of the largest element; elements that move by
// more than that scale add to the absolute tolerance.
tensor::Tolerance measured_tolerance(const tensor::Tolerance& derived, const tensor::Literal& plain,
                                     std::span<const tensor::Literal> others);

}  // namespace heddle::api
