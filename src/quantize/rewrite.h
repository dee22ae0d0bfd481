// Writes a model with quantised layers, in operators that other runtimes support: QuantizeLinear
// and DequantizeLinear (QDQ) around the float operators, or MatMulNBits of com.microsoft.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "quantize/layers.h"
#include "quantize/numbers.h"

namespace heddle::quantize {

struct Plan {
  std::vector<bool> chosen;                   // by layer
  std::map<std::string, Params> activations;  // by value; of all chosen layers
  // Changed initialisers (adjust.h); all others are as in the file.
  std::map<std::string, tensor::Literal> values;
  std::map<size_t, Blocks> blocks;  // by layer: its 4-bit weights, if already made
};

// The result for a layer's weights.
struct Stored {
  int64_t bytes = 0;
  double sqnr = 0;  // dB
};

// Adds the changes to `model`, after earlier ones. By layer; empty for layers not chosen.
Result<std::vector<Stored>> rewrite_int8(import::OnnxEdit* model, const std::vector<Layer>& layers,
                                         const Plan& plan);
// 4-bit weights in blocks; lookup tables in 8 bits. Other layers are not changed.
Result<std::vector<Stored>> rewrite_int4(import::OnnxEdit* model, const std::vector<Layer>& layers,
                                         const Plan& plan, int64_t block);

// The current value: from `plan`, otherwise from the file.
Result<tensor::Literal> value_now(const import::OnnxEdit& model, const Plan& plan,
                                  const std::string& name);

}  // namespace heddle::quantize
