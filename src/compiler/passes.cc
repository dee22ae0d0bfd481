#include "compiler/passes.h"

#include "fuse/runner.h"
#include "opt/passes.h"
#include "precision/passes.h"

namespace heddle::compiler {

namespace {

std::span<const ModulePass> simplifying() {
  static constexpr ModulePass kRows[] = {
#define HEDDLE_PASS(name, required, rounds, summary) \
  {#name, summary, fuse::over_module<opt::name, Context>, required, rounds},
#include "opt/passes.def"
  };
  return kRows;
}

std::span<const ModulePass> to_fewer_bits() {
  static constexpr ModulePass kRows[] = {
#define HEDDLE_PASS(name, required, rounds, summary) \
  {#name, summary, fuse::over_module<precision::name, Context>, required, rounds},
#include "precision/passes.def"
  };
  return kRows;
}

std::span<const ModulePass> of_a_compilation() {
  static constexpr ModulePass kRows[] = {
#define HEDDLE_COMPILER_PASS(name, required, rounds, summary) \
  {#name, summary, fuse::over_module<name, Context>, required, rounds},
#include "compiler/passes.def"
  };
  return kRows;
}

}  // namespace

std::vector<Stage> module_pass_stages() {
  return {{"Simplifying", simplifying()},
          {"Computing in fewer bits", to_fewer_bits()},
          {"Fusing", fuse::passes<Context>()},
          {"Depending on options of the compilation", of_a_compilation()}};
}

const ModulePassTable& module_passes() {
  static const ModulePassTable kTable = [] {
    ModulePassTable table;
    for (const Stage& stage : module_pass_stages()) table.add(stage.passes);
    return table;
  }();
  return kTable;
}

const pass::PassTable& graph_passes() {
  static const pass::PassTable kTable = [] {
    pass::PassTable table(opt::passes());
    table.add(precision::passes());
    return table;
  }();
  return kTable;
}

Result<pass::RunReport> run(fuse::Covers& covers, std::string_view pipeline, const Context& context,
                            const pass::RunOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const pass::Pipeline parsed, pass::parse_pipeline(pipeline));
  return pass::run_passes(covers, parsed, module_passes(), options, context);
}

}  // namespace heddle::compiler
