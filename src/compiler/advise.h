// Advice to a model's designer: what its shapes and activations cost on a target, and what would be
// free (BOLT's principles of co-design). Predicted by the families' time models;
// nothing is run but what the caller's `measure` runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "compiler/compiler.h"

namespace heddle::compiler {

// One of the things to do instead.
struct Choice {
  std::string name;     // "widen to 64"; of an activation its name
  double gain_ns = 0;   // saved a run by this choice, by one product; negative: lost
  double price_ns = 0;  // of an activation: what it adds to the bare product
};

struct Advice {
  // "alignment": columns that fill no vector, or tiles that waste registers. "activation": what the
  // operators behind a product cost. "capacity": memory-bound, so that more rows are free.
  // "deepening": what a 1x1 convolution behind this one would cost.
  std::string kind;
  std::string where;            // the product
  std::string text;             // one line, without the choices
  std::vector<Choice> choices;  // each with a gain of its own
  double gain_ns = 0;           // saved by following it, by the best choice; of "deepening": paid,
                                // negative
  int64_t uses = 1;             // products of the same shape and epilogue
  bool measured = false;        // the choices' times were, else they are predicted
};

struct AdviceReport {
  double predicted_ns = 0;  // one run on one core: products, and the traffic of all other kernels
  double product_ns = 0;
  std::vector<Advice> advice;  // most gain times uses first
};

// The time in ns of one run of a small module on one core, by running it.
using Measure = std::function<Result<double>(const hlo::Module& module)>;

// The module is consumed. `measure` prices the activations of the products that take most of the
// time (kMostMeasured); without it, and of the others, they are predicted. Errors: as of a
// compilation.
inline constexpr int kMostMeasured = 3;
Result<AdviceReport> advise(std::unique_ptr<hlo::Module> module, const target::Target& target,
                            const Options& options, const Measure& measure = {});

}  // namespace heddle::compiler
