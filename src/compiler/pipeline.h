// The pipelines of passes from a module to fused kernels, as text (pass/pipeline.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/compile_options.h"
#include "compiler/passes.h"

namespace heddle::compiler {

// The passes before fusion, in order.
std::string graph_pipeline(const Options& options, const target::Target& target);
std::string fusing_pipeline(const Options& options, const target::Target& target);

// Runs the fusing pipeline under `run`. `refusals`, `report`: may be null.
Result<pass::RunReport> run_fusing(fuse::Covers* covers, const Options& options,
                                   const target::Target& target, const pass::RunOptions& run,
                                   std::vector<fuse::Refusal>* refusals, Report* report);

// The result of the fusing pipeline.
struct FusedModule {
  std::unique_ptr<hlo::Module> module;
  std::vector<fuse::Refusal> refusals;
  Report report;  // library calls, and refused ones
  pass::RunReport done;
};
Result<FusedModule> fused_module(std::unique_ptr<hlo::Module> module, const Options& options,
                                 const target::Target& target, const pass::RunOptions& run);

}  // namespace heddle::compiler
