// A command with the options that every one has.
#pragma once

#include <memory>
#include <vector>

#include "command.h"
#include "help_text.h"

namespace heddle::tools {

// --quiet, --verbose.
struct MessageChoices {
  bool quiet = false, verbose = false;
  // Error (user): both were given.
  Status apply() const;
};

// The command's own options, then those that all have.
void declare_with_common(Command& command, CommandLine& line, MessageChoices& messages);

// What the commands declare. They are declared for it, into nothing that is run.
std::vector<DescribedCommand> describe(const std::vector<std::unique_ptr<Command>>& all);

}  // namespace heddle::tools
