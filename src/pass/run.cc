#include "pass/run.h"

#include "hlo/module.h"
#include "hlo/text.h"
#include "hlo/verify.h"
#include "pass/runner.h"

namespace heddle::pass {

// Copies share their constants.
template <>
struct UnitTraits<hlo::Module> {
  static constexpr std::string_view kSuffix = ".hlo";
  static Status verify(const hlo::Module& module) { return hlo::verify(module); }
  static std::unique_ptr<hlo::Module> copy(const hlo::Module& module) { return module.clone(); }
  static std::string text(const hlo::Module& module) { return hlo::to_string(module); }
  static std::string short_text(const hlo::Module& module) {
    // Larger constants (weights) are omitted: passes rarely read them, and they take gigabytes.
    hlo::PrintOptions options;
    options.max_constant_elems = 65'536;
    return hlo::to_string(module, options);
  }
};

Result<RunReport> run(hlo::Module& module, const Pipeline& pipeline, const PassTable& table,
                      const RunOptions& options, const PassContext& context) {
  return run_passes(module, pipeline, table, options, context);
}

Result<RunReport> run(hlo::Module& module, std::string_view pipeline, const PassTable& table,
                      const RunOptions& options, const PassContext& context) {
  HEDDLE_ASSIGN_OR_RETURN(Pipeline parsed, parse_pipeline(pipeline));
  return run(module, parsed, table, options, context);
}

}  // namespace heddle::pass
