// For commands on the classes behind the C interface: the options of a compilation, and what those
// take that report on one.
#pragma once

#include "api/session.h"
#include "model_options.h"
#include "report.h"

namespace heddle::tools {

Result<api::CompileOptions> session_options(const CompileChoices& choices);
// What would be compiled, and why, for a target that need not be this machine: no code is made.
// The model is consumed.
Result<ProgramHandle> decide(const CompileChoices& choices, heddle_model* model);

// MODEL, --all, --json and the options of the compilation.
struct ReportChoices {
  OpenChoices open;
  CompileChoices compile;
  bool all = false;
  JsonChoice json;

  void declare(CommandLine& line, const char* what_is_all);
};

}  // namespace heddle::tools
