// The command line of one command: names, values, help. CLI11 stays behind it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "help_text.h"

namespace heddle::tools {

class Command;
class FileUse;
class OutputFile;

class CommandLine {
 public:
  CommandLine(std::string_view name, std::string_view summary);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;

  // `to` keeps its value where the option is not given, and must outlive the command line.
  void argument(std::string& to, const char* name, const char* help, bool required = true);
  void text(std::string& to, const char* name, const char* value, const std::string& help);
  // One of these words, in small or capital letters alike, or a number type by another of its names
  // (fp16, half: f16). `open`: some of them are patterns, "cuda:N", "VALUE" (a number); the library
  // judges what stands in place of the capitals.
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
  // Options that follow, up to the next group, are shown by --help-all alone.
  void rare(bool is_rare = true);
  void examples(const char* text);  // a line each

  std::string help() const;  // what was asked for: --help or --help-all
  DescribedCommand described() const;
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
