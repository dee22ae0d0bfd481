// SmoothQuant (Xiao et al., 2022): activation channels that are much larger than the others use up
// its 8 bits; they are divided by factors, and the next weights multiplied.
#pragma once

#include "quantize/rewrite.h"

namespace heddle::quantize {

// Statistics of an activation's channels.
struct Channels {
  std::vector<double> most, power;  // by channel: the largest |x|, the mean of x²
  double rounding = 0;              // mean squared error of 8 bits with the current parameters
};

struct Smoothing {
  double exponent = 0;      // 0: unchanged
  double gain = 0;          // dB by which the layer's error falls, predicted
  bool unfoldable = false;  // would gain, but the factors cannot be folded
};

// If the predicted error of the products that read a value falls by at least half, channel j is
// divided by max|x_j|^a / max|w_j|^(1-a), w_j over all these products, in the constants that
// compute the value (fold.h). `exponent`: a, in (0, 1); no value: the best of 0.25, 0.5, 0.75.
// Returns one entry per layer; the changed initialisers are in plan->values.
Result<std::vector<Smoothing>> smooth(const import::OnnxEdit& model,
                                      const std::vector<Layer>& layers,
                                      const std::map<std::string, Channels>& channels,
                                      std::optional<double> exponent, Plan* plan);

}  // namespace heddle::quantize
