#include "command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>

#include "output_file.h"
#include "suggest.h"

namespace heddle::tools {
namespace {

// Takes the value of an option, or says in a few words what it wants.
using Take = std::function<std::string(const std::string&)>;

struct Option : OptionInfo {
  Take take;  // of values that are not any text
};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

template <typename T>
std::optional<T> parse_all(std::string_view text) {
  T value{};
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A type of numbers by our name for it, whatever others call it; other words stay.
std::string type_word(const std::string& word) {
  static const std::map<std::string, std::string> names = {
      {"fp64", "f64"},          {"float64", "f64"}, {"double", "f64"},    {"fp32", "f32"},
      {"float32", "f32"},       {"float", "f32"},   {"single", "f32"},    {"fp16", "f16"},
      {"float16", "f16"},       {"half", "f16"},    {"bfloat16", "bf16"}, {"bfloat", "bf16"},
      {"i8", "int8"},           {"s8", "int8"},     {"i4", "int4"},       {"s4", "int4"},
      {"tensorfloat32", "tf32"}};
  const auto found = names.find(lower(word));
  return found == names.end() ? word : found->second;
}

// Whether `word` is of the kind that a choice describes: "cuda:N" of "cuda:1", "VALUE" of "1024".
bool is_of_pattern(const std::string& pattern, const std::string& word) {
  if (pattern == "VALUE") return parse_all<double>(word).has_value();
  const size_t colon = pattern.find(':');
  return colon != std::string::npos && word.size() > colon + 1 &&
         lower(word.substr(0, colon + 1)) == pattern.substr(0, colon + 1);
}

}  // namespace

std::optional<int64_t> parse_bytes(std::string_view text) {
  const size_t end = text.find_first_not_of("0123456789.");
  const std::optional<double> number = parse_all<double>(text.substr(0, end));
  std::string unit = end == std::string_view::npos ? "" : lower(text.substr(end));
  unit.erase(0, unit.find_first_not_of(' '));
  if (unit.ends_with('b')) unit.pop_back();
  double each = 1;
  if (!unit.empty()) {
    const size_t power = std::string_view("kmgt").find(unit[0]);
    if (power == std::string_view::npos || (unit.size() > 1 && unit.substr(1) != "i"))
      return std::nullopt;
    each = std::pow(unit.size() > 1 ? 1024 : 1000, static_cast<double>(power + 1));
  }
  // Without a unit there are no parts of a byte.
  if (unit.empty()) {
    const auto whole = parse_all<int64_t>(text.substr(0, end));
    return whole && *whole >= 0 ? whole : std::nullopt;
  }
  if (!number || !(*number * each < 0x1p63)) return std::nullopt;
  return static_cast<int64_t>(*number * each);
}

struct CommandLine::State {
  State(const std::string& summary, const std::string& name) : app(summary, name) {}
  void add(CLI::Option* option, OptionInfo info, Take take = nullptr) {
    option->type_name(info.value);
    info.group = group;
    info.rare = rare;
    options.push_back(info);
    checks.push_back({std::move(info), std::move(take)});
  }
  // A value of another kind than text.
  void add_taken(const char* name, const char* value, const std::string& help, Take take) {
    CLI::Option* option =
        app.add_option_function<std::string>(name, [](const std::string&) {}, help);
    add(option, {name, help, value, {}, false, {}, false}, std::move(take));
  }

  const Option* find(const std::string& spelling) const;
  Result<size_t> check_option(const std::vector<std::string>& arguments, size_t at);
  Status check_value(const Option& option, const std::string& spelling, const std::string& value);
  Status unknown(const std::string& spelling) const;
  tl::unexpected<Error> fault(const std::string& message) const {
    return user_error("{}; see {} --help", message, app.get_name());
  }

