// The command line of one command: names, values, help. CLI11 stays behind it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace heddle::tools {

class Command;

struct OptionInfo {  // for shell completion
  std::string name;  // "--json"
  std::string help;
  bool takes_value = false;
  std::vector<std::string> choices;  // where they are a fixed set
};

class CommandLine {
 public:
  CommandLine(std::string_view name, std::string_view summary);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;

  // `to` keeps its value where the option is not given, and must outlive the command line.
  void argument(std::string& to, const char* name, const char* help, bool required = true);
  void text(std::string& to, const char* name, const char* value, const std::string& help);
  void choice(std::string& to, const char* name, const std::vector<std::string>& choices,
              const std::string& help);
  void list(std::vector<std::string>& to, const char* name, const char* value,
            const std::string& help);  // may be given many times
  void number(std::optional<int64_t>& to, const char* name, const char* value,
              const std::string& help);
  void real(std::optional<double>& to, const char* name, const char* value,
            const std::string& help);
  void flag(bool& to, const char* name, const std::string& help);
  // Options that follow stand under this title in the help.
  void group(const char* title);
  void examples(const char* text);  // a line each

  std::string help() const;
  const std::vector<OptionInfo>& options() const;
  // True: go on. False: the help was asked for. Error: what CLI11 says, in one line.
  Result<bool> parse(const std::vector<std::string>& arguments);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace heddle::tools
