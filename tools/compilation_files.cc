#include "compilation_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <vector>

#include "compiler/passes.h"
#include "line_diff.h"

namespace heddle::tools {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr size_t kMostDiffLines = 2000;

Result<std::string> text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return machine_error("{}: cannot be read", path.string());
  return text.str();
}

std::vector<fs::path> files_of(const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator();
       at.increment(error))
    files.push_back(at->path());
  std::sort(files.begin(), files.end());
  return files;
}

int64_t instructions_of(std::string_view text) {
  int64_t count = 0;
  for (size_t at = 0; (at = text.find(" = ", at)) != std::string_view::npos; ++at) ++count;
  return count;
}

struct About {
  std::string summary;
  bool rounds = false;
};

About about(const std::string& pass) {
  const compiler::ModulePass* row = compiler::module_passes().find(pass);
  return row == nullptr ? About() : About{std::string(row->summary), row->rounds};
}

// The files of one run of passes, "<name>_<number>_<pass>.hlo".
Status add_changes(const std::vector<fs::path>& files, const std::string& name,
                   const std::string& stage, PageTexts* texts, ordered_json* changes) {
  std::optional<std::string> before;
  for (const fs::path& path : files) {
    const std::string file = path.filename().string();
    if (!file.starts_with(name + "_") || path.extension() != ".hlo") continue;
    const size_t number = name.size() + 1, pass = file.find('_', number);
    if (pass == std::string::npos) continue;
    HEDDLE_ASSIGN_OR_RETURN(std::string after, text_of(path));
    if (before) {
      const std::string what = file.substr(pass + 1, file.size() - pass - 1 - 4);
      const About told = about(what);
      const LineDiff diff = diff_of(*before, after, kMostDiffLines);
      changes->push_back({{"stage", stage},
                          {"pass", what},
                          {"summary", told.summary},
                          {"rounds", told.rounds},
                          {"instructions", {instructions_of(*before), instructions_of(after)}},
                          {"gone", diff.gone},
                          {"come", diff.come},
                          {"diff", texts->add(diff.text)}});
    }
    before = std::move(after);
  }
  return {};
}

}  // namespace

Result<KernelTexts> kernel_texts(const std::string& folder, PageTexts* texts) {
  static const std::map<std::string, std::string> kKinds = {
      {".schedule", "stages"}, {".ll", "llvm"}, {".s", "assembly"}, {".cu", "cuda"}};
  KernelTexts result;
  for (const fs::path& path : files_of(folder)) {
    const auto kind = kKinds.find(path.extension().string());
    const std::string stem = path.stem().string();
    if (kind == kKinds.end() || (!stem.starts_with("3-") && !stem.starts_with("4-"))) continue;
    HEDDLE_ASSIGN_OR_RETURN(const std::string text, text_of(path));
    result[stem.substr(2)][kind->second] = texts->add(text);
  }
  return result;
}

Result<ordered_json> pass_changes(const std::string& folder, PageTexts* texts) {
  const std::vector<fs::path> files = files_of(folder);
  ordered_json changes = ordered_json::array();
  HEDDLE_RETURN_IF_ERROR(add_changes(files, "pass", "simplify", texts, &changes));
  HEDDLE_RETURN_IF_ERROR(add_changes(files, "fuse", "fuse", texts, &changes));
  return changes;
}

ordered_json passes_json(const compiler::Report& report) {
  ordered_json passes = ordered_json::array();
  for (const compiler::Report::PassUse& use : report.passes) {
    const About told = about(use.pass);
    passes.push_back({{"pass", use.pass},
                      {"summary", told.summary},
                      {"rounds", told.rounds},
                      {"runs", use.runs},
                      {"changes", use.changes},
                      {"ms", static_cast<double>(use.time_ns) / 1e6}});
  }
  return passes;
}

ordered_json rewrites_json(const compiler::Report& report) {
  ordered_json rewrites = ordered_json::object();
  for (const auto& [name, count] : report.rewrites) rewrites[name] = count;
  return rewrites;
}

}  // namespace heddle::tools
