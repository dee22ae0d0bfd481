#include "command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace heddle::tools {

struct CommandLine::State {
  State(const std::string& summary, const std::string& name) : app(summary, name) {}
  CLI::Option* add(CLI::Option* option, const char* name, const std::string& help,
                   std::vector<std::string> choices = {}, bool takes_value = true) {
    option->group(group);
    options.push_back({name, help, takes_value, std::move(choices)});
    return option;
  }
  CLI::App app;
  std::string group = "Options";
  std::vector<OptionInfo> options;
};

CommandLine::CommandLine(std::string_view name, std::string_view summary)
    : state_(std::make_unique<State>(std::string(summary), "heddle " + std::string(name))) {
  auto formatter = std::make_shared<CLI::Formatter>();
  formatter->column_width(34);
  state_->app.formatter(formatter);
}
CommandLine::~CommandLine() = default;

void CommandLine::argument(std::string& to, const char* name, const char* help, bool required) {
  state_->app.add_option(name, to, help)->required(required)->type_name("");
}

void CommandLine::text(std::string& to, const char* name, const char* value,
                       const std::string& help) {
  state_->add(state_->app.add_option(name, to, help), name, help)->type_name(value);
}

void CommandLine::choice(std::string& to, const char* name, const std::vector<std::string>& choices,
                         const std::string& help) {
  std::string value;
  for (const std::string& word : choices) value += (value.empty() ? "" : "|") + word;
  // Which words are known is the library's to say: its error names them.
  state_->add(state_->app.add_option(name, to, help), name, help, choices)->type_name(value);
}

void CommandLine::list(std::vector<std::string>& to, const char* name, const char* value,
                       const std::string& help) {
  // One value each time, so that what stands behind it is not swallowed.
  state_->add(state_->app.add_option(name, to, help), name, help)
      ->type_name(value)
      ->allow_extra_args(false);
}

void CommandLine::number(std::optional<int64_t>& to, const char* name, const char* value,
                         const std::string& help) {
  state_
      ->add(state_->app.add_option_function<int64_t>(
                name, [&to](const int64_t& given) { to = given; }, help),
            name, help)
      ->type_name(value);
}

void CommandLine::real(std::optional<double>& to, const char* name, const char* value,
                       const std::string& help) {
  state_
      ->add(state_->app.add_option_function<double>(
                name, [&to](const double& given) { to = given; }, help),
            name, help)
      ->type_name(value);
}

void CommandLine::flag(bool& to, const char* name, const std::string& help) {
  state_->add(state_->app.add_flag(name, to, help), name, help, {}, false);
}

void CommandLine::group(const char* title) { state_->group = title; }

void CommandLine::examples(const char* text) {
  state_->app.footer(std::string("Examples:\n") + text);
}

std::string CommandLine::help() const { return state_->app.help(); }

const std::vector<OptionInfo>& CommandLine::options() const { return state_->options; }

Result<bool> CommandLine::parse(const std::vector<std::string>& arguments) {
  // CLI11 takes them last first.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    state_->app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    return false;
  } catch (const CLI::ParseError& error) {
    std::string message = error.what();
    std::replace(message.begin(), message.end(), '\n', ' ');
    return user_error("{}; see {} --help", message, state_->app.get_name());
  }
  return true;
}

}  // namespace heddle::tools
