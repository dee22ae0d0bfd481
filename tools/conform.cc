// heddle conform: a scoreboard over a folder of tests, each worked on in a child process.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "command_line.h"
#include "commands.h"
#include "conform_board.h"
#include "conform_child.h"
#include "conform_module.h"
#include "conform_onnx.h"
#include "conform_stablehlo.h"
#include "hlo/text.h"
#include "import/mapped_file.h"
#include "import/onnx.h"
#include "session_options.h"
#include "suggest.h"
#include "terminal.h"

namespace heddle::tools {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

// In the child: a record before and after each module of a file.
void work_on_hlo(const std::string& path, const ConformChoices& choices, const Report& report) {
  Result<std::vector<std::unique_ptr<hlo::Module>>> modules;
  {
    auto file = import::MappedFile::open(path);
    if (!file) return report({{"outcome", "unparsable"}, {"reason", file.error().message}});
    if (import::is_comments((*file)->bytes()))
      return report({{"outcome", "no module"}, {"reason", ""}});
    const Result<import::ModelFile> opened = import::open_model_file(path);
    if (!opened) return report({{"outcome", "unparsable"}, {"reason", opened.error().message}});
    modules = hlo::parse_modules(opened->file->bytes());
  }
  if (!modules) return report({{"outcome", "unparsable"}, {"reason", modules.error().message}});
  if (modules->empty()) return report({{"outcome", "no module"}, {"reason", ""}});
  for (auto& module : *modules) {
    const std::string name = module->name();
    report({{"module", name}});
    const ModuleOutcome outcome = conform_module(std::move(module), choices);
    report({{"module", name}, {"outcome", outcome.outcome}, {"reason", outcome.reason}});
  }
}

void work_on_stablehlo(const std::string& path, const ConformChoices& choices,
                       const Report& report) {
  conform_stablehlo(
      path, choices, [&](const std::string& module) { report({{"module", module}}); },
      [&](const StablehloOutcome& outcome) {
        report(
            {{"module", outcome.module}, {"outcome", outcome.outcome}, {"reason", outcome.reason}});
      });
}

void work_on_onnx(const OnnxCase& test, const ConformChoices& choices, const Report& report) {
  const OnnxOutcome outcome = run_onnx_case(test, choices.compile, choices.max_work);
  report({{"outcome", outcome.outcome},
          {"reason", outcome.reason},
          {"operator", outcome.op},
          {"opset", outcome.opset},
          {"late", outcome.late}});
}

struct Score {
  int64_t tests = 0, pass = 0, late = 0;
  void add(bool passed, bool was_late) {
    ++tests;
    pass += passed ? 1 : 0;
    late += passed && was_late ? 1 : 0;
  }
};
using Scores = std::map<std::string, Score>;

void print_scores(const char* title, const Scores& scores) {
  size_t width = std::string_view(title).size();
  for (const auto& [name, score] : scores) width = std::max(width, name.size());
  fmt::print("{:<{}}  tests   pass   late\n", title, width);
  for (const auto& [name, score] : scores)
    fmt::print("{:<{}} {:>6} {:>6} {:>6}{}\n", name, width, score.tests, score.pass, score.late,
               score.pass == score.tests ? "" : "  *");
  fmt::print("\n");
}

ordered_json to_json(const Scores& scores) {
  ordered_json json = ordered_json::object();
  for (const auto& [name, score] : scores)
    json[name] = {{"tests", score.tests}, {"pass", score.pass}, {"late", score.late}};
  return json;
}

class Conform : public Command {
 public:
  std::string_view name() const override { return "conform"; }
  std::string_view summary() const override {
    return "prints a scoreboard over a folder of test files";
  }

  void declare(CommandLine& line) override {
    line.argument(suite_, "SUITE",
                  "hlo: HLO text files, compared with the reference interpreter; onnx: ONNX's "
                  "backend tests, compared with the outputs beside them; stablehlo: files with "
                  "assertions of the check dialect, at their own tolerances");
    line.argument(folder_, "DIR", "the folder, searched recursively");
    line.group("Work");
    line.number(seed_, "--seed", "N", "seed of the random inputs (default: 0)");
    line.real(timeout_, "--timeout", "SECONDS", "time limit for one file (default: 60)");
    line.real(max_work_, "--max-work", "N",
              "limit of scalar operations for one module (default: 1e9)");
    line.flag(verbose_, "--verbose", "prints a line for each module when it is done");
    compile_.declare(line);
    json_.declare(line);
    uses_ = line.files();
    line.examples(
        "  heddle conform hlo corpora/xla-hlo --json board.json\n"
        "  heddle conform onnx onnx/backend/test/data --device=interp\n"
        "  heddle conform stablehlo stablehlo/testdata --numerics strict\n");
  }

