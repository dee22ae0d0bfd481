// A model with quantised layers, in operators that others run too: QuantizeLinear and
// DequantizeLinear (QDQ) around the float operators, or MatMulNBits of com.microsoft.
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
  // Initialisers that are others now (adjust.h); what is not here is as in the file.
  std::map<std::string, tensor::Literal> values;
  std::map<size_t, Blocks> blocks;  // by layer: its weights in 4 bits, where they were made already
};

// What became of the weights of a layer.
struct Stored {
  int64_t bytes = 0;
  double sqnr = 0;  // dB
};

// Adds the changes to `model`, on top of those that it has. By layer; those not chosen are empty.
Result<std::vector<Stored>> rewrite_int8(import::OnnxEdit* model, const std::vector<Layer>& layers,
                                         const Plan& plan);
// Weights of 4 bits in blocks; tables in 8 bits. Layers that have no such form stay.
Result<std::vector<Stored>> rewrite_int4(import::OnnxEdit* model, const std::vector<Layer>& layers,
                                         const Plan& plan, int64_t block);

// As they are now: of `plan`, else of the file.
Result<tensor::Literal> value_now(const import::OnnxEdit& model, const Plan& plan,
                                  const std::string& name);

}  // namespace heddle::quantize
