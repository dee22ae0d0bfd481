// A second look at a result that differs from the reference: is it wrong, or is the reference's own
// result no more certain than that? Two measures, the cheap one first:
//   f64        the reference in f64 arithmetic, where types are narrower: what its own roundings
//              have lost;
//   roundings  the reference with every rounding moved at random within its bound
//              (interp/disturb.h), several times: how the model is conditioned, also in f64, and
//              where results cancel to nothing.
// A wrong result stays wrong: what is allowed is what right programs may differ by.
#pragma once

#include <optional>
#include <vector>

#include "api/session.h"
#include "tensor/compare.h"
#include "tensor/literal.h"

namespace heddle::api {

enum class Measure { f64, roundings };
inline constexpr Measure kMeasures[] = {Measure::f64, Measure::roundings};
// "f64 arithmetic moves the reference", for the end of a sentence on the tolerance.
const char* measure_text(Measure measure);

class SecondReference {
 public:
  // `inputs`: bytes of the model's inputs; both stay alive, and the model has its graph.
  SecondReference(const Model& model, std::vector<const void*> inputs)
      : model_(model), inputs_(std::move(inputs)) {}

  // The tolerance of output `number`, whose reference is `want`, widened by what the measure shows
  // (measured_tolerance). Evaluated when asked for first. Errors: those of the interpreter.
  Result<tensor::Tolerance> tolerance(Measure measure, size_t number,
                                      const tensor::Tolerance& derived,
                                      const tensor::Literal& want);

 private:
  using Outputs = std::vector<tensor::Literal>;
  Result<Outputs> run(Measure measure, uint64_t seed) const;

  const Model& model_;
  std::vector<const void*> inputs_;
  std::vector<Outputs> f64_, roundings_;
};

}  // namespace heddle::api
