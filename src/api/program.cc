// Common parts of both kinds of Program, and the points at which a compilation can be inspected.
#include <algorithm>
#include <array>

#include "api/background.h"
#include "api/bounded.h"
#include "api/compiled.h"
#include "api/late.h"
#include "api/ports.h"
#include "api/session.h"
#include "compiler/compiler.h"
#include "compiler/passes.h"
#include "compiler/pipeline.h"
#include "hlo/module.h"
#include "hlo/text.h"
#include "pass/run.h"
#include "program/saved.h"
#include "program/text.h"

namespace heddle::api {
namespace {

constexpr std::array<std::string_view, 6> kPoints = {"import",   "optimize", "fuse",
                                                     "schedule", "stitch",   "plan"};

// The graph after the first run of a pass, or (empty name) after all passes.
Result<std::string> optimized_text(const hlo::Module& module, const Settings& settings,
                                   const std::string& stop_after) {
  const std::unique_ptr<hlo::Module> copy = module.clone();
  pass::RunOptions run = compiler::pass_options(settings.compiler);
  run.stop_after = stop_after;
  HEDDLE_ASSIGN_OR_RETURN(
      const pass::RunReport report,
      pass::run(*copy, compiler::graph_pipeline(settings.compiler, settings.target),
                compiler::graph_passes(), run));
  if (!stop_after.empty() && !report.stopped)
    return user_error("stop after '{}': no such pass in the pipeline of {}", stop_after,
                      level_name(settings.compiler));
  return hlo::to_string(*copy);
}

std::string kernel_texts(const program::Program& program, bool schedules) {
  std::string text;
  for (const program::Kernel& kernel : program.kernels) {
    if (!text.empty()) text += "\n";
    text += schedules ? fmt::format("// {}\n{}", kernel.name, kernel.schedule) : kernel.text;
    if (!text.empty() && text.back() != '\n') text += '\n';
  }
  return text;
}

}  // namespace

Result<program::Program> Program::take() const {
  return user_error("this program cannot be saved to a file; compile it for cpu or cuda");
}

Status Context::bind_device(bool input, int64_t number, void*) {
  return user_error(
      "{} {}: GPU memory can be bound only to contexts of device cuda, of models without bounded "
      "dimensions that are not compiled in the background",
      input ? "input" : "output", number);
}

bool Program::checks_input(int64_t number) const {
  return std::any_of(index_checks_.begin(), index_checks_.end(),
                     [&](const tensor::IndexCheck& check) { return check.input == number; });
}

Program::Program() : report_(std::make_unique<compiler::Report>()) {}
Program::~Program() = default;

Result<std::unique_ptr<Context>> Program::make_context() {
  return make_context(std::make_shared<runtime::Cancellation>());
}

Status Context::set_input_shape(int64_t number, const std::vector<int64_t>&) {
  return error_of(
      ErrorKind::shape,
      "input {}: its shape is fixed; open the model with `late` for shapes that differ from run to "
      "run",
      number);
}

Status Context::set_extent(const std::string& name, int64_t) {
  return user_error("dimension '{}': this program has fixed extents only", name);
}

RunSteps Context::steps(RunRequest request) {
  auto launch = [this, asked = std::move(request)]() -> Status {
    for (const auto& [name, extent] : asked.extents)
      HEDDLE_RETURN_IF_ERROR(set_extent(name, extent));
    for (size_t i = 0; i < asked.inputs.size(); ++i)
      HEDDLE_RETURN_IF_ERROR(bind_input(static_cast<int64_t>(i), asked.inputs[i]));
    for (size_t i = 0; i < asked.outputs.size(); ++i)
      HEDDLE_RETURN_IF_ERROR(bind_output(static_cast<int64_t>(i), asked.outputs[i]));
    return run();
  };
  return {nullptr, nullptr, std::move(launch)};
}

std::span<const std::string_view> stop_points() { return kPoints; }

Result<std::shared_ptr<Program>> Program::compile(Model& model, const CompileOptions& options) {
  HEDDLE_RETURN_IF_ERROR(check_ports(model.inputs_, "input"));
  HEDDLE_RETURN_IF_ERROR(check_ports(model.outputs_, "output"));
  if (model.is_program_) {
    DeviceRequest where{options.device, 1, options.allocator};
    HEDDLE_RETURN_IF_ERROR(open_device(where));
    HEDDLE_ASSIGN_OR_RETURN(where.threads, read_threads(options.threads));
    if (!model.saved_)
      return user_error("program {} was consumed by an earlier use; open it again", model.name_);
    const std::shared_ptr<const program::Saved> saved =
        options.consume_model ? std::move(model.saved_) : model.saved_;
    HEDDLE_ASSIGN_OR_RETURN(const target::Target target,
                            target::parse_target(saved->variants[0].program.target));
    const char* own = target.kind == target::DeviceKind::gpu ? "cuda" : "cpu";
    if (where.text.empty()) where.text = own;
    HEDDLE_ASSIGN_OR_RETURN(const auto device, open_device(where));
    if (device->interprets() || !device->runs(target.kind))
      return user_error(
          "device '{}': a compiled program runs only on the device it was compiled for, {}",
          options.device, own);
    if (model.bounded_) return load_bounded(model, saved, where, options.dump);
    return load_for_device(program::Program(saved->variants[0].program), model, where,
                           options.dump);
  }
  if (!model.module_)
    return user_error("model {} was consumed by an earlier compilation; open it again",
                      model.name_);
  HEDDLE_ASSIGN_OR_RETURN(const Settings settings, read_settings(options));
  const bool interpreted = settings.device->interprets();
  if (model.late_) return compile_late(model, options, interpreted);
  if (model.bounded_) {
    CompileOptions plain = options;
    plain.background = false;  // each specialisation is compiled on demand
    return compile_bounded(model, plain, interpreted);
  }
  if (options.background && !interpreted && settings.compiler.level != compiler::Level::O0) {
    HEDDLE_ASSIGN_OR_RETURN(auto program, compile_in_background(model, options));
    if (options.consume_model) model.module_.reset();
    return program;
  }
  std::unique_ptr<hlo::Module> module =
      options.consume_model ? std::move(model.module_) : model.module_->clone();
  if (interpreted)
    return interpret(std::move(module), model, settings.device->name() == "interp:f64");
  return compile_for_device(std::move(module), model, settings);
}

Result<std::string> compile_until(const Model& model, const CompileOptions& options,
                                  const std::string& point) {
  if (model.is_program())
    return user_error("stop after '{}': {} is already compiled", point, model.name());
  if (model.module() == nullptr)
    return user_error("model {} was consumed by an earlier compilation; open it again",
                      model.name());
  CompileOptions looked_at = options;
  looked_at.explain = true;
  looked_at.code = false;
  HEDDLE_ASSIGN_OR_RETURN(const Settings settings, read_settings(looked_at));
  std::unique_ptr<Model> bucket;
  if (model.bounded()) {
    Bucket taken;
    std::string why_exact;
    HEDDLE_ASSIGN_OR_RETURN(
        import::Imported imported,
        import_bucket(*model.bounded(), model.bounded()->first, &taken, &why_exact));
    bucket = Model::from_imported(std::move(imported));
  }
  const Model& from = model.bounded() ? *bucket : model;
  const hlo::Module& module = *from.module();
  if (point == "import") return hlo::to_string(module);
  if (point == "optimize") return optimized_text(module, settings, {});
  if (compiler::graph_passes().find(point)) return optimized_text(module, settings, point);
  if (compiler::module_passes().find(point))
    return compiler::text_behind(module.clone(), settings.target, settings.compiler, point);
  std::string words;
  bool known = false;
  for (std::string_view name : kPoints) {
    words += (words.empty() ? "" : ", ") + std::string(name);
    known = known || name == point;
  }
  if (!known)
    return user_error(
        "stop after '{}': no such point; use one of {}, or a pass that heddle opt --list names",
        point, words);
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<Program> program,
                          compile_for_device(module.clone(), from, settings));
  if (point == "fuse") return program->report().fused_module;
  if (point == "plan") return program::to_string(*program->compiled());
  return kernel_texts(*program->compiled(), point == "schedule");
}

}  // namespace heddle::api
