// Where factors go that a value is divided by, channel by channel, without another operator: into
// the constants of what makes it.
#pragma once

#include "quantize/layers.h"

namespace heddle::quantize {

// A constant to be divided along `axis`; or multiplied, where it divides.
struct FoldPlace {
  std::string initializer;
  int64_t axis = 0;
  bool multiply = false;
};

// Through sums, products, quotients and what is positively homogeneous, up to the scale and bias of
// a normalisation, constants of one number a channel, or the output columns of a product. Nothing:
// something else reads what would change, or it goes on to what is not of these. The value's own
// readers are the caller's to judge. `channels`: its last dimension.
std::optional<std::vector<FoldPlace>> places_to_divide(const import::OnnxEdit& model,
                                                       const Readers& readers,
                                                       const std::string& value, int64_t channels);

// An f32 initialiser that one node reads, once, and no nested graph: it may become another.
bool is_own(const import::OnnxEdit& model, const Readers& readers, const std::string& name);

}  // namespace heddle::quantize
