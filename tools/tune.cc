// heddle tune: measures ways to compute a model's products and convolutions, and keeps the best.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/tune_list.h"
#include "cache/object_cache.h"
#include "cache/tuning_store.h"
#include "command_line.h"
#include "commands.h"
#include "import/mapped_file.h"
#include "model_options.h"
#include "output_file.h"
#include "report.h"
#include "session_options.h"
#include "terminal.h"
#include "values.h"

namespace heddle::tools {
namespace {

class Tune : public Command {
 public:
  std::string_view name() const override { return "tune"; }
  std::string_view summary() const override {
    return "measures ways to compute a model and keeps the best";
  }

  void declare(CommandLine& line) override {
    open_.declare(line);
    inputs_.declare_values(line);
    line.group("Tuning");
    line.number(budget_, "--budget", "SECONDS",
                "starts no measurement after this time (default: 300)");
    line.number(candidates_, "--candidates", "N",
                "candidates to try for each shape, at most (default: 12)");
    line.flag(again_, "--again", "measures again what already has a record");
    line.flag(list_, "--list",
              "lists the candidates of each shape, for any CPU, and measures nothing");
    line.output(export_, "--export", "F.txt",
                "also writes the tuning records of all models as text");
    line.text(import_, "--import", "F.txt", "first reads the tuning records in such a text");
    line.files()->reads([this](const FileUse::Add& add) {
      add("--import", import_);
      if (const std::string folder = cache::chosen_directory(compile_.cache); !folder.empty())
        add("--cache", cache::tuning_file(folder));
    });
    compile_.declare(line);
    json_.declare(line);
    line.examples(
        "  heddle tune model.onnx --budget 60\n"
        "  heddle tune model.onnx --export records.txt\n"
        "  heddle tune model.onnx --list --target spr\n");
  }

  Result<int> run() override {
    if (budget_ && *budget_ < 1) return user_error("--budget {}: wanted at least 1", *budget_);
    if (candidates_ && (*candidates_ < 1 || *candidates_ > 1000))
      return user_error("--candidates {}: wanted 1 to 1000", *candidates_);
    if (!compile_.stop_after.empty())
      return user_error("tune: --stop-after does not produce a program");
    if (!import_.empty()) HEDDLE_RETURN_IF_ERROR(import_records());
    HEDDLE_ASSIGN_OR_RETURN(const ModelHandle model, open_.open(inputs_));
    if (list_) return list(model.get());
    HEDDLE_ASSIGN_OR_RETURN(const heddle_compile_options options, compile_.options());
    auto tuning = sized<heddle_tune_options>();
    tuning.budget_seconds = static_cast<double>(budget_.value_or(0));
    tuning.candidates = candidates_.value_or(0);
    tuning.again = again_;
    tuning.context = this;
    tuning.progress = [](const heddle_tune_progress* progress, void* self) -> int32_t {
      static_cast<Tune*>(self)->show(*progress);
      return Interrupt::asked() ? 1 : 0;
    };
    auto result = sized<heddle_tune_result>();
    {
      // Ctrl-C ends the tuning after the task at hand; what was measured is kept.
      const Interrupt interrupt;
      HEDDLE_RETURN_IF_ERROR(to_status(heddle_tune(model.get(), &options, &tuning, &result)));
    }
    progress_.hide();
    if (export_.given()) HEDDLE_RETURN_IF_ERROR(export_records());
    if (!json_.only_json()) print(result);
    HEDDLE_RETURN_IF_ERROR(json_.write(json(result)));
    return 0;
  }

 private:
  Result<int> list(const heddle_model* model) {
    constexpr int64_t kAll = 1000;
    HEDDLE_ASSIGN_OR_RETURN(const api::CompileOptions options, session_options(compile_));
    HEDDLE_ASSIGN_OR_RETURN(
        const std::vector<api::TuneShape> shapes,
        api::tune_list(api::unwrap(model), options, candidates_.value_or(kAll)));
    nlohmann::ordered_json json = {{"schema", 1}, {"model", open_.model}};
    json["shapes"] = nlohmann::ordered_json::array();
    for (const api::TuneShape& shape : shapes) {
      json["shapes"].push_back({{"key", shape.key},
                                {"name", shape.name},
                                {"uses", shape.uses},
                                {"candidates", shape.candidates},
                                {"records", shape.records}});
      if (json_.only_json()) continue;
      fmt::print("{} ({}, {} use{}): {} candidates\n", shape.key, shape.name, shape.uses,
                 shape.uses == 1 ? "" : "s", shape.candidates);
      for (size_t i = 0; i < shape.records.size(); ++i)
        fmt::print("  {}{}\n", shape.records[i], i == 0 ? "  (without tuning)" : "");
    }
    HEDDLE_RETURN_IF_ERROR(json_.write(json));
    return 0;
  }

