#include "api/late.h"

#include <algorithm>
#include <cstring>

#include "api/ports.h"
#include "api/small_stage.h"
#include "hlo/module.h"
#include "tensor/npz.h"

namespace heddle::api {

using tensor::Literal;
using tensor::Shape;

// Larger inputs decide nothing by their own values.
constexpr int64_t kMostDecidingBytes = int64_t{64} << 20;

import::Options import_options(const Late& late, const LateInputs& inputs) {
  import::Options options = late.asked;
  options.stages = true;
  options.no_open_counts = inputs.no_open_counts;
  for (size_t i = 0; i < late.inputs.size(); ++i) {
    const std::string& name = late.inputs[i].name;
    if (late.shapes) options.shapes[name] = inputs.shapes[i].extents();
    const int64_t bytes = inputs.shapes[i].elems() * tensor::type_bytes(inputs.shapes[i].type());
    if (bytes > kMostDecidingBytes || (bytes > 0 && inputs.data[i] == nullptr)) continue;
    Literal value(inputs.shapes[i]);
    if (bytes > 0) std::memcpy(value.mutable_data(), inputs.data[i], static_cast<size_t>(bytes));
    options.hints.insert_or_assign(name, std::move(value));
  }
  return options;
}

std::vector<PartInput> inputs_of(const Late& late, const Model& part,
                                 const std::vector<Port>& behind) {
  std::vector<Port> inputs = late.inputs;
  inputs.insert(inputs.end(), behind.begin(), behind.end());
  std::vector<PartInput> all;
  for (const Port& port : part.inputs()) {
    const auto found = std::find_if(inputs.begin(), inputs.end(),
                                    [&](const Port& input) { return input.name == port.name; });
    if (found != inputs.end())
      all.push_back({found - inputs.begin(), {}});
    else
      all.push_back({-1, port.name});
  }
  return all;
}

Status check_stages(size_t count, const std::string& why) {
  if (count < kMostStages) return {};
  return user_error("{}; {} computed values have decided shapes in this run, which is the limit",
                    why, count);
}

void hide_extents(const CountOutputs& counts, std::vector<Port>& outputs) {
  for (const import::GuessedCount& one : counts.guessed)
    outputs.resize(std::min(outputs.size(), static_cast<size_t>(one.extent)));
  for (const import::OpenOutput& one : counts.open) {
    outputs.resize(std::min(outputs.size(), static_cast<size_t>(one.extent)));
    outputs[static_cast<size_t>(one.output)].is_known = false;
  }
}

namespace {

// The results of a stage for the first run's values, by name.
Result<std::map<std::string, Literal>> run_stage(import::Imported stage, const Late& late,
                                                 const std::map<std::string, Literal>& carried) {
  const std::string why = stage.undecided_why;
  const std::unique_ptr<Model> model = Model::from_imported(std::move(stage));
  CompileOptions options;
  options.consume_model = true;
  if (small_stage(*model->module()) != SmallStage::no) options.device = "interp";
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<Program> program,
                          Program::compile(*model, options));
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<Context> context, program->make_context());
  std::map<std::string, Literal> results;
  for (size_t i = 0; i < model->inputs().size(); ++i) {
    const std::string& name = model->inputs()[i].name;
    auto given = carried.find(name);
    if (given == carried.end()) given = late.first.find(name);
    if (given == late.first.end())
      return user_error("{}; give {} a value (--input NAME=SPEC, --inputs)", why, name);
    HEDDLE_RETURN_IF_ERROR(context->bind_input(static_cast<int64_t>(i), given->second.data()));
  }
  for (size_t i = 0; i < model->outputs().size(); ++i) {
    const Port& port = model->outputs()[i];
    Literal& result = results.emplace(port.name, Literal(port.shape)).first->second;
    HEDDLE_RETURN_IF_ERROR(context->bind_output(static_cast<int64_t>(i), result.mutable_data()));
  }
  HEDDLE_RETURN_IF_ERROR(context->run());
  return results;
}

}  // namespace

