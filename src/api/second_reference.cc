#include "api/second_reference.h"

#include "api/host_interp.h"
#include "api/tolerance.h"
#include "hlo/module.h"
#include "interp/disturb.h"
#include "interp/interp.h"

namespace heddle::api {
namespace {

// One run may by chance change an element little; the maximum of three runs is stable.
constexpr uint64_t kRuns = 3;

void add_leaves(const tensor::Literal& value, std::vector<tensor::Literal>& leaves) {
  if (!value.shape().is_tuple()) return leaves.push_back(value);
  for (const tensor::Literal& element : value.elements()) add_leaves(element, leaves);
}

}  // namespace

const char* measure_text(Measure measure) {
  return measure == Measure::f64 ? "the reference itself moves this far in f64 arithmetic"
                                 : "the reference itself moves this far when its roundings change";
}

Result<SecondReference::Outputs> SecondReference::run(Measure measure, uint64_t seed) const {
  HEDDLE_CHECK(model_.module() != nullptr, "{} has no graph", model_.name());
  interp::Options options;
  interp::Disturbance disturbance;
  if (measure == Measure::f64) {
    options.widen = true;
  } else {
    disturbance.amounts = rounding_amounts(*model_.module());
    disturbance.seed = seed;
    options.disturbance = &disturbance;
  }
  HEDDLE_ASSIGN_OR_RETURN(
      const tensor::Literal result,
      interp::evaluate(*model_.module(), view_arguments(*model_.module(), inputs_), options));
  Outputs leaves;
  add_leaves(result, leaves);
  return leaves;
}

Result<tensor::Tolerance> SecondReference::tolerance(Measure measure, size_t number,
                                                     const tensor::Tolerance& derived,
                                                     const tensor::Literal& want) {
  std::vector<Outputs>& runs = measure == Measure::f64 ? f64_ : roundings_;
  const uint64_t wanted = measure == Measure::f64 ? 1 : kRuns;
  while (runs.size() < wanted) {
    HEDDLE_ASSIGN_OR_RETURN(Outputs outputs, run(measure, runs.size() + 1));
    runs.push_back(std::move(outputs));
  }
  std::vector<tensor::Literal> others;
  for (const Outputs& outputs : runs) others.push_back(outputs.at(number));
  return measured_tolerance(derived, want, others);
}

}  // namespace heddle::api
