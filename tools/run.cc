// heddle run: a model, once.
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "command_line.h"
#include "commands.h"
#include "model_options.h"
#include "report.h"
#include "values.h"

namespace heddle::tools {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;

class Run : public Command {
 public:
  std::string_view name() const override { return "run"; }
  std::string_view summary() const override { return "runs a model once and shows its outputs"; }

  void declare(CommandLine& line) override {
    open_.declare(line);
    inputs_.declare(line);
    compile_.declare(line);
    json_.declare(line);
    line.text(outputs_, "--outputs", "F.npz", "where the outputs go");
    line.examples(
        "  heddle run model.onnx\n"
        "  heddle run model.onnx --dim batch=4 --inputs in.npz --outputs out.npz\n"
        "  heddle run softmax.hlo --input 'arg0=2x3xf32=1 2 3 4 5 6' --json -\n");
  }

  Result<int> run() override {
    HEDDLE_ASSIGN_OR_RETURN(tensor::NamedLiterals given, inputs_.read());
    HEDDLE_ASSIGN_OR_RETURN(const ModelHandle model, open_.open(given));
    HEDDLE_ASSIGN_OR_RETURN(const bool stopped, compile_.stopped(model.get()));
    if (stopped) return 0;
    HEDDLE_ASSIGN_OR_RETURN(InputValues inputs, inputs_.values(model.get(), given));
    given.clear();
    HEDDLE_ASSIGN_OR_RETURN(const ProgramHandle program, compile_.compile(model.get(), true));
    const Clock::time_point begin = Clock::now();
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<tensor::Literal> outputs,
                            run_once(program.get(), inputs.values));
    const double run_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    if (!outputs_.empty()) HEDDLE_RETURN_IF_ERROR(write_outputs(outputs_, model.get(), outputs));
    if (!json_.only_json()) print(model.get(), program.get(), inputs, outputs, run_ms);
    HEDDLE_RETURN_IF_ERROR(json_.write(json(model.get(), program.get(), inputs, outputs, run_ms)));
    return 0;
  }

 private:
  void print(const heddle_model* model, const heddle_program* program, const InputValues& inputs,
             const std::vector<tensor::Literal>& outputs, double run_ms) const {
    const heddle_program_info info = info_of(program);
    fmt::print("{} on {}\n", open_.model, where_text(info));
    fmt::print("inputs: {}\n", inputs.description);
    print_notes(program);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const heddle_port port = output_of(model, static_cast<int64_t>(i));
      fmt::print("output {} {}: {}\n", port.name, shape_text(port), value_text(outputs[i]));
    }
    fmt::print(stderr, "import {}, compile {} (cache {}), first run {}\n",
               ms_text(info_of(model).import_ms), ms_text(info.compile_ms),
               info.cache_warm ? "warm" : "cold", ms_text(run_ms));
  }

  ordered_json json(const heddle_model* model, const heddle_program* program,
                    const InputValues& inputs, const std::vector<tensor::Literal>& outputs,
                    double run_ms) const {
    const heddle_program_info info = info_of(program);
    ordered_json json;
    json["schema"] = 1;
    json["model"] = open_.model;
    json["device"] = info.device;
    json["isa"] = info.isa;
    json["threads"] = info.threads;
    json["level"] = info.level;
    json["precision"] = info.precision;
    json["cache"] = info.cache_warm ? "warm" : "cold";
    json["inputs"] = inputs.description;
    json["random_inputs"] = inputs.random;
    json["seed"] = inputs_.seed_or_default();
    json["notes"] = notes_of(program);
    json["import_ms"] = info_of(model).import_ms;
    json["compile_ms"] = info.compile_ms;
    json["first_run_ms"] = run_ms;
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
  std::string outputs_;
};

}  // namespace

std::unique_ptr<Command> make_run() { return std::make_unique<Run>(); }

}  // namespace heddle::tools
