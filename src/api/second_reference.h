// Evaluates a result that differs from the reference more closely: is it wrong, or is the reference
// itself that uncertain? Two measures, the cheap one first:
//   f64        the reference in f64 arithmetic, if types are narrower: the loss by its own
//              roundings;
//   roundings  the reference with every rounding disturbed at random within its bound
//              (interp/disturb.h), several times: the conditioning of the model, also in f64,
//              and where results cancel to 0.
// A wrong result stays wrong: the tolerance covers only differences between correct programs.
#pragma once

#include <optional>
#include <vector>

#include "api/session.h"
#include "tensor/compare.h"
#include "tensor/literal.h"

namespace heddle::api {

enum class Measure { f64, roundings };
inline constexpr Measure kMeasures[] = {Measure::f64, Measure::roundings};
// "f64 arithmetic moves the reference", to complete a sentence on the tolerance.
const char* measure_text(Measure measure);

class SecondReference {
 public:
  // `inputs`: bytes of the model's inputs; they and the model must outlive this, and the model must
  // have its graph.
  SecondReference(const Model& model, std::vector<const void*> inputs)
      : model_(model), inputs_(std::move(inputs)) {}

  // The tolerance of output `number`, whose reference is `want`, widened by the measured
  // uncertainty (measured_tolerance). Evaluated at the first call. Errors: those of the
  // interpreter.
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