  Result<int> run() override {
    if (suite_ != "hlo" && suite_ != "onnx" && suite_ != "stablehlo")
      return user_error("conform {}: unknown{}; available: hlo, onnx and stablehlo", suite_,
                        did_you_mean(suite_, {"hlo", "onnx", "stablehlo"}));
    HEDDLE_ASSIGN_OR_RETURN(const ConformChoices choices, make_choices());
    const bool is_onnx = suite_ == "onnx";
    if (is_onnx) {
      HEDDLE_RETURN_IF_ERROR(run_onnx(choices));
    } else {
      HEDDLE_RETURN_IF_ERROR(run_files(choices));
    }
    progress_.hide();
    // A board on which nothing was right proves nothing.
    const bool pass = !any_fails(lines_) && (!is_onnx || total_.pass > 0) &&
                      (suite_ != "stablehlo" || count_of(good()) + count_of("runs") > 0);
    if (!json_.only_json()) {
      if (is_onnx) {
        print_onnx();
      } else {
        print_files();
      }
      fmt::print("{}\n", pass ? "PASS" : "FAIL");
    }
    HEDDLE_RETURN_IF_ERROR(json_.write(is_onnx ? json_onnx(pass) : json_files(pass)));
    return pass ? 0 : 1;
  }

 private:
  Result<ConformChoices> make_choices() const {
    ConformChoices choices;
    HEDDLE_ASSIGN_OR_RETURN(choices.compile, session_options(compile_));
    if (!compile_.dump.empty() || !compile_.stop_after.empty())
      return user_error("conform: --dump and --stop-after are for one model; see heddle compile");
    choices.seed = static_cast<uint64_t>(seed_.value_or(0));
    choices.max_work = max_work_.value_or(choices.max_work);
    return choices;
  }

  ChildLimits limits() const {
    ChildLimits limits;
    limits.seconds = timeout_.value_or(limits.seconds);
    return limits;
  }

  void show_progress(size_t at, size_t count, const std::string& name) {
    progress_.show(fmt::format("{}/{} {}", at + 1, count, name));
  }

  void add(Line line) {
    if (verbose_)
      fmt::print(stderr, "{} {}: {}{}{}\n", line.file, line.module, line.outcome,
                 line.reason.empty() ? "" : ": ", line.reason);
    lines_.push_back(std::move(line));
  }

  // The outcome of a module with which nothing is wrong.
  std::string good() const { return suite_ == "hlo" ? "equal" : "pass"; }

  int64_t count_of(const std::string& outcome) const {
    return std::count_if(lines_.begin(), lines_.end(),
                         [&](const Line& line) { return line.outcome == outcome; });
  }

  Result<std::vector<std::string>> find_files() const {
    const auto wanted = [&](const std::string& name) {
      if (suite_ == "hlo") return name.ends_with(".hlo");
      return name.ends_with(".mlir") || name.ends_with(".mlir.bc");
    };
    std::error_code error;
    std::vector<std::string> files;
    fs::recursive_directory_iterator at(folder_, fs::directory_options::skip_permission_denied,
                                        error);
    if (error) return user_error("{}: cannot be searched: {}", folder_, error.message());
    for (const fs::directory_entry& entry : at)
      if (entry.is_regular_file(error) && wanted(entry.path().filename().string()))
        files.push_back(entry.path().string());
    if (files.empty())
      return user_error("{}: no {} file inside", folder_,
                        suite_ == "hlo" ? ".hlo" : ".mlir or .mlir.bc");
    std::sort(files.begin(), files.end());
    return files;
  }

  Status run_files(const ConformChoices& choices) {
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> files, find_files());
    for (const std::string& file : files) HEDDLE_RETURN_IF_ERROR(uses_->check_read("a test", file));
    files_ = files.size();
    return for_each_in_child(
        files.size(), limits(),
        [&](size_t i, const Report& report) {
          (suite_ == "hlo" ? work_on_hlo : work_on_stablehlo)(files[i], choices, report);
        },
        [&](const PieceResult& result) {
          show_progress(result.piece, files.size(), files[result.piece]);
          add_modules(fs::path(files[result.piece]).lexically_relative(folder_).string(), result);
        });
  }

  void add_modules(const std::string& file, const PieceResult& result) {
    std::string module;
    for (const ordered_json& record : result.records) {
      module = record.value("module", module);
      if (record.contains("outcome"))
        add({file, module, record.value("outcome", ""), record.value("reason", "")});
    }
  }

