// heddle run: a model, once.
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "api/snapshot.h"
#include "command_line.h"
#include "commands.h"
#include "extent_sweep.h"
#include "loss_scale.h"
#include "model_options.h"
#include "output_file.h"
#include "report.h"
#include "terminal.h"
#include "values.h"

namespace heddle::tools {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;

// Says once how long many steps will take, and on a terminal how far they are.
class StepProgress {
 public:
  explicit StepProgress(int64_t steps) : steps_(steps) {}

  void show(int64_t done) {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    if (done == steps_) return progress_.hide();
    if (seconds < next_) return;
    const double left = seconds / static_cast<double>(done) * static_cast<double>(steps_ - done);
    if (next_ == kFirstSeconds && left > kLongSeconds)
      tell("note: {} steps take about {}; Ctrl-C ends them", steps_, time_text(left));
    progress_.show(fmt::format("{}  {} to go", Progress::bar(done, steps_), time_text(left)));
    next_ = seconds + kEachSeconds;
  }

 private:
  static constexpr double kFirstSeconds = 0.5, kEachSeconds = 0.2, kLongSeconds = 10;

  static std::string time_text(double seconds) {
    constexpr double kHour = 3600, kDay = 24 * kHour;
    if (seconds < 2 * kHour) return fmt::format("{:.0f} s", seconds);
    return seconds < 2 * kDay ? fmt::format("{:.0f} hours", seconds / kHour)
                              : fmt::format("{:.0f} days", seconds / kDay);
  }

  const int64_t steps_;
  const Clock::time_point begin_ = Clock::now();
  double next_ = kFirstSeconds;
  Progress progress_;
};

class Run : public Command {
 public:
  std::string_view name() const override { return "run"; }
  std::string_view summary() const override { return "runs a model once and shows its outputs"; }

  void declare(CommandLine& line) override {
    open_.declare(line);
    inputs_.declare(line);
    compile_.declare(line);
    json_.declare(line);
    line.output(outputs_, "--outputs", "F.npz", "where the outputs go");
    line.number(steps_, "--steps", "N",
                "runs with the same inputs (default: 1); the outputs are those of the last. "
                "Ctrl-C ends early");
    line.flag(compile_.background, "--async",
              "starts at once with a program of level O0, and switches to the requested one when "
              "that is compiled");
    line.examples(
        "  heddle run model.onnx\n"
        "  heddle run model.onnx --dim batch=4 --inputs in.npz --outputs out.npz\n"
        "  heddle run model.onnx --async --steps 20\n"
        "  heddle run model.onnx --dim length=1..512\n"
        "  heddle run softmax.hlo --input 'arg0=2x3xf32=1 2 3 4 5 6' --json -\n");
  }

  Result<int> run() override {
    if (steps_.value_or(1) < 1) return user_error("--steps: got {}, wanted at least 1", *steps_);
    HEDDLE_ASSIGN_OR_RETURN(const std::optional<ExtentRange> range, find_range(open_.dims));
    if (range) return run_range(*range);
    HEDDLE_ASSIGN_OR_RETURN(tensor::NamedLiterals given, inputs_.read());
    HEDDLE_ASSIGN_OR_RETURN(const api::Snapshot snapshot, api::use_snapshot(open_.model, given));
    HEDDLE_ASSIGN_OR_RETURN(const ModelHandle model, open_.open(given, inputs_));
    HEDDLE_ASSIGN_OR_RETURN(const bool stopped, compile_.stopped(model.get()));
    if (stopped) return 0;
    HEDDLE_ASSIGN_OR_RETURN(InputValues inputs, inputs_.values(model.get(), given));
    if (snapshot.used) inputs.description = "of the snapshot";
    given.clear();
    HEDDLE_ASSIGN_OR_RETURN(const ProgramHandle program, compile_.compile(model.get(), true));
    HEDDLE_ASSIGN_OR_RETURN(std::vector<tensor::Literal> outputs, make_outputs(program.get()));
    HEDDLE_ASSIGN_OR_RETURN(const Steps steps, run_steps(program.get(), inputs.values, outputs));
    if (outputs_.given()) HEDDLE_RETURN_IF_ERROR(write_outputs(outputs_, model.get(), outputs));
    HEDDLE_ASSIGN_OR_RETURN(const std::string failures, failed_assertions(model.get(), outputs));
    if (!json_.only_json()) {
      print(model.get(), program.get(), inputs, outputs, steps);
      print_assertions(heddle_model_assertions(model.get()), failures);
    }
    ordered_json result = json(model.get(), program.get(), inputs, outputs, steps);
    if (heddle_model_assertions(model.get()) > 0) result["assertions_hold"] = failures.empty();
    HEDDLE_RETURN_IF_ERROR(json_.write(result));
    return failures.empty() ? 0 : 1;
  }

