#include "api/value_runs.h"

#include <algorithm>

#include "api/compiled.h"
#include "api/settings.h"
#include "compiler/values_to_see.h"
#include "hlo/module.h"
#include "hlo/state_arrays.h"

namespace heddle::api {
namespace {

using compiler::ValuesToSee;
using tensor::Literal;

bool is_literal(const compiler::ValueToSee& value) {
  return value.value->is(hlo::Opcode::constant);
}

using Places = std::vector<size_t>;  // indices in ValuesToSee::values

// Parts whose results fit into the memory, or that have one value. Constant values are in separate
// parts, which run once; literals need no program.
std::vector<Places> parts_of(const ValuesToSee& found, int64_t most_bytes) {
  std::vector<Places> parts;
  for (const bool constant : {false, true}) {
    int64_t bytes = most_bytes;
    for (size_t i = 0; i < found.values.size(); ++i) {
      if (found.values[i].is_constant != constant || is_literal(found.values[i])) continue;
      const int64_t its = found.values[i].value->shape().bytes();
      if (bytes + its > most_bytes) {
        parts.emplace_back();
        bytes = 0;
      }
      parts.back().push_back(i);
      bytes += its;
    }
  }
  return parts;
}

// The module with only these values as results.
std::unique_ptr<hlo::Module> showing(const ValuesToSee& found, const Places& part) {
  std::unique_ptr<hlo::Module> module = found.module->clone();
  hlo::Computation* entry = module->entry();
  std::vector<hlo::Instr*> values;
  std::vector<tensor::Shape> shapes;
  for (size_t i : part) {
    values.push_back(entry->find(found.values[i].value->name()));
    shapes.push_back(values.back()->shape().without_layout());
  }
  module->input_output_alias.clear();
  module->entry_layout.reset();
  hlo::set_states(module.get(), {});
  entry->set_root(
      entry->add(hlo::Opcode::tuple, tensor::Shape::make_tuple(std::move(shapes)), values));
  entry->sort();
  entry->remove_dead();
  return module;
}

class Runner {
 public:
  Runner(const Settings& settings, const ValueRunOptions& runs, const ValuesToSee& found)
      : settings_(settings),
        runs_(runs),
        found_(found),
        states_(hlo::states_of(*found.module)),
        parts_(parts_of(found, runs.most_bytes)) {}

  Result<SeenValues> run() {
    for (const compiler::ValueToSee& value : found_.values) {
      result_.values.push_back({value.name, "", value.is_constant || is_literal(value), {}});
      if (is_literal(value)) result_.values.back().seen.add(value.value->literal().values<float>());
    }
    for (const Places& part : parts_) all_runs_ += samples_of(part);
    for (const Places& part : parts_) HEDDLE_RETURN_IF_ERROR(run_part(part));
    result_.programs = static_cast<int64_t>(parts_.size());
    result_.runs = all_runs_;
    return std::move(result_);
  }

 private:
  int64_t samples_of(const Places& part) const {
    return found_.values[part[0]].is_constant ? std::min<int64_t>(1, runs_.samples) : runs_.samples;
  }

  Status run_part(const Places& part) {
    const std::unique_ptr<Model> model = Model::from_module(showing(found_, part));  // its ports
    std::unique_ptr<hlo::Module> module = model->module()->clone();
    const OpenedDevice& device = *settings_.device;
    HEDDLE_ASSIGN_OR_RETURN(
        const std::shared_ptr<Program> program,
        device.interprets() ? interpret(std::move(module), *model, device.name() == "interp:f64")
                            : compile_for_device(std::move(module), *model, settings_));
    HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<Context> context, program->make_context());
    std::vector<Literal> outputs;
    for (const Port& port : program->outputs()) {
      outputs.emplace_back(port.shape.without_layout());
      HEDDLE_RETURN_IF_ERROR(context->bind_output(static_cast<int64_t>(outputs.size()) - 1,
                                                  outputs.back().mutable_data()));
    }
    for (int64_t sample = 0; sample < samples_of(part); ++sample) {
      if (runs_.progress && !runs_.progress(done_, all_runs_))
        return cancelled_error("stopped after {} of {} runs", done_, all_runs_);
      HEDDLE_ASSIGN_OR_RETURN(std::vector<Literal> inputs, runs_.inputs(sample));
      inputs.insert(inputs.end(), states_.begin(), states_.end());
      for (size_t i = 0; i < inputs.size(); ++i)
        HEDDLE_RETURN_IF_ERROR(
            context->bind_input(static_cast<int64_t>(i), inputs[i].mutable_data()));
      HEDDLE_RETURN_IF_ERROR(context->run());
      for (size_t i = 0; i < part.size(); ++i)
        result_.values[part[i]].seen.add(outputs[i].values<float>());
      ++done_;
    }
    return {};
  }

  const Settings& settings_;
  const ValueRunOptions& runs_;
  const ValuesToSee& found_;
  const std::vector<Literal> states_;
  const std::vector<Places> parts_;
  SeenValues result_;
  int64_t done_ = 0, all_runs_ = 0;
};

// As `options`, but in f32; for the host processor with its own target.
Result<Settings> run_settings(const CompileOptions& options) {
  CompileOptions plain = options;
  HEDDLE_ASSIGN_OR_RETURN(const auto device, open_device({options.device, 1, options.allocator}));
  if (device->is_host()) plain.target = CompileOptions().target;
  plain.amp = CompileOptions().amp;
  plain.precision = CompileOptions().precision;
  plain.loss_scale = plain.ranges = plain.dump = "";
  plain.explain = plain.background = plain.consume_model = false;
  plain.progress = nullptr;
  return read_settings(plain);
}

}  // namespace

Result<SeenValues> run_values(const Model& model, const CompileOptions& options,
                              const ValueRunOptions& runs) {
  if (model.module() == nullptr)
    return user_error(
        "{} is already compiled, or was consumed: its values can be recorded only from the model "
        "itself",
        model.name());
  CompileOptions decided = options;
  decided.code = false;
  HEDDLE_ASSIGN_OR_RETURN(const Settings names, read_settings(decided));
  HEDDLE_ASSIGN_OR_RETURN(const Settings settings, run_settings(options));
  const auto see = runs.gradients ? compiler::gradients_to_see : compiler::values_to_see;
  HEDDLE_ASSIGN_OR_RETURN(const ValuesToSee found,
                          see(model.module()->clone(), names.compiler, names.target));
  HEDDLE_ASSIGN_OR_RETURN(SeenValues result, Runner(settings, runs, found).run());
  for (size_t i = 0; i < found.values.size(); ++i) {
    const int64_t parameter = found.values[i].parameter;
    if (parameter >= 0 && parameter < static_cast<int64_t>(model.inputs().size()))
      result.values[i].input = model.inputs()[static_cast<size_t>(parameter)].name;
  }
  return result;
}

}  // namespace heddle::api
