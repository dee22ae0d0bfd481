// A command of `heddle`: one file each, listed in commands.h. Read this header first.
#pragma once

#include <memory>
#include <string_view>

#include "base/error.h"

namespace heddle::tools {

class CommandLine;

class Command {
 public:
  virtual ~Command() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view summary() const = 0;  // one line, for --help
  // Names the command's arguments and options; called once, before run().
  virtual void declare(CommandLine& line) = 0;
  // The exit status: 0, or 1 where a comparison failed. Errors become 2 (user) or 3 (machine).
  // Results go to standard output, everything else to standard error.
  virtual Result<int> run() = 0;
};

}  // namespace heddle::tools
