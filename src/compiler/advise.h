// Advice to a model's designer: what its shapes and activations cost on a target, and what would be
// free (templates.md §1.5, BOLT's principles of co-design). Predicted by the families' time models;
// nothing is run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "compiler/compiler.h"

namespace heddle::compiler {

struct Advice {
  // "alignment": columns that fill no vector, or tiles that waste registers. "activation": what the
  // operators behind a product cost. "capacity": memory-bound, so that more rows are free.
  // "deepening": what a 1x1 convolution behind this one would cost.
  std::string kind;
  std::string where;   // the product
  std::string text;    // one line
  double gain_ns = 0;  // saved by following it; of "deepening": paid, negative
  int64_t uses = 1;    // products of the same shape and epilogue
};

struct AdviceReport {
  double predicted_ns = 0;  // one run on one core: products, and the traffic of all other kernels
  double product_ns = 0;
  std::vector<Advice> advice;  // most gain times uses first
};

// The module is consumed.
Result<AdviceReport> advise(std::unique_ptr<hlo::Module> module, const target::Target& target,
                            const Options& options);

}  // namespace heddle::compiler
