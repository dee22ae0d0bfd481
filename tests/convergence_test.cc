// Training in fewer bits arrives where f32 arrives: three small networks (tests/testdata/trained)
// are trained from several seeds in every mode, over the same data. A mode holds if the mean of its
// final losses is within 1 % of f32's, and the trained weights are as right on fresh samples.
//
// HEDDLE_TRAINED=DIR makes NAME.npz there: weights that f32 trained, and samples with their logits
// (tests/testdata/trained/make_trained.py).
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <thread>

#include "tensor/npz.h"
#include "trained_network.h"

namespace heddle {
namespace {

struct Mode {
  const char* name;
  void (*set)(compiler::Options* options);
};

// The first is what the others are compared with.
constexpr Mode kModes[] = {
    {"f32", [](compiler::Options*) {}},
    {"bf16", [](compiler::Options* options) { options->precision = "bf16"; }},
    {"f16", [](compiler::Options* options) { options->precision = "f16"; }},  // scales its loss
};
constexpr size_t kModeCount = std::size(kModes);
constexpr uint64_t kSeeds = 5;
constexpr double kApart = 0.01;       // of the mean final losses
constexpr double kRightApart = 0.01;  // of the mean parts that are right
constexpr double kFallen = 0.6;       // final losses are below this part of the first
constexpr int64_t kHeldOut = 1024;

struct Outcome {
  double first = 0, final = 0, accuracy = 0;
  std::string failure;
};

double mean(const float* first, size_t count) {
  return std::accumulate(first, first + count, 0.0) / static_cast<double>(count);
}

Outcome outcome_of(const LoadedProgram& step, const LoadedProgram& forward,
                   const TrainedNetwork& network, uint64_t seed, const Samples& held_out) {
  const Training training = train(step, network, seed);
  if (!training.failure.empty()) return {.failure = training.failure};
  const std::vector<float>& losses = training.losses;
  const size_t last = losses.size() / 5;
  const Evaluation evaluation = evaluate(forward, network, training, held_out);
  return {losses[0], mean(&losses[losses.size() - last], last), evaluation.accuracy,
          evaluation.failure};
}

// All modes and seeds, two at a time: [mode][seed].
std::vector<std::vector<Outcome>> train_all(
    const TrainedNetwork& network, const std::vector<std::unique_ptr<LoadedProgram>>& steps,
    const LoadedProgram& forward) {
  const Samples held_out = DataStream(network.data, 0, 1000).next(kHeldOut);
  std::vector<std::vector<Outcome>> outcomes(kModeCount, std::vector<Outcome>(kSeeds));
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < kModeCount * kSeeds; i = next++)
      outcomes[i / kSeeds][i % kSeeds] =
          outcome_of(*steps[i / kSeeds], forward, network, i % kSeeds + 1, held_out);
  };
  std::thread other(work);
  work();
  other.join();
  return outcomes;
}

struct Means {
  double first = 0, final = 0, accuracy = 0;
};

Means print_row(const TrainedNetwork& network, const Mode& mode,
                const std::vector<Outcome>& outcomes) {
  Means means;
  std::printf("%-12s %-10s", network.name.c_str(), mode.name);
  for (const Outcome& outcome : outcomes) {
    std::printf(" %7.4f", outcome.final);
    means.first += outcome.first / kSeeds;
    means.final += outcome.final / kSeeds;
    means.accuracy += outcome.accuracy / kSeeds;
  }
  std::printf("  mean %.4f, first %.3f, right %.2f %%\n", means.final, means.first,
              means.accuracy * 100);
  return means;
}

class Convergence : public ::testing::TestWithParam<const char*> {};

TEST_P(Convergence, IsThatOfF32InEveryMode) {
  const TrainedNetwork network = read_network(GetParam());
  std::string failure;
  const LoadedProgram forward(network.name + "_forward", {}, &failure);
  std::vector<std::unique_ptr<LoadedProgram>> steps;
  for (const Mode& mode : kModes) {
    compiler::Options options;
    mode.set(&options);
    steps.push_back(std::make_unique<LoadedProgram>(network.name + "_step", options, &failure));
  }
  ASSERT_EQ(failure, "");
  const auto outcomes = train_all(network, steps, forward);
  Means f32;
  for (size_t i = 0; i < kModeCount; ++i) {
    for (const Outcome& outcome : outcomes[i]) ASSERT_EQ(outcome.failure, "") << kModes[i].name;
    const Means means = print_row(network, kModes[i], outcomes[i]);
    if (i == 0) f32 = means;
    EXPECT_LT(means.final, kFallen * means.first) << kModes[i].name;
    EXPECT_NEAR(means.final, f32.final, kApart * f32.final) << kModes[i].name;
    EXPECT_NEAR(means.accuracy, f32.accuracy, kRightApart) << kModes[i].name;
  }
}

// No test of anything: there only where HEDDLE_TRAINED names a folder.
class TrainedWeights : public ::testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TrainedWeights);

std::vector<std::string> asked_networks() {
  if (std::getenv("HEDDLE_TRAINED") == nullptr) return {};
  return {"cnn", "mobile", "transformer"};
}

TEST_P(TrainedWeights, AreWritten) {
  const char* folder = std::getenv("HEDDLE_TRAINED");
  const TrainedNetwork network = read_network(GetParam());
  std::string failure;
  const LoadedProgram forward(network.name + "_forward", {}, &failure);
  const LoadedProgram step(network.name + "_step", {}, &failure);
  ASSERT_EQ(failure, "");
  const Training training = train(step, network, 1);
  ASSERT_EQ(training.failure, "");
  tensor::NamedLiterals arrays;
  for (size_t i = 0; i < network.arguments.size(); ++i) {
    const TrainedNetwork::Argument& argument = network.arguments[i];
    if (argument.role == "parameter" || argument.role == "statistic")
      arrays.emplace_back(argument.role + "." + argument.name, training.inputs[i]);
  }
  const Samples held_out = DataStream(network.data, 0, 1000).next(512);
  const Evaluation evaluation = evaluate(forward, network, training, held_out);
  ASSERT_EQ(evaluation.failure, "");
  const tensor::Shape logits = tensor::Shape::array(tensor::Type::f32, {512, 10});
  arrays.emplace_back("x", held_out.x);
  arrays.emplace_back("labels", held_out.labels);
  arrays.emplace_back("logits",
                      tensor::Literal::from(logits, std::span<const float>(evaluation.logits)));
  arrays.emplace_back("calibration", DataStream(network.data, 0, 2000).next(64).x);
  const Status written =
      tensor::write_npz(std::string(folder) + "/" + network.name + ".npz", arrays);
  ASSERT_TRUE(written) << written.error().message;
}

INSTANTIATE_TEST_SUITE_P(Networks, Convergence, ::testing::Values("cnn", "mobile", "transformer"),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Asked, TrainedWeights, ::testing::ValuesIn(asked_networks()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace heddle