  CLI::App app;
  std::string group = "Options";
  bool rare = false, asked_all = false;
  std::vector<OptionInfo> options;
  std::vector<Option> checks;
  std::vector<ArgumentInfo> positionals;
  size_t required = 0;
  std::string examples;
  std::set<std::string> seen;
  std::shared_ptr<FileUse> files = std::make_shared<FileUse>();
};

CommandLine::CommandLine(std::string_view name, std::string_view summary)
    : state_(std::make_unique<State>(std::string(summary), "heddle " + std::string(name))) {
  state_->app.set_help_flag();  // parse() knows it
}
CommandLine::~CommandLine() = default;

void CommandLine::argument(std::string& to, const char* name, const char* help, bool required) {
  state_->app.add_option(name, to, help)->required(required)->type_name("");
  state_->positionals.push_back({name, help, required});
  state_->required += required ? 1 : 0;
}

void CommandLine::text(std::string& to, const char* name, const char* value,
                       const std::string& help) {
  state_->add(state_->app.add_option(name, to, help), {name, help, value, {}, false, {}, false});
}

void CommandLine::choice(std::string& to, const char* name, const std::vector<std::string>& choices,
                         const std::string& help, bool open) {
  std::string words, list;
  for (const std::string& word : choices) {
    words += (words.empty() ? "" : "|") + word;
    list += (list.empty() ? "" : ", ") + word;
  }
  const Take take = [&to, choices, list, open](const std::string& given) -> std::string {
    for (const std::string& form : {given, type_word(given)})
      for (const std::string& word : choices)
        if (lower(form) == lower(word)) return to = word, "";
    if (open && std::any_of(choices.begin(), choices.end(), [&](const std::string& pattern) {
          return is_of_pattern(pattern, given);
        }))
      return to = given, "";
    // A float model does not become one of bytes by an option.
    const bool of_bytes = type_word(given).starts_with("int") && list.find("f16") != list.npos;
    return (choices.size() > 1 ? "wanted one of " : "wanted ") + list +
           (of_bytes ? "; heddle quantize makes a model of int8 or int4"
                     : did_you_mean(given, choices));
  };
  CLI::Option* option =
      state_->app.add_option_function<std::string>(name, [](const std::string&) {}, help);
  state_->add(option, {name, help, words, choices, false, {}, false}, take);
}

void CommandLine::list(std::vector<std::string>& to, const char* name, const char* value,
                       const std::string& help) {
  CLI::Option* option = state_->app.add_option(name, to, help);
  // One value each time, so that what stands after it is not swallowed.
  option->allow_extra_args(false);
  state_->add(option, {name, help, value, {}, true, {}, false});
}

void CommandLine::number(std::optional<int64_t>& to, const char* name, const char* value,
                         const std::string& help) {
  const bool any = std::string_view(value).ends_with("|any");
  state_->add_taken(name, value, help, [&to, any](const std::string& given) -> std::string {
    if (any && lower(given) == "any") return to = -1, "";
    const std::optional<int64_t> number = parse_all<int64_t>(given);
    if (!number) return any ? "wanted a whole number, or any" : "wanted a whole number";
    to = number;
    return "";
  });
}

void CommandLine::real(std::optional<double>& to, const char* name, const char* value,
                       const std::string& help) {
  state_->add_taken(name, value, help, [&to](const std::string& given) -> std::string {
    const std::optional<double> number = parse_all<double>(given);
    if (!number) return "wanted a number";
    to = number;
    return "";
  });
}

void CommandLine::bytes(std::optional<int64_t>& to, const char* name, const std::string& help) {
  state_->add_taken(name, "BYTES", help, [&to](const std::string& given) -> std::string {
    const std::optional<int64_t> bytes = parse_bytes(given);
    if (!bytes) return "wanted a number of bytes, such as 1048576, 512MiB or 4GiB";
    to = bytes;
    return "";
  });
}

void CommandLine::flag(bool& to, const char* name, const std::string& help) {
  state_->add(state_->app.add_flag(name, to, help), {name, help, "", {}, true, {}, false});
}

void CommandLine::output(OutputFile& to, const char* name, const char* value,
                         const std::string& help) {
  text(to.path, name, value, help);
  state_->files->writes(state_->options.back().spellings().front(), &to);
}

void CommandLine::output_folder(std::string& to, const char* name, const std::string& help) {
  text(to, name, "DIR", help);
  state_->files->writes_folder(name, &to);
}

void CommandLine::group(const char* title) {
  state_->group = title;
  state_->rare = false;
}

void CommandLine::rare(bool is_rare) { state_->rare = is_rare; }

void CommandLine::examples(const char* text) { state_->examples = text; }

DescribedCommand CommandLine::described() const {
  const State& state = *state_;
  return {state.app.get_name().substr(std::string_view("heddle ").size()),
          state.app.get_description(), state.positionals, state.options, state.examples};
}

std::string CommandLine::help() const { return help_text(described(), state_->asked_all); }

const std::vector<OptionInfo>& CommandLine::options() const { return state_->options; }

const std::shared_ptr<FileUse>& CommandLine::files() const { return state_->files; }

const Option* CommandLine::State::find(const std::string& spelling) const {
  for (const Option& option : checks)
    for (const std::string& each : option.spellings())
      if (each == spelling) return &option;
  return nullptr;
}

Status CommandLine::State::unknown(const std::string& spelling) const {
  std::vector<std::string> all = {"--help", "--help-all"};
  for (const Option& option : checks)
    for (const std::string& each : option.spellings()) all.push_back(each);
  // "-level": one dash for two.
  const bool short_form = !spelling.starts_with("--") && spelling.size() > 2;
  return fault(fmt::format("unknown option {}{}", spelling,
                           did_you_mean(short_form ? "-" + spelling : spelling, all)));
}

Status CommandLine::State::check_value(const Option& option, const std::string& spelling,
                                       const std::string& value) {
  if (!seen.insert(option.name).second && !option.repeated)
    return fault(fmt::format("{} {}: the option is given twice", spelling, value));
  if (!option.take) return {};
  const std::string wrong = option.take(value);
  return wrong.empty() ? Status() : fault(fmt::format("{} {}: {}", spelling, value, wrong));
}

// Of the option at `at`; how many arguments it is.
Result<size_t> CommandLine::State::check_option(const std::vector<std::string>& arguments,
                                                size_t at) {
  const std::string& word = arguments[at];
  const size_t equals = word.find('=');
  const bool is_long = word.starts_with("--");
  // "-oF" and "-o F", "--output=F" and "--output F".
  const std::string spelling = is_long ? word.substr(0, equals) : word.substr(0, 2);
  const Option* option = find(is_long || find(word) == nullptr ? spelling : word);
  if (option == nullptr) {
    HEDDLE_RETURN_IF_ERROR(unknown(is_long ? spelling : word));
    return 1;
  }
  const bool attached = is_long ? equals != std::string::npos : word.size() > 2;
  if (!option->takes_value()) {
    if (attached) return fault(fmt::format("{}: {} takes no value", word, spelling));
    return 1;
  }
  if (attached) {
    HEDDLE_RETURN_IF_ERROR(check_value(*option, spelling, word.substr(is_long ? equals + 1 : 2)));
    return 1;
  }
  if (at + 1 == arguments.size() || find(arguments[at + 1]) != nullptr)
    return fault(fmt::format("{}: wanted {} after it, got {}", spelling, option->value,
                             at + 1 == arguments.size() ? "nothing" : arguments[at + 1]));
  HEDDLE_RETURN_IF_ERROR(check_value(*option, spelling, arguments[at + 1]));
  return 2;
}

Result<bool> CommandLine::parse(const std::vector<std::string>& arguments) {
  State& state = *state_;
  std::vector<std::string> given;
  for (size_t i = 0; i < arguments.size();) {
    const std::string& word = arguments[i];
    if (word == "--help" || word == "-h") return false;
    if (word == "--help-all") {
      state.asked_all = true;
      return false;
    }
    // "-" is a file, "-4" a number.
    const bool is_option =
        word.size() > 1 && word[0] == '-' && std::isdigit(static_cast<unsigned char>(word[1])) == 0;
    if (!is_option) {
      given.push_back(word);
      ++i;
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(const size_t taken, state.check_option(arguments, i));
    i += taken;
  }
  std::string wanted;
  for (const ArgumentInfo& each : state.positionals)
    wanted += (wanted.empty() ? "" : " ") + each.name;
  if (given.size() > state.positionals.size())
    return state.fault(fmt::format("unexpected argument {}: {} takes {}",
                                   given[state.positionals.size()], state.app.get_name(),
                                   wanted.empty() ? "none" : wanted));
  if (given.size() < state.required)
    return state.fault(fmt::format("{}: {} is missing", state.app.get_name(),
                                   state.positionals[given.size()].name));
  // CLI11 takes them last first.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    state.app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    std::string message = error.what();
    std::replace(message.begin(), message.end(), '\n', ' ');
    return state.fault(message);
  }
  return true;
}

}  // namespace heddle::tools
