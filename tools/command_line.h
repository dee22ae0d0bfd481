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
class FileUse;
class OutputFile;

struct OptionInfo {  // for shell completion, and for messages
  std::string name;  // "--json", "-o,--output"
  std::string help;
  std::string value;                 // what is to be given: "F"; empty: a flag
  std::vector<std::string> choices;  // where they are a fixed set
  bool repeated = false;             // may be given many times

  bool takes_value() const { return !value.empty(); }
  std::vector<std::string> spellings() const;  // "-o", "--output"
};

class CommandLine {
 public:
  CommandLine(std::string_view name, std::string_view summary);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;

  // `to` keeps its value where the option is not given, and must outlive the command line.
  void argument(std::string& to, const char* name, const char* help, bool required = true);
  void text(std::string& to, const char* name, const char* value, const std::string& help);
  // One of these words, in small or capital letters alike. `open`: others are the library's to
  // judge, as those of a pattern ("cuda:1").
  void choice(std::string& to, const char* name, const std::vector<std::string>& choices,
              const std::string& help, bool open = false);
  void list(std::vector<std::string>& to, const char* name, const char* value,
            const std::string& help);  // may be given many times
  // Of value "N|any" the word is -1.
  void number(std::optional<int64_t>& to, const char* name, const char* value,
              const std::string& help);
  void real(std::optional<double>& to, const char* name, const char* value,
            const std::string& help);
  // "4096", "4KiB", "1.5 GB".
  void bytes(std::optional<int64_t>& to, const char* name, const std::string& help);
  void flag(bool& to, const char* name, const std::string& help);
  // What the command writes: see files().
  void output(OutputFile& to, const char* name, const char* value, const std::string& help);
  void output_folder(std::string& to, const char* name, const std::string& help);
  // Options that follow stand under this title in the help.
  void group(const char* title);
  void examples(const char* text);  // a line each

  std::string help() const;
  const std::vector<OptionInfo>& options() const;
  // The files that the options name; main() prepares them before the command runs.
  const std::shared_ptr<FileUse>& files() const;
  // True: go on. False: the help was asked for. Error (user): which option, what it got, what it
  // wants, and what was perhaps meant.
  Result<bool> parse(const std::vector<std::string>& arguments);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Bytes of "4096", "4KiB", "4 MB": KiB is 1024, KB is 1000 bytes; letters of either case. Nothing:
// the text is none of these, or is more than an int64_t holds.
std::optional<int64_t> parse_bytes(std::string_view text);

}  // namespace heddle::tools
