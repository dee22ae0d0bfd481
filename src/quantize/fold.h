// Finds constants into which factors can be folded that divide a value channel by channel, without
// an additional operator.
#pragma once

#include "quantize/layers.h"

namespace heddle::quantize {

// A constant to divide along `axis`; or to multiply, if it is a divisor.
struct FoldPlace {
  std::string initializer;
  int64_t axis = 0;
  bool multiply = false;
};

// Searches backwards through sums, products, quotients and positively homogeneous operators, up to
// the scale and bias of a normalisation, constants with one number per channel, or the output
// columns of a product. No value: another node reads a value that would change, or some other
// operator computes it. The caller must check the value's own readers. `channels`: extent of its
// last dimension.
std::optional<std::vector<FoldPlace>> places_to_divide(const import::OnnxEdit& model,
                                                       const Readers& readers,
                                                       const std::string& value, int64_t channels);

// Whether it is an f32 initialiser that exactly one node reads, once, and no nested graph: it may
// be changed.
bool is_own(const import::OnnxEdit& model, const Readers& readers, const std::string& name);

}  // namespace heddle::quantize
