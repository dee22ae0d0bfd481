// SmoothQuant (Xiao et al., 2022): channels of an activation that are much larger than the others
// take its 8 bits for themselves; they are divided by factors, and the next weights multiplied.
#pragma once

#include "quantize/rewrite.h"

namespace heddle::quantize {

// What is known of an activation's channels.
struct Channels {
  std::vector<double> most, power;  // by channel: the largest |x|, the mean of x²
  double rounding = 0;              // mean squared error of its 8 bits as they would be chosen now
};

struct Smoothing {
  double exponent = 0;      // 0: it stayed
  double gain = 0;          // dB that the layer's error falls, as predicted
  bool unfoldable = false;  // it would gain, but nothing takes the factors
};

// Where the predicted error of the products that read a value falls by half at least, channel j
// is divided by max|x_j|^a / max|w_j|^(1-a), w_j over all these products, in the constants of what
// makes the value (fold.h). `exponent`: a, in (0, 1); none: the best of 0.25, 0.5, 0.75. By layer;
// the changed initialisers are in plan->values.
Result<std::vector<Smoothing>> smooth(const import::OnnxEdit& model,
                                      const std::vector<Layer>& layers,
                                      const std::map<std::string, Channels>& channels,
                                      std::optional<double> exponent, Plan* plan);

}  // namespace heddle::quantize
