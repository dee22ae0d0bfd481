#include "compiler/pipeline.h"

#include "compiler/options.h"
#include "fuse/pipeline.h"
#include "opt/pipeline.h"
#include "precision/pipeline.h"

namespace heddle::compiler {

std::string graph_pipeline(const Options& options, const target::Target& target) {
  const auto level = static_cast<opt::Level>(options.level);
  return opt::pipeline_for(level, target.kind, precision::integer_pipeline(target));
}

// Library calls first: they are neither packed nor fused. Panels are for a core's vectors. Trips
// are counted before fusion, which makes kernels of loops.
// Kept calls are fused once for all calls, then copied; extents become parameters of fusions.
std::string fusing_pipeline(const Options& options, const target::Target& target) {
  const bool cpu = target.kind == target::DeviceKind::cpu;
  const fuse::Mode mode = fuse_mode(options);
  std::string text;
  if (cpu && options.library != "none") text += "call_libraries,";
  if (cpu && options.level != Level::O0) {
    const bool relaxed = mode != fuse::Mode::off && options.numerics == Numerics::relaxed;
    text += fuse::packing_pipeline(relaxed) + ",";
  }
  text += "count_trips," + fuse::pipeline_for(mode, target.kind) + ",inline_kept_calls";
  return cpu ? text + ",pass_extents" : text;
}

Result<pass::RunReport> run_fusing(fuse::Covers* covers, const Options& options,
                                   const target::Target& target, const pass::RunOptions& run,
                                   std::vector<fuse::Refusal>* refusals, Report* report) {
  Context context;
  context.target = &target;
  context.refusals = refusals;
  context.any_chain = options.any_chain;
  context.library = options.library;
  context.report = report;
  return compiler::run(*covers, fusing_pipeline(options, target), context, run);
}

Result<FusedModule> fused_module(std::unique_ptr<hlo::Module> module, const Options& options,
                                 const target::Target& target, const pass::RunOptions& run) {
  FusedModule result{std::move(module), {}, {}, {}};
  fuse::Covers covers(result.module.get());
  HEDDLE_ASSIGN_OR_RETURN(
      result.done, run_fusing(&covers, options, target, run, &result.refusals, &result.report));
  return result;
}

}  // namespace heddle::compiler
