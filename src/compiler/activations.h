// Activations that may follow a product, as graphs: the variants that advice prices.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "hlo/builder.h"
#include "hlo/module.h"

namespace heddle::compiler {

struct Activation {
  const char* name;  // "ReLU"
  hlo::Instr* (*add)(hlo::Builder& builder, hlo::Instr* x);
};

// ReLU, Hardswish, SiLU, GELU (by erf), Softplus.
std::span<const Activation> activations();

// `kernel` with only its product (dot or convolution) and, if given, the activation after it;
// parameters do not change. Null: it does not have exactly one product.
std::unique_ptr<hlo::Module> with_activation(const hlo::Module& kernel,
                                             const Activation* activation);

}  // namespace heddle::compiler
