// How far a compiled result may be off, derived from a module: from the element types and the
// reductions on the way to each output.
//
// Along the longest way to an output two things are added up: the roundings of elementwise
// operators, in units of the result (linear), and the variance of what sums and cancellation add
// (quadratic: roundings being independent, n of them add up to hardly ever more than 4 sqrt(n) of
// one; tensor/compare.h). A chaotic model can still exceed it; then measured_tolerance decides.
#pragma once

#include <vector>

#include "hlo/module.h"
#include "tensor/compare.h"
#include "tensor/literal.h"

namespace heddle::api {

// One a leaf of the entry's root; integers and pred: zero.
std::vector<tensor::Tolerance> derive_tolerances(const hlo::Module& module);

// `derived`, widened by how far the reference itself is off: `plain` and `wide` are one output of
// the interpreter without and with wide arithmetic (interp::Options::widen). Eight times what the
// worst element of `plain` has lost, in relation to it or to 2^-10 of the largest element.
tensor::Tolerance measured_tolerance(const tensor::Tolerance& derived, const tensor::Literal& plain,
                                     const tensor::Literal& wide);

}  // namespace heddle::api
