#include "described.h"

#include "command_line.h"
#include "terminal.h"

namespace heddle::tools {

Status MessageChoices::apply() const {
  if (quiet && verbose) return user_error("--quiet and --verbose: choose one of them");
  if (quiet) set_verbosity(Verbosity::quiet);
  if (verbose) set_verbosity(Verbosity::verbose);
  return {};
}

void declare_with_common(Command& command, CommandLine& line, MessageChoices& messages) {
  command.declare(line);
  line.group("Messages");
  line.flag(messages.quiet, "--quiet", "only results and errors: no notes, no progress");
  for (const OptionInfo& option : line.options())
    if (option.name == "--verbose") return;  // of its own: conform
  line.flag(messages.verbose, "--verbose",
            "also progress messages, on standard error: models opened, programs compiled or "
            "loaded, with times");
}

std::vector<DescribedCommand> describe(const std::vector<std::unique_ptr<Command>>& all) {
  std::vector<DescribedCommand> commands;
  for (const auto& command : all) {
    CommandLine line(command->name(), command->summary());
    MessageChoices messages;
    declare_with_common(*command, line, messages);
    commands.push_back(line.described());
  }
  return commands;
}

}  // namespace heddle::tools
