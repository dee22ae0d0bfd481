#include "session_options.h"

#include "command_line.h"

namespace heddle::tools {

Result<api::CompileOptions> session_options(const CompileChoices& choices) {
  HEDDLE_ASSIGN_OR_RETURN(const heddle_compile_options checked, choices.options());
  return api::unwrap(checked);
}

Result<ProgramHandle> decide(const CompileChoices& choices, heddle_model* model) {
  HEDDLE_ASSIGN_OR_RETURN(api::CompileOptions options, session_options(choices));
  options.explain = true;
  options.consume_model = true;
  options.code = false;
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<api::Program> program,
                          api::Program::compile(api::unwrap(model), options));
  return ProgramHandle(api::wrap(std::move(program)));
}

void ReportChoices::declare(CommandLine& line, const char* what_is_all) {
  open.declare(line);
  line.group("What to show");
  line.flag(all, "--all", what_is_all);
  compile.declare(line);
  json.declare(line);
}

}  // namespace heddle::tools
