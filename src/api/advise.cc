// Advice for a model: what compiler/advise.h predicts, with the options of a compilation.
#include "compiler/advise.h"

#include "api/session.h"
#include "api/settings.h"
#include "hlo/module.h"

namespace heddle::api {

Result<compiler::AdviceReport> advise(const Model& model, const CompileOptions& options) {
  if (model.module() == nullptr)
    return user_error("{} is compiled already, or was consumed: advice needs the model itself",
                      model.name());
  HEDDLE_ASSIGN_OR_RETURN(const Settings settings, read_settings(options));
  return compiler::advise(model.module()->clone(), settings.target, settings.compiler);
}

}  // namespace heddle::api
