#include "compiler/values_to_see.h"

#include <unordered_map>

#include "compiler/compiler.h"
#include "compiler/mixed_precision.h"
#include "compiler/pipeline.h"
#include "pass/run.h"
#include "precision/gradient_flow.h"
#include "precision/mixed_graph.h"

namespace heddle::compiler {
namespace {

using hlo::Instr;
using tensor::Type;

Status optimize(hlo::Module* module, const Options& options, const target::Target& target) {
  pass::RunOptions run = pass_options(options);
  run.dump_directory.clear();
  run.stop_after.clear();
  HEDDLE_ASSIGN_OR_RETURN([[maybe_unused]] const pass::RunReport done,
                          pass::run(*module, graph_pipeline(options, target), graph_passes(), run));
  return {};
}

bool can_be_seen(const Instr* x) {
  return x->shape().is_array() && x->shape().is_static() && x->shape().type() == Type::f32 &&
         x->shape().elems() > 1;
}

}  // namespace

Result<ValuesToSee> values_to_see(std::unique_ptr<hlo::Module> module, const Options& options,
                                  const target::Target& target) {
  ValuesToSee found{std::move(module), {}};
  HEDDLE_RETURN_IF_ERROR(optimize(found.module.get(), options, target));
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<hlo::Module> fused,
                          fused_copy(*found.module, options, target));
  const precision::MixedGraph graph = precision::mixed_graph(*fused, target, Type::f16);
  std::unordered_map<std::string, Instr*> here;
  for (Instr* x : found.module->entry()->instrs())
    if (can_be_seen(x)) here.emplace(precision::same_value(*x), x);
  for (const precision::StoredValue& value : graph.values) {
    const auto known = here.find(precision::same_value(value));
    if (known == here.end()) continue;
    found.values.push_back({known->second, known->first, -1, value.is_constant});
    here.erase(known);
  }
  return found;
}

Result<ValuesToSee> gradients_to_see(std::unique_ptr<hlo::Module> module, const Options& options,
                                     const target::Target& target) {
  ValuesToSee found{std::move(module), {}};
  HEDDLE_RETURN_IF_ERROR(optimize(found.module.get(), options, target));
  for (const precision::GradientFlow::Gradient& gradient :
       precision::find_gradients(*found.module).gradients)
    if (can_be_seen(gradient.value))
      found.values.push_back({gradient.value, precision::same_value(*gradient.value),
                              gradient.parameter, /*is_constant=*/false});
  if (found.values.empty())
    return user_error(
        "{} is not a training step with f32 gradients: wanted outputs that alias inputs "
        "(input_output_alias), a loss that does not, and products between them",
        found.module->name());
  return found;
}

}  // namespace heddle::compiler
