// The values of a model that runs shall record (api/value_runs.h): those that mixed precision
// decides on, under its names for them, or the gradients of a training step.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/compile_options.h"
#include "hlo/module.h"
#include "target/target.h"

namespace heddle::compiler {

struct ValueToSee {
  hlo::Instr* value = nullptr;  // f32, of the entry
  std::string name;             // precision::same_value
  int64_t parameter = -1;       // of a gradient: the first that its update goes into
  bool is_constant = false;     // the same in every run
};

struct ValuesToSee {
  std::unique_ptr<hlo::Module> module;  // optimised, not fused
  std::vector<ValueToSee> values;       // each once, in order
};

// The module is consumed. Omits scalars and values that are not f32.
Result<ValuesToSee> values_to_see(std::unique_ptr<hlo::Module> module, const Options& options,
                                  const target::Target& target);
// Error (user): the module is not a training step.
Result<ValuesToSee> gradients_to_see(std::unique_ptr<hlo::Module> module, const Options& options,
                                     const target::Target& target);

}  // namespace heddle::compiler