Result<import::Imported> import_first(const Late& late, bool* stages) {
  import::Options options = late.asked;
  options.stages = true;
  options.hints = late.first;
  std::map<std::string, Literal> carried;
  std::vector<std::string> notes;
  for (;;) {
    HEDDLE_ASSIGN_OR_RETURN(import::Imported imported, late.import(options));
    if (imported.undecided.empty()) {
      if (!*stages) return imported;
      options.carried.clear();  // the graph in one piece
      HEDDLE_ASSIGN_OR_RETURN(imported, late.import(options));
      imported.notes.insert(imported.notes.end(), notes.begin(), notes.end());
      return imported;
    }
    *stages = true;
    HEDDLE_RETURN_IF_ERROR(check_stages(notes.size(), imported.undecided_why));
    notes.push_back("a computed value decides shapes: " + imported.undecided_why);
    if (small_stage(*imported.module) != SmallStage::no)
      notes.back() += "; what computes it is too little to compile, and is interpreted";
    const std::string key = imported.undecided;
    HEDDLE_ASSIGN_OR_RETURN(auto results, run_stage(std::move(imported), late, carried));
    if (!options.decided.emplace(key, results.at(key)).second)
      return user_error("a value that decides a shape does not become known: {}", key);
    carried.merge(results);
    for (const auto& [name, value] : carried) options.carried.emplace(name, value.shape());
  }
}

Status Model::take_late(std::function<Result<import::Imported>(const import::Options&)> import,
                        import::Options wanted, bool shapes) {
  if (wanted.hints.empty() && !shapes) {
    HEDDLE_ASSIGN_OR_RETURN(import::Imported imported, import(wanted));
    take(std::move(imported));
    return {};
  }
  // One for all imports: equal strings are equal numbers in each.
  if (!wanted.vocabulary) wanted.vocabulary = std::make_shared<tensor::Vocabulary>();
  auto late = std::make_shared<Late>();
  late->import = std::move(import);
  late->shapes = shapes;
  late->first = std::exchange(wanted.hints, {});
  late->asked = std::move(wanted);
  bool stages = false;
  Result<import::Imported> first = import_first(*late, &stages);
  if (!first && shapes && late->first.empty()) {
    // The first run will tell, also what else is wrong; what preflight finds is said now.
    import::Options ports = late->asked;
    ports.ports_only = true;
    auto named = late->import(ports);
    if (!named || named->later_outputs.empty()) return tl::unexpected(first.error());
    late->first_is_known = false;
    first = std::move(named);
  }
  if (!first) return tl::unexpected(first.error());
  import::Imported imported = std::move(*first);
  const auto later_outputs = imported.later_outputs;
  std::vector<import::BoundInput> deciding = std::move(imported.bound);
  std::erase_if(deciding, [&](const auto& input) { return !late->first.contains(input.name); });
  const CountOutputs counts = count_outputs(imported);
  const auto dims = imported.input_dims;
  const std::set<std::string> texts = imported.texts;
  take(std::move(imported));
  if (deciding.empty() && !stages && !shapes && counts.empty()) return {};
  hide_extents(counts, outputs_);
  tolerances_.resize(outputs_.size());
  for (const import::BoundInput& input : deciding) {
    inputs_.insert(inputs_.begin() + input.place, make_port(input.name, "", input.shape));
    inputs_[static_cast<size_t>(input.place)].is_text = texts.contains(input.name);
  }
  for (const import::BoundInput& input : deciding) late->deciding.insert(input.place);
  name_dims(dims, inputs_);
  // Checks have numbers of parameters; here the inputs that decide are between them.
  for (tensor::IndexCheck& check : index_checks_)
    for (const import::BoundInput& input : deciding)
      if (check.input >= input.place) ++check.input;
  for (const Port& port : inputs_)
    if (const auto given = late->first.find(port.name); given != late->first.end()) {
      HEDDLE_ASSIGN_OR_RETURN(given->second, tensor::as_type(given->second, port.shape.type()));
    }
  for (const auto& [output, type] : later_outputs) {
    outputs_.push_back(make_port(output, "", Shape::array(type, {})));
    outputs_.back().bytes = 0;
    outputs_.back().is_known = false;
    outputs_.back().is_text = texts.contains(output);
  }
  tolerances_.resize(outputs_.size());
  late->inputs = inputs_;
  late_ = std::move(late);
  return {};
}

}  // namespace heddle::api
