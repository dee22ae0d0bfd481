// All passes over modules, in one table: those that simplify (opt), those that fuse (fuse) and the
// few that need a compilation's options. The runner's unit is fuse::Covers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fuse/passes.h"

namespace heddle::compiler {

struct Options;
struct Report;

// The inputs of a pass besides the module. The caller owns the objects behind the pointers.
struct Context : fuse::Context {
  std::string library = "none";  // as Options::library
  Report* report = nullptr;      // may be null
};

#define HEDDLE_COMPILER_PASS(name, required, rounds, summary) \
  Result<bool> name(hlo::Module& module, const Context& context);
#include "compiler/passes.def"

using ModulePass = pass::PassInfoOf<fuse::Covers, Context>;
using ModulePassTable = pass::PassTableOf<fuse::Covers, Context>;

// By stage, in the order of the stages.
struct Stage {
  std::string_view name;
  std::span<const ModulePass> passes;
};
std::vector<Stage> module_pass_stages();
const ModulePassTable& module_passes();

// The passes before fusion, as pass/run.h takes them.
const pass::PassTable& graph_passes();

// Runs a pipeline as pass/run.h says.
Result<pass::RunReport> run(fuse::Covers& covers, std::string_view pipeline, const Context& context,
                            const pass::RunOptions& options = {});

// The text of the optimised module after the first run of `pass`, which must be a fusing pass, with
// the kernels known by then. Error (user): the pass does not run under these options.
Result<std::string> text_behind(std::unique_ptr<hlo::Module> module, const target::Target& target,
                                const Options& options, const std::string& pass);

}  // namespace heddle::compiler
