#include "api/tune_list.h"

#include "api/settings.h"
#include "compiler/tune.h"
#include "hlo/module.h"

namespace heddle::api {

Result<std::vector<TuneShape>> tune_list(const Model& model, const CompileOptions& options,
                                         int64_t most) {
  if (model.module() == nullptr)
    return user_error("{} is already compiled, or was consumed: tuning needs the model itself",
                      model.name());
  CompileOptions looked_at = options;
  looked_at.code = false;
  HEDDLE_ASSIGN_OR_RETURN(const Settings settings, read_settings(looked_at));
  if (settings.target.kind != target::DeviceKind::cpu)
    return user_error("target {}: the rules for candidates are those of CPUs; name a CPU's target",
                      settings.target.name);
  HEDDLE_ASSIGN_OR_RETURN(std::vector<compiler::TuneTask> tasks,
                          compiler::find_tune_tasks(model.module()->clone(), settings.target,
                                                    settings.compiler, static_cast<size_t>(most)));
  std::vector<TuneShape> shapes;
  for (compiler::TuneTask& task : tasks)
    shapes.push_back({std::move(task.key), std::move(task.name), task.uses, task.candidates,
                      std::move(task.records)});
  return shapes;
}

}  // namespace heddle::api