  // A bar on a terminal; elsewhere a line a task that was measured.
  void show(const heddle_tune_progress& progress) {
    tasks_.push_back({{"key", progress.key},
                      {"record", progress.record},
                      {"known", progress.known != 0},
                      {"ns", progress.ns},
                      {"untuned_ns", progress.untuned_ns},
                      {"candidates", progress.candidates},
                      {"measured", progress.measured}});
    const double gain = progress.ns > 0 ? progress.untuned_ns / progress.ns : 1;
    if (progress_.is_shown()) {
      const double each =
          progress.seconds / static_cast<double>(std::max<int64_t>(progress.done, 1));
      progress_.show(fmt::format("{}  {:.0f} s, {:.0f} s to go  {:.2f}x  {:.40}",
                                 Progress::bar(progress.done, progress.tasks), progress.seconds,
                                 each * static_cast<double>(progress.tasks - progress.done), gain,
                                 progress.key));
    } else if (!progress.known) {
      tell("{}/{} {}: {:.1f} us, untuned {:.1f} us: {}", progress.done, progress.tasks,
           progress.key, progress.ns / 1e3, progress.untuned_ns / 1e3, progress.record);
    }
  }

  void print(const heddle_tune_result& result) const {
    fmt::print(
        "{}: {} measured, {} already known, {} left for lack of time; {} faster than untuned\n",
        count_text(result.tasks, "shape"), result.measured, result.known, result.left,
        result.faster);
    if (result.measured > 0)
      fmt::print(
          "all shapes together: {:.2f} ms in a run, {:.2f} ms before tuning; tuning took {:.1f} s\n"
          "{} measured, {} of them compiled for it, the others from the cache\n",
          result.ns / 1e6, result.untuned_ns / 1e6, result.seconds,
          count_text(result.samples, "program"), result.compiled);
    fmt::print("{}\n", result.left == 0 ? "pass: every shape has a record"
                                        : "pass: out of time; repeat the command to continue");
  }

  nlohmann::ordered_json json(const heddle_tune_result& result) const {
    nlohmann::ordered_json json;
    json["schema"] = 1;
    json["model"] = open_.model;
    json["shapes"] = result.tasks;
    json["measured"] = result.measured;
    json["known"] = result.known;
    json["left"] = result.left;
    json["faster"] = result.faster;
    json["ms"] = result.ns / 1e6;
    json["untuned_ms"] = result.untuned_ns / 1e6;
    json["seconds"] = result.seconds;
    json["samples"] = result.samples;
    json["compiled"] = result.compiled;
    json["tasks"] = tasks_;
    return json;
  }

  Result<cache::TuningStore> store() const {
    const std::string directory = cache::chosen_directory(compile_.cache);
    if (directory.empty())
      return user_error(
          "tuning keeps its records in the cache folder, which is off; name a folder");
    return cache::TuningStore::open(directory);
  }

  Status import_records() const {
    const auto file = import::MappedFile::open(import_);
    if (!file) return error_in("--import", file.error());
    auto records = cache::parse_tuning_text((*file)->bytes());
    if (!records) return user_error("--import {}: {}", import_, records.error().message);
    HEDDLE_ASSIGN_OR_RETURN(cache::TuningStore store, this->store());
    for (const cache::TuningRecord& record : *records) HEDDLE_RETURN_IF_ERROR(store.put(record));
    return {};
  }

  Status export_records() const {
    HEDDLE_ASSIGN_OR_RETURN(const cache::TuningStore store, this->store());
    HEDDLE_ASSIGN_OR_RETURN(const auto records, store.records(""));
    return export_.write(cache::to_text(records));
  }

  OpenChoices open_;
  InputChoices inputs_;
  CompileChoices compile_;
  std::optional<int64_t> budget_, candidates_;
  bool again_ = false, list_ = false;
  Progress progress_;
  std::string import_;
  OutputFile export_;
  nlohmann::ordered_json tasks_ = nlohmann::ordered_json::array();
  JsonChoice json_;
};

}  // namespace

std::unique_ptr<Command> make_tune() { return std::make_unique<Tune>(); }

}  // namespace heddle::tools
