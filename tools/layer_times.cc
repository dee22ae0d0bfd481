#include "layer_times.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string_view>
#include <unordered_map>

#include "statistics.h"
#include "values.h"

namespace heddle::tools {
namespace {

constexpr int kWarmups = 2, kLeastRounds = 5, kMostRounds = 30;
constexpr double kSeconds = 1;  // of both programs, unless the least rounds take longer

// A program with its inputs and outputs bound, and what its commands took in each round.
class TimedProgram {
 public:
  static Result<TimedProgram> open(const EditedModel& model, std::vector<tensor::Literal> inputs) {
    TimedProgram made;
    made.inputs_ = std::move(inputs);
    heddle_context* created = nullptr;
    HEDDLE_RETURN_IF_ERROR(to_status(heddle_context_create(model.program.get(), &created)));
    made.context_ = ContextHandle(created);
    HEDDLE_ASSIGN_OR_RETURN(made.outputs_, make_outputs(model.program.get()));
    HEDDLE_RETURN_IF_ERROR(bind(created, made.inputs_, made.outputs_));
    made.times_.resize(static_cast<size_t>(heddle_context_command_count(created)));
    for (int i = 0; i < kWarmups; ++i)
      HEDDLE_RETURN_IF_ERROR(to_status(heddle_context_run(created)));
    heddle_context_set_profile(created, 1);
    return made;
  }

  Status run() {
    heddle_context_reset_profile(context_.get());
    HEDDLE_RETURN_IF_ERROR(to_status(heddle_context_run(context_.get())));
    for (size_t c = 0; c < times_.size(); ++c)
      times_[c].push_back(static_cast<double>(profile_of(c).total_ns) / 1e6);
    return {};
  }

  LayerTimes by_layer(const std::vector<TimedLayer>& layers) const {
    const std::vector<std::vector<size_t>> at = owners(layers_of_commands(layers), layers.size());
    LayerTimes result;
    result.layers.resize(layers.size());
    for (size_t c = 0; c < times_.size(); ++c) {
      const double ms = statistics_of(times_[c]).median;
      double shares = 0;
      for (size_t layer : at[c]) shares += layers[layer].share;
      for (size_t layer : at[c]) result.layers[layer] += ms * layers[layer].share / shares;
      if (at[c].empty()) result.others += ms;
    }
    return result;
  }

 private:
  // Of the layers of each command those that have fewest commands; one that is left nowhere has
  // part in its command of fewest layers.
  static std::vector<std::vector<size_t>> owners(const std::vector<std::vector<size_t>>& at,
                                                 size_t layers) {
    std::vector<size_t> commands(layers), least(layers, layers), kept(layers);
    for (const auto& some : at)
      for (size_t layer : some) {
        ++commands[layer];
        least[layer] = std::min(least[layer], some.size());
      }
    std::vector<std::vector<size_t>> result(at.size());
    for (size_t c = 0; c < at.size(); ++c) {
      size_t fewest = at.size();
      for (size_t layer : at[c]) fewest = std::min(fewest, commands[layer]);
      for (size_t layer : at[c])
        if (commands[layer] == fewest) result[c].push_back(layer), ++kept[layer];
    }
    for (size_t c = 0; c < at.size(); ++c)
      for (size_t layer : at[c])
        if (kept[layer] == 0 && at[c].size() == least[layer]) result[c].push_back(layer);
    return result;
  }
  std::vector<std::vector<size_t>> layers_of_commands(const std::vector<TimedLayer>& layers) const {
    std::unordered_map<std::string_view, size_t> places;
    for (size_t i = 0; i < layers.size(); ++i) places.emplace(layers[i].name, i);
    std::vector<std::vector<size_t>> at(times_.size());
    for (size_t c = 0; c < times_.size(); ++c) {
      const heddle_command_profile one = profile_of(c);
      for (int64_t n = 0; n < one.node_count; ++n)
        if (const auto found = places.find(one.nodes[n]); found != places.end())
          at[c].push_back(found->second);
    }
    return at;
  }
  heddle_command_profile profile_of(size_t command) const {
    auto one = sized<heddle_command_profile>();
    heddle_context_get_profile(context_.get(), static_cast<int64_t>(command), &one);
    return one;
  }

  std::vector<tensor::Literal> inputs_, outputs_;
  ContextHandle context_;
  std::vector<std::vector<double>> times_;  // by command
};

}  // namespace

double LayerTimes::total() const { return std::accumulate(layers.begin(), layers.end(), others); }

Result<TimesBeforeAndAfter> time_layers(const CalibrationRuns& runs, const EditedModel& f32,
                                        const EditedModel& quantized,
                                        const std::vector<TimedLayer>& layers, Progress* progress) {
  std::vector<TimedProgram> programs;
  for (const EditedModel* model : {&f32, &quantized}) {
    HEDDLE_ASSIGN_OR_RETURN(auto inputs, runs.inputs(*model, runs.first_held_out()));
    HEDDLE_ASSIGN_OR_RETURN(TimedProgram program, TimedProgram::open(*model, std::move(inputs)));
    programs.push_back(std::move(program));
  }
  const auto begin = std::chrono::steady_clock::now();
  for (int round = 0; round < kMostRounds; ++round) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (round >= kLeastRounds && took.count() > kSeconds) break;
    if (Interrupt::asked()) return cancelled_error("stopped while timing");
    progress->show(fmt::format("{} timing", Progress::bar(round, kMostRounds)));
    for (TimedProgram& program : programs) HEDDLE_RETURN_IF_ERROR(program.run());
  }
  return TimesBeforeAndAfter{programs[0].by_layer(layers), programs[1].by_layer(layers)};
}

}  // namespace heddle::tools
