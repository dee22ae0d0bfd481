// heddle compile: ahead of time.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "command_line.h"
#include "commands.h"
#include "emit_cuda.h"
#include "model_options.h"
#include "output_file.h"
#include "report.h"
#include "target/target.h"
#include "terminal.h"
#include "values.h"

namespace heddle::tools {
namespace {

class Compile : public Command {
 public:
  std::string_view name() const override { return "compile"; }
  std::string_view summary() const override {
    return "compiles a model to a file that runs without a compiler";
  }

  void declare(CommandLine& line) override {
    open_.declare(line);
    inputs_.declare_values(line);
    line.output(output_, "-o,--output", "F.heddle", "the file to write");
    line.choice(emit_, "--emit", {"program", "cuda"},
                "what to write; cuda: the kernels for a GPU as CUDA C++ (default: program)");
    compile_.declare(line);
    json_.declare(line);
    line.examples(
        "  heddle compile model.onnx -o model.heddle\n"
        "  heddle compile model.onnx --dim 'sequence=<=512' -o model.heddle\n"
        "  heddle compile model.onnx --stop-after=fuse\n"
        "  heddle compile model.onnx --target sm_90 -o model.heddle\n"
        "  heddle compile model.onnx --emit cuda --target sm_90 -o model.cu\n");
  }

  Result<int> run() override {
    HEDDLE_ASSIGN_OR_RETURN(ModelHandle model, open_.open(inputs_));
    if (emit_ == "cuda") return emit_cuda(model.get(), open_.model, compile_, output_, json_);
    // What a GPU will run needs none here.
    const auto target = target::find_target(compile_.target);
    if (target && target->kind == target::DeviceKind::gpu && compile_.device.empty())
      compile_.device = "cuda";
    HEDDLE_ASSIGN_OR_RETURN(const bool stopped, compile_.stopped(model.get()));
    if (stopped) return 0;
    if (!output_.given()) return user_error("compile: no output was named; add -o F.heddle");
    if (info_of(model.get()).is_program) return user_error("{}: is already compiled", open_.model);
    HEDDLE_RETURN_IF_ERROR(check_no_text(model.get()));
    const double import_ms = info_of(model.get()).import_ms;
    HEDDLE_ASSIGN_OR_RETURN(const ProgramHandle program, compile_.compile(model.get(), true));
    model.reset();
    HEDDLE_RETURN_IF_ERROR(output_.publish(
        to_status(heddle_program_save(program.get(), output_.work_path().c_str()))));
    const heddle_program_info info = info_of(program.get());
    const std::string programs =
        info.compilations > 1 ? fmt::format("{} programs, the last ", info.compilations) : "";
    std::error_code ignored;
    const auto bytes = static_cast<int64_t>(std::filesystem::file_size(output_.path, ignored));
    if (!json_.only_json()) {
      fmt::print("{}: {}, {}{} kernels, {} launches, {} for {}\n", output_.path, bytes_text(bytes),
                 programs, info.kernels, info.launches, info.options, info.target);
      print_notes(program.get());
      tell("import {}, compile {} (cache {})", ms_text(import_ms), ms_text(info.compile_ms),
           info.cache_warm ? "warm" : "cold");
    }
    nlohmann::ordered_json json;
    json["schema"] = 1;
    json["model"] = open_.model;
    json["output"] = output_.path;
    json["bytes"] = bytes;
    json["target"] = info.target;
    json["isa"] = info.isa;
    json["level"] = info.level;
    json["precision"] = info.precision;
    json["cache"] = info.cache_warm ? "warm" : "cold";
    json["compilations"] = info.compilations;
    json["kernels"] = info.kernels;
    json["launches"] = info.launches;
    json["import_ms"] = import_ms;
    json["compile_ms"] = info.compile_ms;
    json["notes"] = notes_of(program.get());
    HEDDLE_RETURN_IF_ERROR(json_.write(json));
    return 0;
  }

 private:
  // A program in a file has numbers only, not the strings that they stand for.
  Status check_no_text(const heddle_model* model) const {
    const heddle_model_info info = info_of(model);
    for (int64_t i = 0; i < info.inputs + info.outputs; ++i) {
      const heddle_port port =
          i < info.inputs ? input_of(model, i) : output_of(model, i - info.inputs);
      if (port.is_text != 0)
        return user_error(
            "{}: {} has strings, which a program file cannot hold; run the model itself",
            open_.model, port.name);
    }
    return {};
  }

  OpenChoices open_;
  InputChoices inputs_;
  CompileChoices compile_;
  JsonChoice json_;
  OutputFile output_;
  std::string emit_ = "program";
};

}  // namespace

std::unique_ptr<Command> make_compile() { return std::make_unique<Compile>(); }

}  // namespace heddle::tools
