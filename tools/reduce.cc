// heddle reduce: a model that fails becomes a small one that fails in the same way. Every trial is
// a `heddle check` (or bench, or the user's command) in a process of its own.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "api/session.h"
#include "command_line.h"
#include "commands.h"
#include "hlo/text.h"
#include "model_options.h"
#include "output_file.h"
#include "reducer.h"
#include "report.h"
#include "terminal.h"
#include "trial.h"
#include "values.h"

namespace heddle::tools {
namespace {

using nlohmann::ordered_json;
using Words = std::vector<std::string>;
using Clock = std::chrono::steady_clock;

// For the shell, in single quotes where it needs them.
std::string quoted(const std::string& word) {
  const bool plain =
      !word.empty() && word.find_first_of(" \t\n'\"\\$`*?;&|<>()[]{}~#!") == std::string::npos;
  if (plain) return word;
  std::string result = "'";
  for (char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string command_text(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + quoted(word);
  return text;
}

class Reduce : public Command {
 public:
  std::string_view name() const override { return "reduce"; }
  std::string_view summary() const override {
    return "shrinks a failing model to a small one that fails the same way";
  }

  void declare(CommandLine& line) override {
    open_.declare(line);
    inputs_.declare(line);
    line.group("What counts as failing (default: what heddle check finds)");
    line.text(test_, "--test", "COMMAND",
              "a shell command that exits with 0 while the model, {}, is still of interest");
    line.real(slower_, "--slower", "X", "the model takes X times as long as with --than");
    line.text(than_, "--than", "OPTIONS", "what --slower compares with (default: --fuse off)");
    line.real(rtol_, "--rtol", "X", "as for heddle check");
    line.real(atol_, "--atol", "X", "as for heddle check");
    line.group("Search");
    line.output(output_, "-o,--output", "F.hlo", "the small model (default: reduced.hlo)");
    line.real(budget_, "--budget", "SECONDS", "ends the search after this time (default: 600)");
    line.real(
        limits_seconds_, "--trial-seconds", "SECONDS",
        "time limit of one trial; a longer one counts as a hang (default: ten times the first one, "
        "from 2 to 60)");
    line.number(limits_mib_, "--trial-memory", "MIB",
                "limit of the address space of one trial (default: 16384)");
    compile_.declare(line);
    json_.declare(line);
    line.examples(
        "  heddle reduce model.onnx -o small.hlo\n"
        "  heddle reduce model.hlo --level O1 --slower 2\n"
        "  heddle reduce model.hlo --test 'heddle explain {} | grep -q online_softmax'\n");
  }

  Result<int> run() override {
    HEDDLE_RETURN_IF_ERROR(read_options());
    HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<hlo::Module> module, read_module());
    begin_ = Clock::now();
    trial_file_ = output_.work_path() + ".hlo";
    const std::string text = hlo::to_string(*module);
    Result<int> result = search(std::move(module), text);
    std::error_code ignored;
    std::filesystem::remove(trial_file_, ignored);
    return result;
  }

 private:
  Status read_options() {
    if (!compile_.stop_after.empty())
      return user_error("reduce: --stop-after does not produce a program");
    if (!test_.empty() && slower_)
      return user_error("reduce: --test and --slower are two questions; give one");
    if (slower_ && !(*slower_ > 0)) return user_error("--slower {}: wanted more than 0", *slower_);
    if (!(budget_.value_or(600) > 0) || !(limits_seconds_.value_or(60) > 0) ||
        limits_mib_.value_or(1) < 1)
      return user_error("--budget, --trial-seconds and --trial-memory: wanted more than 0");
    limits_.seconds = limits_seconds_.value_or(60);
    limits_.bytes = limits_mib_.value_or(16384) << 20;
    if (Result<heddle_compile_options> checked = compile_.options(); !checked)
      return tl::unexpected<Error>(checked.error());
    std::error_code error;
    self_ = std::filesystem::read_symlink("/proc/self/exe", error).string();
    return error ? machine_error("reduce: /proc/self/exe: {}", error.message()) : Status{};
  }

  // The graph, with the given inputs as constants: the model that is reduced has inputs of its own.
  Result<std::unique_ptr<hlo::Module>> read_module() {
    HEDDLE_ASSIGN_OR_RETURN(tensor::NamedLiterals given, inputs_.read());
    HEDDLE_ASSIGN_OR_RETURN(const ModelHandle handle, open_.open(given, inputs_));
    const api::Model& model = api::unwrap(handle.get());
    if (model.module() == nullptr)
      return user_error("{}: a compiled program has no graph to reduce", open_.model);
    std::unique_ptr<hlo::Module> module = model.module()->clone();
    if (given.empty()) return module;
    if (model.inputs().size() != module->entry()->parameters().size())
      return user_error("reduce: values cannot be given to leaves of a tuple parameter");
    HEDDLE_ASSIGN_OR_RETURN(InputValues values, inputs_.values(handle.get(), given));
    for (const auto& [name, unused] : given)
      for (size_t i = 0; i < model.inputs().size(); ++i)
        if (model.inputs()[i].name == name || model.inputs()[i].alias == name)
          fix_input(*module, static_cast<int64_t>(i), values.values[i]);
    clean(*module);
    return module;
  }

  Result<int> search(std::unique_ptr<hlo::Module> module, const std::string& text) {
    HEDDLE_ASSIGN_OR_RETURN(wanted_, trial(text));
    // An edit may make a loop endless.
    if (!limits_seconds_ && wanted_.kind != Failure::Kind::hang)
      limits_.seconds = std::clamp(10 * seconds(), 2.0, limits_.seconds);
    if (wanted_.kind == Failure::Kind::none)
      return user_error("{}: it does not fail, with {}; give the options with which it does",
                        open_.model, shown(open_.model));
    first_ = size_of(*module);
    tell("reduce: {}: {}; {}", to_string(wanted_.kind), wanted_.message,
         count_text(first_.operators, "operator"));
    HEDDLE_RETURN_IF_ERROR(write(text));
    ReducerHooks hooks;
    hooks.fails = [this](const std::string& next) -> Result<bool> {
      progress_.show(fmt::format("{} s, trial {}",
                                 Progress::bar(static_cast<int64_t>(seconds()),
                                               static_cast<int64_t>(budget_.value_or(600))),
                                 trials_ + 1));
      HEDDLE_ASSIGN_OR_RETURN(const Failure failure, trial(next));
      if (!(failure == wanted_)) return false;
      wanted_.message = failure.message;
      return true;
    };
    hooks.accepted = [this](const std::string& next, const ModuleSize& size,
                            const std::string& what) {
      progress_.hide();
      tell("reduce: {:>6.1f} s, trial {}: {}, {} ({})", seconds(), trials_,
           count_text(size.operators, "operator"), count_text(size.elems, "element"), what);
      return write(next);
    };
    hooks.out_of_time = [this] { return seconds() > budget_.value_or(600); };
    Reducer reducer(std::move(module), std::move(hooks));
    HEDDLE_RETURN_IF_ERROR(reducer.run());
    progress_.hide();
    return report(size_of(reducer.module()));
  }

  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  Status write_file(const std::string& path, const std::string& text) const {
    std::ofstream file(path);
    file << text << std::flush;
    return file.good() ? Status{} : machine_error("cannot write {}", path);
  }

  Status write(const std::string& text) const {
    return output_.write(fmt::format("// {}: {}\n// {}\n{}", to_string(wanted_.kind),
                                     wanted_.message, shown(output_.path), text));
  }

  // The options of the compilation that were given.
  Words options() const {
    Words words = compile_.words();
    if (open_.random_constants) words.emplace_back("--random-constants");
    if (!open_.kv_cache.empty()) words.insert(words.end(), {"--kv-cache", open_.kv_cache});
    if (inputs_.seed) words.insert(words.end(), {"--seed", std::to_string(*inputs_.seed)});
    return words;
  }

  Words check_command(const std::string& program, const std::string& model) const {
    Words words = {program, slower_ ? "bench" : "check", model};
    const Words chosen = options();
    words.insert(words.end(), chosen.begin(), chosen.end());
    if (rtol_) words.insert(words.end(), {"--rtol", fmt::format("{}", *rtol_)});
    if (atol_) words.insert(words.end(), {"--atol", fmt::format("{}", *atol_)});
    return words;
  }

  // The user's command for a model.
  std::string test_text(const std::string& model) const {
    std::string text = test_;
    const std::string path = quoted(model);
    if (text.find("{}") == std::string::npos) return text + " " + path;
    for (size_t at = 0; (at = text.find("{}", at)) != std::string::npos; at += path.size())
      text.replace(at, 2, path);
    return text;
  }

  // The command line that shows the failure of a model.
  std::string shown(const std::string& model) const {
    return test_.empty() ? command_text(check_command("heddle", model)) : test_text(model);
  }

  Result<Failure> trial(const std::string& text) {
    ++trials_;
    HEDDLE_RETURN_IF_ERROR(write_file(trial_file_, text));
    if (slower_) return trial_slower();
    if (test_.empty()) {
      Words words = check_command(self_, trial_file_);
      words.insert(words.end(), {"--json", "-"});
      HEDDLE_ASSIGN_OR_RETURN(const TrialOutcome outcome, run_trial(words, limits_));
      return failure_of(outcome);
    }
    HEDDLE_ASSIGN_OR_RETURN(const TrialOutcome outcome,
                            run_trial({"/bin/sh", "-c", test_text(trial_file_)}, limits_));
    if (outcome.status == 126 || outcome.status == 127)
      return user_error("--test {}: the shell cannot run it (status {}): {}", test_, outcome.status,
                        outcome.messages);
    if (outcome.status != 0) return Failure{};
    return Failure{Failure::Kind::test, "", "the test command exits with 0"};
  }

  // Best time of a run in nanoseconds; negative where it does not run.
  Result<double> best_ns(const Words& chosen) const {
    Words words = {self_, "bench", trial_file_, "--duration", "0.3", "--json", "-"};
    words.insert(words.end(), chosen.begin(), chosen.end());
    HEDDLE_ASSIGN_OR_RETURN(const TrialOutcome outcome, run_trial(words, limits_));
    const auto json = ordered_json::parse(outcome.output, nullptr, false);
    if (outcome.status != 0 || json.is_discarded()) return -1.0;
    return json["latency_ms"]["min"].get<double>() * 1e6;
  }

  Result<Failure> trial_slower() const {
    Words than;
    std::istringstream words(than_.empty() ? "--fuse off" : than_);
    for (std::string word; words >> word;) than.push_back(word);
    HEDDLE_ASSIGN_OR_RETURN(const double ours, best_ns(options()));
    HEDDLE_ASSIGN_OR_RETURN(const double other, best_ns(than));
    if (ours <= 0 || other <= 0 || ours < *slower_ * other) return Failure{};
    return Failure{Failure::Kind::slow, "",
                   fmt::format("{:.3g} times as long as with {}", ours / other,
                               than_.empty() ? "--fuse off" : than_)};
  }

  Result<int> report(const ModuleSize& size) {
    if (!json_.only_json()) {
      fmt::print("{}: {}\n", to_string(wanted_.kind), wanted_.message);
      fmt::print("{}: {} operators of {}, {} elements of {}; {} trials, {:.1f} s\n", output_.path,
                 size.operators, first_.operators, size.elems, first_.elems, trials_, seconds());
      fmt::print("{}\n", shown(output_.path));
    }
    ordered_json json;
    json["schema"] = 1;
    json["model"] = open_.model;
    json["output"] = output_.path;
    json["failure"] = {{"kind", to_string(wanted_.kind)}, {"message", wanted_.message}};
    json["operators"] = {{"before", first_.operators}, {"after", size.operators}};
    json["elements"] = {{"before", first_.elems}, {"after", size.elems}};
    json["trials"] = trials_;
    json["seconds"] = seconds();
    json["command"] = shown(output_.path);
    HEDDLE_RETURN_IF_ERROR(json_.write(json));
    return 0;
  }

  OpenChoices open_;
  InputChoices inputs_;
  CompileChoices compile_;
  JsonChoice json_;
  std::string test_, than_;
  OutputFile output_{"reduced.hlo"};
  std::optional<double> slower_, rtol_, atol_, budget_, limits_seconds_;
  std::optional<int64_t> limits_mib_;

  std::string self_, trial_file_;
  TrialLimits limits_;
  Failure wanted_;
  ModuleSize first_;
  int64_t trials_ = 0;
  Clock::time_point begin_;
  Progress progress_;
};

}  // namespace

std::unique_ptr<Command> make_reduce() { return std::make_unique<Reduce>(); }

}  // namespace heddle::tools
