// What an optimised module goes through until its operators are kernels, as
// text (pass/pipeline.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/compile_options.h"
#include "compiler/passes.h"

namespace heddle::compiler {

// The passes in front of fusion that run, in order.
std::string graph_pipeline(const Options& options, const target::Target& target);
std::string fusing_pipeline(const Options& options, const target::Target& target);

// Runs it, as `run` says. `refusals`, `report`: may be null.
Result<pass::RunReport> run_fusing(fuse::Covers* covers, const Options& options,
                                   const target::Target& target, const pass::RunOptions& run,
                                   std::vector<fuse::Refusal>* refusals, Report* report);

// What that makes of a module, and what it tells of it.
struct FusedModule {
  std::unique_ptr<hlo::Module> module;
  std::vector<fuse::Refusal> refusals;
  Report report;  // of libraries: calls, and what was refused one
  pass::RunReport done;
};
Result<FusedModule> fused_module(std::unique_ptr<hlo::Module> module, const Options& options,
                                 const target::Target& target, const pass::RunOptions& run);

}  // namespace heddle::compiler
