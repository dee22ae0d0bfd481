#include "known_names.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <vector>

#include "compiler/passes.h"
#include "lower/passes.h"
#include "suggest.h"
#include "target/target.h"

namespace heddle::tools {
namespace {

using Names = std::vector<std::string>;

Names pass_names() {
  Names names;
  for (const compiler::Stage& stage : compiler::module_pass_stages())
    for (const compiler::ModulePass& pass : stage.passes) names.emplace_back(pass.name);
  for (const lower::KernelPass& pass : lower::kernel_passes()) names.emplace_back(pass.name);
  return names;
}

bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Status check_pass(const char* option, const std::string& name, const Names& names) {
  if (contains(names, name)) return {};
  return user_error("{} {}: no pass is called so; heddle opt --list names them{}", option, name,
                    did_you_mean(name, names));
}

}  // namespace

Status check_disabled(const std::string& names) {
  const Names known = pass_names();
  std::istringstream parts(names);
  for (std::string name; std::getline(parts, name, ',');)
    if (!name.empty())
      HEDDLE_RETURN_IF_ERROR(check_pass("--disable", name.substr(0, name.find('.')), known));
  return {};
}

Status check_passes(const std::string& pipeline) {
  Names known = pass_names();
  for (const char* word : {"O0", "O1", "O2", "off", "greedy", "xla", "stitch", "default"})
    known.emplace_back(word);
  std::string word;
  for (const char c : pipeline + ",") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word += c;
      continue;
    }
    if (!word.empty() && std::isdigit(static_cast<unsigned char>(word[0])) == 0)
      HEDDLE_RETURN_IF_ERROR(check_pass("--passes", word, known));
    word.clear();
  }
  return {};
}

Status check_stop(const std::string& point) {
  Names known = {"import", "optimize", "fuse", "schedule", "stitch", "plan"};
  if (point.empty() || contains(known, point)) return {};
  const std::string points = fmt::format("{}", fmt::join(known, ", "));
  const Names passes = pass_names();
  if (contains(passes, point)) return {};
  known.insert(known.end(), passes.begin(), passes.end());
  return user_error("--stop-after {}: wanted {} or a pass (heddle opt --list){}", point, points,
                    did_you_mean(point, known));
}

Status check_target(const std::string& name) {
  if (name.empty() || name.find_first_of("./") != std::string::npos) return {};
  Names known = target::shipped_targets();
  known.emplace_back("host");
  if (contains(known, name)) return {};
  return user_error("--target {}: wanted {} or a file F.json{}", name, fmt::join(known, ", "),
                    did_you_mean(name, known));
}

}  // namespace heddle::tools