  Status run_onnx(const ConformChoices& choices) {
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<OnnxCase> cases, find_onnx_cases(folder_));
    for (const OnnxCase& test : cases)
      for (const std::string& file : files_of(test))
        HEDDLE_RETURN_IF_ERROR(uses_->check_read("a test", file));
    return for_each_in_child(
        cases.size(), limits(),
        [&](size_t i, const Report& report) { work_on_onnx(cases[i], choices, report); },
        [&](const PieceResult& result) {
          const OnnxCase& test = cases[result.piece];
          show_progress(result.piece, cases.size(), test.name);
          const ordered_json record =
              result.records.empty() ? ordered_json::object() : result.records.back();
          add({test.name, "", record.value("outcome", "crash"), record.value("reason", "")});
          const bool passed = lines_.back().outcome == "pass";
          late_.push_back(record.value("late", false));
          const std::string op = record.value("operator", "?"), opset = record.value("opset", "?");
          by_operator_[op].add(passed, late_.back());
          by_opset_[opset].add(passed, late_.back());
          by_both_[op + " " + opset].add(passed, late_.back());
          total_.add(passed, late_.back());
        });
  }

  // Files of which some modules, or all, are equal.
  int64_t files_equal(bool all) const {
    std::map<std::string, std::pair<int64_t, int64_t>> counts;  // equal, all
    for (const Line& line : lines_) {
      counts[line.file].first += line.outcome == good() ? 1 : 0;
      ++counts[line.file].second;
    }
    return std::count_if(counts.begin(), counts.end(), [&](const auto& entry) {
      const auto& [equal, total] = entry.second;
      return all ? equal == total : equal > 0;
    });
  }

  void print_files() const {
    fmt::print("files: {}, all modules {} in {}, some in {}\n", files_, good(), files_equal(true),
               files_equal(false));
    print_outcomes(lines_, good());
    if (suite_ != "stablehlo") return;
    const int64_t hold = count_of("pass"), all = hold + count_of("mismatch") + count_of("error");
    fmt::print("modules with assertions: {}, all hold in {} ({:.1f} %); without: {} run\n", all,
               hold, all == 0 ? 0.0 : 100.0 * static_cast<double>(hold) / static_cast<double>(all),
               count_of("runs"));
  }

  void print_onnx() const {
    print_scores("operator and opset", by_both_);
    print_scores("opset", by_opset_);
    print_outcomes(lines_, "pass");
    fmt::print("tests: {}, pass: {} ({:.1f} %), of these {} with shapes that values decide\n",
               total_.tests, total_.pass,
               100.0 * static_cast<double>(total_.pass) / static_cast<double>(total_.tests),
               total_.late);
  }

  ordered_json json_base(bool pass) const {
    ordered_json json;
    json["schema"] = 1;
    json["suite"] = suite_;
    json["folder"] = folder_;
    json["pass"] = pass;
    json["outcomes"] = count_outcomes(lines_);
    return json;
  }

  ordered_json json_files(bool pass) const {
    ordered_json json = json_base(pass);
    json["files"] = files_;
    json["files_equal"] = files_equal(true);
    json["modules"] = lines_.size();
    json["lines"] = ordered_json::array();
    for (const Line& line : lines_)
      json["lines"].push_back({{"file", line.file},
                               {"module", line.module},
                               {"outcome", line.outcome},
                               {"reason", line.reason}});
    return json;
  }

  ordered_json json_onnx(bool pass) const {
    ordered_json json = json_base(pass);
    json["tests"] = total_.tests;
    json["tests_passed"] = total_.pass;
    json["tests_passed_late"] = total_.late;
    json["operators"] = to_json(by_operator_);
    json["operators_by_opset"] = to_json(by_both_);
    json["opsets"] = to_json(by_opset_);
    json["lines"] = ordered_json::array();
    for (size_t i = 0; i < lines_.size(); ++i)
      json["lines"].push_back({{"test", lines_[i].file},
                               {"outcome", lines_[i].outcome},
                               {"reason", lines_[i].reason},
                               {"late", static_cast<bool>(late_[i])}});
    return json;
  }

  std::string suite_, folder_;
  CompileChoices compile_;
  JsonChoice json_;
  std::shared_ptr<FileUse> uses_;
  std::optional<int64_t> seed_;
  std::optional<double> timeout_, max_work_;
  bool verbose_ = false;
  Progress progress_;
  std::vector<Line> lines_;
  size_t files_ = 0;        // of hlo and stablehlo
  std::vector<bool> late_;  // of onnx, one a line
  Scores by_operator_, by_opset_, by_both_;
  Score total_;
};

}  // namespace

std::unique_ptr<Command> make_conform() { return std::make_unique<Conform>(); }

}  // namespace heddle::tools
