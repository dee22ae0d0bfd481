// The `heddle` command: finds the command that was named and turns its result into the exit status
// and the streams of the contract.
#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "api/heddle.h"
#include "command_line.h"
#include "commands.h"
#include "described.h"
#include "output_file.h"
#include "suggest.h"
#include "terminal.h"

namespace heddle::tools {
namespace {

using Commands = std::vector<std::unique_ptr<Command>>;

Commands all_commands() {
  Commands all;
  all.push_back(make_run());
  all.push_back(make_bench());
  all.push_back(make_check());
  all.push_back(make_compile());
  all.push_back(make_inspect());
  all.push_back(make_explain());
  all.push_back(make_report());
  all.push_back(make_profile());
  all.push_back(make_opt());
  all.push_back(make_tune());
  all.push_back(make_dryrun());
  all.push_back(make_quantize());
  all.push_back(make_calibrate());
  all.push_back(make_advise());
  all.push_back(make_reduce());
  all.push_back(make_conform());
  all.push_back(make_cache());
  all.push_back(make_doctor());
  all.push_back(make_completion(all));
  return all;
}

std::string main_help(const Commands& all) {
  std::string text =
      "heddle: compiles deep-learning models and runs them.\n\n"
      "Usage: heddle COMMAND [ARGUMENTS]\n\nCommands:\n";
  for (const auto& command : all)
    text += fmt::format("  {:<12}{}\n", command->name(), command->summary());
  text +=
      "\nheddle COMMAND --help lists the options of a command that are used most, --help-all lists "
      "all.\nheddle --help-all does so for every command; heddle --version prints the version.\n"
      "A model is recognised by its content: ONNX, HLO, StableHLO or a compiled program "
      "(.heddle).\n\nExamples:\n  heddle run model.onnx\n  heddle bench model.onnx --vs "
      "onnxruntime --threads 2\n  heddle check model.onnx --dim batch=4\n  heddle compile "
      "model.onnx -o model.heddle && heddle run model.heddle\n";
  return text;
}

Result<Command*> find_command(const Commands& all, const std::string& name) {
  std::vector<std::string> words;
  std::string names;
  for (const auto& command : all) {
    if (command->name() == name) return command.get();
    names += (names.empty() ? "" : ", ") + std::string(command->name());
    words.emplace_back(command->name());
  }
  if (name.starts_with("-"))
    return user_error("heddle {}: unknown option{}; see heddle --help", name,
                      did_you_mean(name, {"--help", "--help-all", "--version"}));
  return user_error("heddle {}: unknown command{}; available: {}", name, did_you_mean(name, words),
                    names);
}

Result<int> run_command(const std::vector<std::string>& arguments) {
  const Commands all = all_commands();
  if (arguments.empty()) return user_error("heddle: no command was given; see heddle --help");
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h" || name == "help") {
    fmt::print("{}", main_help(all));
    return 0;
  }
  if (name == "--help-all") {
    fmt::print("{}", main_help(all));
    for (const DescribedCommand& each : describe(all)) fmt::print("\n{}", help_text(each, true));
    return 0;
  }
  if (name == "--version") {
    fmt::print("heddle {}.{}.{}\n", HEDDLE_VERSION_MAJOR, HEDDLE_VERSION_MINOR,
               HEDDLE_VERSION_PATCH);
    return 0;
  }
  HEDDLE_ASSIGN_OR_RETURN(Command * command, find_command(all, name));
  CommandLine line(command->name(), command->summary());
  MessageChoices messages;
  declare_with_common(*command, line, messages);
  HEDDLE_ASSIGN_OR_RETURN(const bool go_on, line.parse({arguments.begin() + 1, arguments.end()}));
  if (!go_on) {
    fmt::print("{}", line.help());
    return 0;
  }
  HEDDLE_RETURN_IF_ERROR(messages.apply());
  HEDDLE_RETURN_IF_ERROR(line.files()->prepare());
  return command->run();
}

Result<int> guarded(const std::vector<std::string>& arguments) {
  try {
    return run_command(arguments);
  } catch (const std::bad_alloc&) {
    return machine_error("out of memory");
  } catch (const std::length_error&) {
    return machine_error("out of memory");
  } catch (const std::system_error& error) {  // of fmt::print
    return machine_error("cannot write standard output: {}", error.what());
  }
}

int status_of(const Result<int>& result) {
  if (result) {
    errno = 0;
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return *result;
    fmt::print(stderr, "error: cannot write standard output: {}\n",
               errno != 0 ? std::strerror(errno) : "output error");
    return HEDDLE_MACHINE_ERROR;
  }
  std::fflush(stdout);
  std::string message = result.error().message;
  for (char& c : message)
    if (c == '\n' || c == '\r') c = ' ';
  fmt::print(stderr, "error: {}\n", message);
  return whose(result.error().kind) == ErrorKind::user ? HEDDLE_USER_ERROR : HEDDLE_MACHINE_ERROR;
}

}  // namespace
}  // namespace heddle::tools

// Called by main() alone (entry.c).
extern "C" __attribute__((visibility("default"))) int heddle_command(int count, char** values) {
  // A reader that went away is an error of writing, told like any other.
  std::signal(SIGPIPE, SIG_IGN);
  heddle::tools::show_plain_text();
  const std::vector<std::string> arguments(values + 1, values + count);
  return heddle::tools::status_of(heddle::tools::guarded(arguments));
}
