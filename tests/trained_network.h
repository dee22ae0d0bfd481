// A small network of tests/testdata/trained and its training: NAME_step.hlo is compiled once, then
// run for each seed with all state in memory, in place.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiled_run.h"
#include "trained_data.h"

namespace heddle {

// NAME.json (bench/training/make_small.py).
struct TrainedNetwork {
  struct Argument {
    std::string name, role;  // parameter, statistic, moment, count, x, label
    tensor::Shape shape;
    std::string init;  // normal (of this deviation), ones, zeros; "" for x and label
    double deviation = 0;
  };
  std::string name, data;
  int64_t batch = 0, steps = 0, evaluation_batch = 0;
  std::vector<Argument> arguments;  // of the step, in order
};

constexpr double kFlippedLabels = 0.15;  // of the training data

std::string trained_folder();
TrainedNetwork read_network(const std::string& name);

// A compiled program of one thread; every user of it runs in a context of its own.
class LoadedProgram {
 public:
  // NAME.hlo of the folder. `failure`: what went wrong, else untouched.
  LoadedProgram(const std::string& name, const compiler::Options& options, std::string* failure);
  runtime::Executable& executable() const { return *executable_; }
  const program::Program& program() const { return program_; }
  // Once more, with states (a loss scale) of its own.
  Result<std::shared_ptr<runtime::Executable>> load() const;

 private:
  Workers workers_{1};
  runtime::CpuDevice device_{workers_};
  program::Program program_;
  std::shared_ptr<runtime::Executable> executable_;
};

struct Training {
  std::vector<float> losses;            // by step
  std::vector<tensor::Literal> inputs;  // what the next step would read; state only is of interest
  std::string failure;
};

// A step of `network`, as many as it says, from the weights and over the data of `seed`. Outputs
// that lie on inputs are the next step's. The loss is the output of rank 0 that lies on nothing.
Training train(const LoadedProgram& step, const TrainedNetwork& network, uint64_t seed);

// NAME_forward.hlo by trained weights over fresh samples with true labels: logits [count,10] in a
// row, and the part that is right.
struct Evaluation {
  std::vector<float> logits;
  double accuracy = 0;
  std::string failure;
};
Evaluation evaluate(const LoadedProgram& forward, const TrainedNetwork& network,
                    const Training& training, const Samples& samples);

}  // namespace heddle
