// heddle completion: what a shell needs to complete commands and options, and the manual page, made
// from the commands themselves.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "command_line.h"
#include "commands.h"
#include "described.h"
#include "manual.h"
#include "suggest.h"

namespace heddle::tools {
namespace {

using Described = DescribedCommand;

// In single quotes.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (char c : text) {
    if (c == '\'')
      result += "'\\''";
    else
      result += c;
  }
  return result + "'";
}

void print_bash(const std::vector<Described>& commands) {
  std::vector<std::string> names;
  for (const Described& command : commands) names.push_back(command.name);
  fmt::print(
      "_heddle() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}\n"
      "  local command=${{COMP_WORDS[1]}}\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"{} --help --version\" -- \"$word\")); return\n"
      "  fi\n"
      "  case \"$command $before\" in\n",
      fmt::join(names, " "));
  for (const Described& command : commands)
    for (const OptionInfo& option : command.options)
      if (!option.choices.empty())
        for (const std::string& name : option.spellings())
          fmt::print("    '{} {}') COMPREPLY=($(compgen -W \"{}\" -- \"$word\")); return ;;\n",
                     command.name, name, fmt::join(option.choices, " "));
  fmt::print("  esac\n  if [[ $word == -* ]]; then\n    case $command in\n");
  for (const Described& command : commands) {
    std::vector<std::string> options = {"--help", "--help-all"};
    for (const OptionInfo& option : command.options)
      for (const std::string& name : option.spellings()) options.push_back(name);
    fmt::print("      {}) COMPREPLY=($(compgen -W \"{}\" -- \"$word\")) ;;\n", command.name,
               fmt::join(options, " "));
  }
  fmt::print(
      "    esac\n    return\n  fi\n  COMPREPLY=($(compgen -f -- \"$word\"))\n}}\n"
      "complete -o filenames -F _heddle heddle\n");
}

void print_zsh(const std::vector<Described>& commands) {
  fmt::print("#compdef heddle\n_heddle() {{\n  if (( CURRENT == 2 )); then\n    local -a all=(\n");
  for (const Described& command : commands)
    fmt::print("      {}\n", quoted(command.name + ":" + command.summary));
  fmt::print("    )\n    _describe command all\n    return\n  fi\n  case $words[2] in\n");
  for (const Described& command : commands) {
    fmt::print("    {}) _arguments", command.name);
    for (const OptionInfo& option : command.options) {
      std::string help = option.help;
      for (char& c : help)
        if (c == '[' || c == ']' || c == ':') c = ' ';
      const std::string value = !option.takes_value() ? ""
                                : option.choices.empty()
                                    ? ":value:_files"
                                    : fmt::format(":value:({})", fmt::join(option.choices, " "));
      for (const std::string& name : option.spellings())
        fmt::print(" \\\n      {}", quoted(fmt::format("{}[{}]{}", name, help, value)));
    }
    fmt::print(" \\\n      '*:file:_files' ;;\n");
  }
  // Sourced, or the file _heddle in a folder of functions.
  fmt::print(
      "  esac\n}}\nif [[ ${{funcstack[1]}} == _heddle ]]; then\n  _heddle \"$@\"\nelse\n"
      "  compdef _heddle heddle\nfi\n");
}

void print_fish(const std::vector<Described>& commands) {
  fmt::print(
      "complete -c heddle -n __fish_use_subcommand -l help -d 'help'\n"
      "complete -c heddle -n __fish_use_subcommand -l version -d 'version'\n");
  for (const Described& command : commands) {
    fmt::print("complete -c heddle -f -n __fish_use_subcommand -a {} -d {}\n", command.name,
               quoted(command.summary));
    for (const OptionInfo& option : command.options) {
      fmt::print("complete -c heddle -n '__fish_seen_subcommand_from {}'", command.name);
      for (const std::string& name : option.spellings()) {
        const size_t dashes = name.find_first_not_of('-');
        fmt::print(" -{} {}", dashes == 1 ? "s" : "l", name.substr(dashes));
      }
      if (option.takes_value()) fmt::print(" -r");
      if (!option.choices.empty()) fmt::print(" -f -a '{}'", fmt::join(option.choices, " "));
      fmt::print(" -d {}\n", quoted(option.help));
    }
  }
}

class Completion : public Command {
 public:
  explicit Completion(const std::vector<std::unique_ptr<Command>>& all) : all_(all) {}
  std::string_view name() const override { return "completion"; }
  std::string_view summary() const override {
    return "prints completion for a shell, or the manual page";
  }

  void declare(CommandLine& line) override {
    line.argument(shell_, "SHELL",
                  "bash, zsh or fish; man: the manual page; json: all commands and options, for "
                  "programs");
    line.examples(
        "  source <(heddle completion bash)\n"
        "  heddle completion fish > ~/.config/fish/completions/heddle.fish\n"
        "  heddle completion man > heddle.1\n");
  }

  Result<int> run() override {
    // Declares this command anew, too: its argument is kept.
    const std::string shell = shell_;
    const std::vector<Described> commands = describe(all_);
    if (shell == "bash")
      print_bash(commands);
    else if (shell == "zsh")
      print_zsh(commands);
    else if (shell == "fish")
      print_fish(commands);
    else if (shell == "man")
      fmt::print("{}", manual_page(commands));
    else if (shell == "json")
      fmt::print("{}", description_json(commands));
    else
      return user_error("completion {}: unknown shell; wanted bash, zsh, fish, man or json{}",
                        shell, did_you_mean(shell, {"bash", "zsh", "fish", "man", "json"}));
    return 0;
  }

 private:
  const std::vector<std::unique_ptr<Command>>& all_;
  std::string shell_;
};

}  // namespace

std::unique_ptr<Command> make_completion(const std::vector<std::unique_ptr<Command>>& all) {
  return std::make_unique<Completion>(all);
}

}  // namespace heddle::tools
