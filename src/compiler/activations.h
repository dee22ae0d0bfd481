// What a designer may put behind a product, as graphs: the variants that advice prices.
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

// A kernel as a module, with only the product (dot or convolution) and, where given, the
// activation behind it; parameters stay as they are. Null: it has no product, or not one.
std::unique_ptr<hlo::Module> with_activation(const hlo::Module& kernel,
                                             const Activation* activation);

}  // namespace heddle::compiler
