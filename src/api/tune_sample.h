// Private to api: the sample programs that tuning measures.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/session.h"
#include "api/settings.h"
#include "compiler/tune.h"

namespace heddle::api {

class Sample;

// Inputs and outputs shared by all samples of a task: the address of an array can change a time by
// 5%.
class SampleMemory {
 public:
  void* input(size_t i, int64_t bytes) { return place(&inputs_, i, bytes); }
  void* output(size_t i, int64_t bytes) { return place(&outputs_, i, bytes); }
  // Keeps the results of the last sample made, as the reference for others.
  void keep_results(const Sample& sample);
  // Whether the last sample made gives the same numbers, except for the order of additions.
  bool agrees(const Sample& sample, double tolerance) const;

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  struct Array {
    std::unique_ptr<void, Free> memory;
    int64_t bytes = 0;
  };
  void* place(std::vector<std::vector<Array>>* arrays, size_t i, int64_t bytes);

  std::vector<std::vector<Array>> inputs_, outputs_;  // by port; the last one is in use
  std::vector<std::vector<char>> kept_;
};

// A sample program, ready to run.
class Sample {
 public:
  // Compiled (or found in the object cache) and run once. Errors: those of compiling.
  static Result<Sample> make(const compiler::TuneTask& task, const std::string& record,
                             const Settings& settings, SampleMemory* memory);

  // Time of one run of the task's shape, after reading `sweep`, which should be large enough to
  // evict weights from a second-level cache, as other layers would.
  Result<double> time_ns(const std::vector<char>& sweep);
  bool was_compiled() const { return !program_->facts().cache_warm; }
  const std::vector<Port>& outputs() const { return program_->outputs(); }
  const std::vector<void*>& results() const { return results_; }

 private:
  double now_ns() const;

  std::vector<void*> results_;
  std::shared_ptr<Program> program_;
  std::unique_ptr<Context> context_;
  double scale_ = 1;    // compiler::SampleProgram
  bool alone_ = false;  // on one thread
};

}  // namespace heddle::api
