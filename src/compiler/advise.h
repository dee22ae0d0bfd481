// Advice to a model's designer: what its shapes and activations cost on a target, and what would be
// free (BOLT's principles of co-design). Predicted by the families' time models; only the caller's
// `measure` runs anything.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "compiler/compiler.h"

namespace heddle::compiler {

// An alternative.
struct Choice {
  std::string name;     // "widen to 64"; of an activation its name
  double gain_ns = 0;   // saved per run and product by this choice; negative: lost
  double price_ns = 0;  // of an activation: what it adds to the bare product
};

struct Advice {
  // "alignment": columns that fill no vector, or tiles that waste registers. "activation": the cost
  // of the operators after a product. "capacity": memory-bound, so that more rows are free.
  // "deepening": the cost of a 1x1 convolution after this one.
  std::string kind;
  std::string where;            // the product
  std::string text;             // one line, without the choices
  std::vector<Choice> choices;  // each with a gain of its own
  double gain_ns = 0;           // saved by the best choice; of "deepening": its cost, negative
  int64_t uses = 1;             // products of the same shape and epilogue
  bool measured = false;        // the choices' times are measured, else predicted
};

struct AdviceReport {
  double predicted_ns = 0;  // one run on one core: products, and the traffic of all other kernels
  double product_ns = 0;
  std::vector<Advice> advice;  // most gain times uses first
};

// The time in ns of one run of a small module on one core, by running it.
using Measure = std::function<Result<double>(const hlo::Module& module)>;

// The module is consumed. `measure` prices the activations of the longest products (kMostMeasured);
// all others, and all without it, are predicted. Errors: as compile().
inline constexpr int kMostMeasured = 3;
Result<AdviceReport> advise(std::unique_ptr<hlo::Module> module, const target::Target& target,
                            const Options& options, const Measure& measure = {});

}  // namespace heddle::compiler
