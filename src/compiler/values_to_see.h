// What runs are to show of a model's values (api/value_runs.h): those that mixed precision decides
// on, as it will name them, or the gradients of a step of training.
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
  int64_t parameter = -1;       // of a gradient: the first that its update keeps
  bool is_constant = false;     // the same in every run
};

struct ValuesToSee {
  std::unique_ptr<hlo::Module> module;  // optimised, not fused
  std::vector<ValueToSee> values;       // each once, in order
};

// The module is consumed. All but numbers and what is no f32.
Result<ValuesToSee> values_to_see(std::unique_ptr<hlo::Module> module, const Options& options,
                                  const target::Target& target);
// Error (user): the module is no step of training.
Result<ValuesToSee> gradients_to_see(std::unique_ptr<hlo::Module> module, const Options& options,
                                     const target::Target& target);

}  // namespace heddle::compiler
