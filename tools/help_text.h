// What a command is, as it declared itself: of this --help, completion, the manual page and the
// reference are made.
#pragma once

#include <string>
#include <vector>

namespace heddle::tools {

struct OptionInfo {
  std::string name;  // "--json", "-o,--output"
  std::string help;
  std::string value;                 // what is to be given: "F"; empty: a flag
  std::vector<std::string> choices;  // where they are a fixed set
  bool repeated = false;             // may be given many times
  std::string group = {};            // the title that it stands under
  bool rare = false;                 // shown by --help-all alone

  bool takes_value() const { return !value.empty(); }
  std::vector<std::string> spellings() const;  // "-o", "--output"
};

struct ArgumentInfo {
  std::string name, help;
  bool required = true;
};

struct DescribedCommand {
  std::string name, summary;  // "bench"
  std::vector<ArgumentInfo> arguments;
  std::vector<OptionInfo> options;
  std::string examples;  // a line each
};

// The text of --help; `all`: of --help-all. Lines of at most 100 columns.
std::string help_text(const DescribedCommand& command, bool all);

// {"schema", "commands": [{"name", "summary", "arguments", "options", "examples"}]}, for programs.
std::string description_json(const std::vector<DescribedCommand>& commands);

}  // namespace heddle::tools
