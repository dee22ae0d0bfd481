// Advice for a model: the predictions of compiler/advise.h with the options of a compilation, and
// the measured cost of activations on this machine.
#include "compiler/advise.h"

#include <time.h>

#include <algorithm>
#include <cmath>

#include "api/compiled.h"
#include "api/session.h"
#include "api/settings.h"
#include "hlo/module.h"
#include "target/target.h"

namespace heddle::api {
namespace {

// The thread's clock does not count time taken by others on a busy machine.
double now_ns() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// The shortest of many runs on one thread.
Result<double> run_ns(const hlo::Module& module, const Settings& settings) {
  constexpr double kLongestNs = 100e6;
  constexpr int kLeastRuns = 5, kMostRuns = 200;
  const std::unique_ptr<Model> model = Model::from_module(module.clone());  // its ports
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<Program> program,
                          compile_for_device(model->module()->clone(), *model, settings));
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<Context> context, program->make_context());
  std::vector<tensor::Literal> inputs, outputs;
  std::vector<void*> bytes;
  for (const Port& port : program->inputs()) {
    inputs.emplace_back(port.shape.without_layout());
    bytes.push_back(inputs.back().mutable_data());
  }
  for (const Port& port : program->outputs()) outputs.emplace_back(port.shape.without_layout());
  HEDDLE_RETURN_IF_ERROR(model->random_inputs(1, bytes));
  for (size_t i = 0; i < bytes.size(); ++i)
    HEDDLE_RETURN_IF_ERROR(context->bind_input(static_cast<int64_t>(i), bytes[i]));
  for (size_t i = 0; i < outputs.size(); ++i)
    HEDDLE_RETURN_IF_ERROR(
        context->bind_output(static_cast<int64_t>(i), outputs[i].mutable_data()));
  HEDDLE_RETURN_IF_ERROR(context->run());  // weights are packed here
  const double begin = now_ns();
  double least = INFINITY;
  for (int run = 0; run < kMostRuns && (run < kLeastRuns || now_ns() - begin < kLongestNs); ++run) {
    const double at = now_ns();
    HEDDLE_RETURN_IF_ERROR(context->run());
    least = std::min(least, now_ns() - at);
  }
  return least;
}

}  // namespace

Result<compiler::AdviceReport> advise(const Model& model, const CompileOptions& options) {
  if (model.module() == nullptr)
    return user_error("{} is already compiled, or was consumed: advice needs the model itself",
                      model.name());
  HEDDLE_ASSIGN_OR_RETURN(const Settings settings, read_settings(options));
  compiler::Measure measure;
  // On other targets or devices the measured times are meaningless.
  if (options.target == "host" && settings.device->is_host()) {
    Settings alone = settings;
    alone.threads = alone.compiler.compile_threads = 1;
    alone.compiler.progress = nullptr;
    alone.compiler.dump_directory.clear();
    measure = [alone](const hlo::Module& module) { return run_ns(module, alone); };
  }
  return compiler::advise(model.module()->clone(), settings.target, settings.compiler, measure);
}

}  // namespace heddle::api
