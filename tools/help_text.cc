#include "help_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

namespace heddle::tools {
namespace {

constexpr size_t kColumns = 100, kIndent = 34;

// `left` in its column, `text` beside it, or below where `left` is too long for that.
std::string entry(const std::string& left, const std::string& text) {
  std::string result = "  " + left, line;
  if (result.size() + 2 > kIndent)
    result += "\n" + std::string(kIndent, ' ');
  else
    result.resize(kIndent, ' ');
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!line.empty() && kIndent + line.size() + 1 + word.size() > kColumns) {
      result += line + "\n" + std::string(kIndent, ' ');
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return result + line + "\n";
}

std::string option_entry(const OptionInfo& option) {
  std::string names;
  for (const std::string& name : option.spellings()) names += (names.empty() ? "" : ", ") + name;
  if (option.takes_value()) names += " " + option.value;
  if (option.repeated && option.takes_value()) names += " ...";
  return entry(names, option.help);
}

std::string usage(const DescribedCommand& command) {
  std::string text = fmt::format("Usage: heddle {} [OPTIONS]", command.name);
  for (const ArgumentInfo& each : command.arguments)
    text += each.required ? " " + each.name : fmt::format(" [{}]", each.name);
  return text + "\n";
}

nlohmann::ordered_json to_json(const OptionInfo& option) {
  return {{"names", option.spellings()}, {"value", option.value},       {"choices", option.choices},
          {"help", option.help},         {"repeated", option.repeated}, {"group", option.group},
          {"rare", option.rare}};
}

}  // namespace

std::vector<std::string> OptionInfo::spellings() const {
  std::vector<std::string> parts(1);
  for (const char c : name)
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

std::string help_text(const DescribedCommand& command, bool all) {
  std::string text =
      fmt::format("heddle {}: {}.\n\n{}", command.name, command.summary, usage(command));
  if (!command.arguments.empty()) text += "\n";
  for (const ArgumentInfo& each : command.arguments) text += entry(each.name, each.help);
  std::string group;
  size_t hidden = 0;
  for (const OptionInfo& option : command.options) {
    if (option.rare && !all) {
      ++hidden;
      continue;
    }
    if (option.group != group) text += fmt::format("\n{}:\n", group = option.group);
    text += option_entry(option);
  }
  if (hidden > 0)
    text += fmt::format("\nheddle {} --help-all shows {} more options.\n", command.name, hidden);
  if (!command.examples.empty()) text += "\nExamples:\n" + command.examples;
  return text;
}

std::string description_json(const std::vector<DescribedCommand>& commands) {
  auto list = nlohmann::ordered_json::array();
  for (const DescribedCommand& command : commands) {
    nlohmann::ordered_json one = {{"name", command.name}, {"summary", command.summary}};
    one["arguments"] = nlohmann::ordered_json::array();
    for (const ArgumentInfo& each : command.arguments)
      one["arguments"].push_back(
          {{"name", each.name}, {"help", each.help}, {"required", each.required}});
    one["options"] = nlohmann::ordered_json::array();
    for (const OptionInfo& each : command.options) one["options"].push_back(to_json(each));
    one["examples"] = command.examples;
    list.push_back(std::move(one));
  }
  return nlohmann::ordered_json{{"schema", 1}, {"commands", std::move(list)}}.dump(2) + "\n";
}

}  // namespace heddle::tools
