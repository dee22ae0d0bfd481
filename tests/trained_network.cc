#include "trained_network.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "hlo/text.h"
#include "target/target.h"

namespace heddle {
namespace {

using tensor::Literal;
using tensor::Shape;

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Literal first_value(const TrainedNetwork::Argument& argument, Random* random) {
  Literal literal(argument.shape);
  if (argument.init.empty() || argument.init == "zeros") return literal;
  for (float& value : literal.mutable_values<float>())
    value =
        argument.init == "ones" ? 1.0F : static_cast<float>(argument.deviation * random->normal());
  return literal;
}

// Of a compiled step: which output is which input's next value, and where the loss is.
struct Places {
  std::vector<int64_t> input_of;  // by output; -1: none
  int64_t loss = -1;
};

Places find_places(const program::Program& program) {
  Places places;
  for (size_t i = 0; i < program::shown_outputs(program); ++i) {
    const program::Port& port = program.outputs[i];
    const program::BufferId alias =
        port.buffer.valid() ? program.buffers[port.buffer.index()].alias : program::BufferId();
    places.input_of.push_back(alias.valid() ? program.buffers[alias.index()].number : -1);
    if (!alias.valid() && port.shape.dims().empty()) places.loss = static_cast<int64_t>(i);
  }
  return places;
}

std::vector<Literal> first_inputs(const TrainedNetwork& network, uint64_t seed) {
  std::vector<Literal> inputs;
  Random random(seed ^ 0x5eed);
  for (const auto& argument : network.arguments) inputs.push_back(first_value(argument, &random));
  return inputs;
}

Status bind(runtime::Context* context, const Places& places, std::vector<Literal>* inputs,
            std::vector<Literal>* others) {
  for (size_t i = 0; i < inputs->size(); ++i)
    if (auto bound = context->bind_input(static_cast<int64_t>(i), (*inputs)[i].mutable_data());
        !bound)
      return bound;
  for (size_t i = 0; i < others->size(); ++i) {
    const int64_t input = places.input_of[i];
    Literal& memory = input < 0 ? (*others)[i] : (*inputs)[static_cast<size_t>(input)];
    if (auto bound = context->bind_output(static_cast<int64_t>(i), memory.mutable_data()); !bound)
      return bound;
  }
  return {};
}

void copy_to(const Literal& from, Literal* to) {
  std::memcpy(to->mutable_data(), from.data(), static_cast<size_t>(from.bytes()));
}

size_t place_of(const TrainedNetwork& network, const std::string& role) {
  size_t i = 0;
  while (network.arguments[i].role != role) ++i;
  return i;
}

bool keeps_all_state(const Places& places, const TrainedNetwork& network) {
  for (size_t i = 0; i < network.arguments.size(); ++i) {
    const std::string& role = network.arguments[i].role;
    if (role != "x" && role != "label" &&
        std::count(places.input_of.begin(), places.input_of.end(), static_cast<int64_t>(i)) != 1)
      return false;
  }
  return places.loss >= 0;
}

}  // namespace

std::string trained_folder() { return std::string(HEDDLE_SOURCE_DIR) + "/tests/testdata/trained/"; }

TrainedNetwork read_network(const std::string& name) {
  const auto json = nlohmann::json::parse(read_text(trained_folder() + name + ".json"));
  TrainedNetwork network{name, json["data"], json["batch"], json["steps"], json["evaluation_batch"],
                         {}};
  for (const auto& argument : json["arguments"]) {
    const tensor::Type type = argument["type"] == "f32" ? tensor::Type::f32 : tensor::Type::s32;
    const std::vector<int64_t> extents = argument["shape"];
    network.arguments.push_back({argument["name"], argument["role"], Shape::array(type, extents),
                                 argument.value("init", ""), argument.value("deviation", 0.0)});
  }
  return network;
}

LoadedProgram::LoadedProgram(const std::string& name, const compiler::Options& options,
                             std::string* failure) {
  auto module = hlo::parse_module(read_text(trained_folder() + name + ".hlo"));
  if (!module) {
    *failure = module.error().message;
    return;
  }
  auto program = compiler::compile(std::move(*module), {}, target::host_target(), options);
  if (!program) {
    *failure = program.error().message;
    return;
  }
  program_ = std::move(*program);
  auto loaded = load();
  if (!loaded) {
    *failure = loaded.error().message;
    return;
  }
  executable_ = std::move(*loaded);
}

Result<std::shared_ptr<runtime::Executable>> LoadedProgram::load() const {
  return runtime::Executable::load(program::Program(program_), device_.device(),
                                   api::host_functions());
}

Training train(const LoadedProgram& step, const TrainedNetwork& network, uint64_t seed) {
  Training training;
  const Places places = find_places(step.program());
  if (!keeps_all_state(places, network)) return training.failure = "not in place", training;
  training.inputs = first_inputs(network, seed);
  std::vector<Literal> others;
  for (size_t i = 0; i < places.input_of.size(); ++i)
    others.push_back(places.input_of[i] < 0
                         ? Literal(step.program().outputs[i].shape.without_layout())
                         : Literal());
  const auto own = step.load();
  if (!own) return training.failure = own.error().message, training;
  auto context = (*own)->make_context();
  if (!context) return training.failure = context.error().message, training;
  if (auto bound = bind(context->get(), places, &training.inputs, &others); !bound)
    return training.failure = bound.error().message, training;
  Literal& x = training.inputs[place_of(network, "x")];
  Literal& labels = training.inputs[place_of(network, "label")];
  DataStream data(network.data, kFlippedLabels, seed);
  for (int64_t i = 0; i < network.steps; ++i) {
    const Samples samples = data.next(network.batch);
    copy_to(samples.x, &x);
    copy_to(samples.labels, &labels);
    if (auto ran = (*context)->run(); !ran) return training.failure = ran.error().message, training;
    training.losses.push_back(others[static_cast<size_t>(places.loss)].values<float>()[0]);
  }
  return training;
}

Evaluation evaluate(const LoadedProgram& forward, const TrainedNetwork& network,
                    const Training& training, const Samples& samples) {
  Evaluation evaluation;
  auto context = forward.executable().make_context();
  if (!context) return evaluation.failure = context.error().message, evaluation;
  int64_t number = 0;
  for (size_t i = 0; i < network.arguments.size(); ++i)
    if (network.arguments[i].role == "parameter" || network.arguments[i].role == "statistic")
      (void)(*context)->bind_input(number++, training.inputs[i].data());
  const program::Program& program = forward.program();
  Literal x(program.inputs[static_cast<size_t>(number)].shape.without_layout());
  Literal logits(program.outputs[0].shape.without_layout());
  (void)(*context)->bind_input(number, x.mutable_data());
  (void)(*context)->bind_output(0, logits.mutable_data());
  const auto labels = samples.labels.values<int32_t>();
  int64_t right = 0;
  for (int64_t at = 0; at + network.evaluation_batch <= samples.labels.elems();
       at += network.evaluation_batch) {
    std::memcpy(
        x.mutable_data(),
        static_cast<const char*>(samples.x.data()) + at / network.evaluation_batch * x.bytes(),
        static_cast<size_t>(x.bytes()));
    if (auto ran = (*context)->run(); !ran)
      return evaluation.failure = ran.error().message, evaluation;
    const auto row = logits.values<float>();
    for (int64_t i = 0; i < network.evaluation_batch; ++i) {
      const auto first = row.begin() + i * 10;
      right += std::max_element(first, first + 10) - first == labels[static_cast<size_t>(at + i)];
    }
    evaluation.logits.insert(evaluation.logits.end(), row.begin(), row.end());
  }
  evaluation.accuracy = static_cast<double>(right) / static_cast<double>(samples.labels.elems());
  return evaluation;
}

}  // namespace heddle
