// Changes float weights so that they lose less in 8 bits, without changing the model's function.
#pragma once

#include "quantize/rewrite.h"

namespace heddle::quantize {

// Cross-layer equalisation (Nagel et al., "Data-Free Quantization", 2019): if a channel passes from
// one convolution to the next only through operators with f(s·x) = s·f(x), s > 0, its weights in
// the first are divided by s and those in the second multiplied by s, so that both have the same
// range. Repeated until nothing changes. The changed initialisers are in plan->values. Returns the
// number of pairs.
Result<int64_t> equalize(const import::OnnxEdit& model, const std::vector<Layer>& layers,
                         Plan* plan);

// Bias correction (same source): subtracts from a layer's bias the average error of its result due
// to the rounding of its weights, by the mean of every channel of its input. `means`: by layer; if
// empty, the layer is not changed. Returns the number of layers changed.
Result<int64_t> correct_biases(const import::OnnxEdit& model, const std::vector<Layer>& layers,
                               const std::vector<std::vector<double>>& means, Plan* plan);

}  // namespace heddle::quantize
