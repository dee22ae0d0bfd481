// Weights that lose less in 8 bits, for the same function.
#pragma once

#include "quantize/rewrite.h"

namespace heddle::quantize {

// Cross-layer equalisation (Nagel et al., "Data-Free Quantization", 2019): where a channel goes from
// one convolution to the next through operators for which f(s·x) = s·f(x), s > 0, its weights are
// divided by s in front and multiplied by s behind, so that both have the same range. Until nothing
// changes. The changed initialisers are in plan->values. The number of pairs.
Result<int64_t> equalize(const import::OnnxEdit& model, const std::vector<Layer>& layers,
                         Plan* plan);

// Bias correction (same source): what the rounding of a layer's weights adds to its result on
// average, by the mean of every channel of its input, is taken from its bias. `means`: by layer; an
// empty one leaves the layer alone. The number of layers.
Result<int64_t> correct_biases(const import::OnnxEdit& model, const std::vector<Layer>& layers,
                               const std::vector<std::vector<double>>& means, Plan* plan);

}  // namespace heddle::quantize