 private:
  // Every extent of --dim NAME=FIRST..LAST, once.
  Result<int> run_range(const ExtentRange& range) {
    if (outputs_.given() || steps_ || compile_.background || !compile_.stop_after.empty())
      return user_error(
          "--dim {}={}..{}: --outputs, --steps, --async and --stop-after are for one extent",
          range.name, range.first, range.last);
    HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<ExtentSweep> sweep,
                            ExtentSweep::begin(open_, inputs_, compile_, range));
    const bool text = !json_.only_json();
    if (text) fmt::print("{}\n", sweep->head_text(open_.model));
    if (text) fmt::print("inputs: {}\n", sweep->inputs_description());
    if (text) print_notes(sweep->program());
    ordered_json extents = ordered_json::array();
    for (int64_t n = range.first; n <= range.last; n += range.step) {
      sweep->show_progress(n);
      HEDDLE_RETURN_IF_ERROR(sweep->set_extent(n));
      HEDDLE_ASSIGN_OR_RETURN(const double ms, sweep->timed_run());
      sweep->hide_progress();
      ordered_json one{{range.name, n}, {"run_ms", ms}, {"outputs", ordered_json::array()}};
      for (size_t i = 0; i < sweep->outputs().size(); ++i) {
        const tensor::Literal& value = sweep->outputs()[i];
        if (text)
          fmt::print("{}={} output {} {}: {}\n", range.name, n, sweep->output_name(i),
                     tensor::to_string(value.shape(), false), value_text(value));
        ordered_json output{{"name", sweep->output_name(i)}};
        output.update(value_json(value));
        one["outputs"].push_back(std::move(output));
      }
      extents.push_back(std::move(one));
    }
    if (text) fmt::print("{}\n", sweep->counts_text());
    HEDDLE_RETURN_IF_ERROR(json_.write(sweep->json(open_.model, std::move(extents))));
    return 0;
  }

  // Of a StableHLO test, a line each.
  static Result<std::string> failed_assertions(const heddle_model* model,
                                               const std::vector<tensor::Literal>& outputs) {
    if (heddle_model_assertions(model) == 0) return std::string();
    std::vector<const void*> data;
    for (const tensor::Literal& output : outputs) data.push_back(output.data());
    char* text = nullptr;
    HEDDLE_RETURN_IF_ERROR(to_status(heddle_model_check_outputs(model, data.data(), &text)));
    std::string failures = text == nullptr ? "" : text;
    heddle_string_free(text);
    return failures;
  }

  static void print_assertions(int64_t count, const std::string& failures) {
    if (count == 0) return;
    if (!failures.empty()) return fmt::print("assertions fail:\n{}\n", failures);
    fmt::print("assertions: {}, all hold\n", count);
  }

  struct Steps {
    double first_ms = 0;
    int64_t done = 0;         // fewer than were asked for: Ctrl-C
    int64_t swapped_at = -1;  // the first that found the other program ready, from 0; -1: none
    std::optional<LossScale> loss_scale;  // behind the last
  };

  Result<Steps> run_steps(heddle_program* program, std::vector<tensor::Literal>& inputs,
                          std::vector<tensor::Literal>& outputs) const {
    heddle_context* created = nullptr;
    HEDDLE_RETURN_IF_ERROR(to_status(heddle_context_create(program, &created)));
    const ContextHandle context(created);
    HEDDLE_RETURN_IF_ERROR(bind(context.get(), inputs, outputs));
    Steps steps;
    const int64_t wanted = steps_.value_or(1);
    StepProgress progress(wanted);
    // Ctrl-C ends the run after the step at hand; its outputs are the result.
    std::optional<Interrupt> interrupt;
    if (wanted > 1) interrupt.emplace();
    for (; steps.done < wanted && !(interrupt && Interrupt::asked()); ++steps.done) {
      if (compile_.background && steps.swapped_at < 0)
        HEDDLE_RETURN_IF_ERROR(look_for_swap(program, steps));
      const Clock::time_point begin = Clock::now();
      HEDDLE_RETURN_IF_ERROR(to_status(heddle_context_run(context.get())));
      if (steps.done == 0)
        steps.first_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
      HEDDLE_ASSIGN_OR_RETURN(steps.loss_scale, loss_scale_of(program));
      if (steps.loss_scale) HEDDLE_RETURN_IF_ERROR(check_loss_scale(*steps.loss_scale));
      progress.show(steps.done + 1);
    }
    if (steps.done < wanted) tell("note: interrupted after {} of {} steps", steps.done, wanted);
    if (compile_.background && steps.swapped_at < 0)
      tell("note: the requested program was not ready within {} steps", steps.done);
    return steps;
  }

  static Status look_for_swap(heddle_program* program, Steps& steps) {
    int32_t ready = 0;
    HEDDLE_RETURN_IF_ERROR(to_status(heddle_program_wait(program, 0, &ready)));
    if (!ready) return {};
    steps.swapped_at = steps.done;
    const heddle_program_info info = info_of(program);
    tell("step {}: switched to level {} (compiled in {}); results {}", steps.done, info.level,
         ms_text(info.compile_ms),
         info.swap == std::string_view("bits") ? "keep their bits" : "differ by rounding");
    return {};
  }

  void print(const heddle_model* model, const heddle_program* program, const InputValues& inputs,
             const std::vector<tensor::Literal>& outputs, const Steps& steps) const {
    const heddle_program_info info = info_of(program);
    fmt::print("{}\n", to_string(Head{open_.model, where_text(info), unbound_of(model),
                                      inputs.all_random, inputs_.seed_or_default()}));
    fmt::print("inputs: {}\n", inputs.description);
    print_notes(program);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const heddle_port port = output_of(program, static_cast<int64_t>(i));
      fmt::print("output {} {}: {}\n", port.name, shape_text(port), value_text(outputs[i]));
    }
    if (steps.loss_scale) fmt::print("{}\n", to_string(*steps.loss_scale));
    tell("import {}, compile {} (cache {}), first run {}", ms_text(info_of(model).import_ms),
         ms_text(info.compile_ms), info.cache_warm ? "warm" : "cold", ms_text(steps.first_ms));
  }

  ordered_json json(const heddle_model* model, const heddle_program* program,
                    const InputValues& inputs, const std::vector<tensor::Literal>& outputs,
                    const Steps& steps) const {
    const heddle_program_info info = info_of(program);
    ordered_json json = json_head(open_.model, info);
    json["bound_dimensions"] = to_json(unbound_of(model));
    json["inputs"] = inputs.description;
    json["random_inputs"] = inputs.random;
    json["seed"] = inputs_.seed_or_default();
    json["notes"] = notes_of(program);
    json["import_ms"] = info_of(model).import_ms;
    json["compile_ms"] = info.compile_ms;
    json["first_run_ms"] = steps.first_ms;
    json["steps"] = steps.done;
    if (steps.loss_scale) json["loss_scale"] = to_json(*steps.loss_scale);
    if (compile_.background) json["swap"] = {{"step", steps.swapped_at}, {"results", info.swap}};
    json["outputs"] = ordered_json::array();
    for (size_t i = 0; i < outputs.size(); ++i) {
      ordered_json output{{"name", output_of(model, static_cast<int64_t>(i)).name}};
      output.update(value_json(outputs[i]));
      json["outputs"].push_back(std::move(output));
    }
    return json;
  }

  OpenChoices open_;
  InputChoices inputs_;
  CompileChoices compile_;
  JsonChoice json_;
  OutputFile outputs_;
  std::optional<int64_t> steps_;
};

}  // namespace

std::unique_ptr<Command> make_run() { return std::make_unique<Run>(); }

}  // namespace heddle::tools
