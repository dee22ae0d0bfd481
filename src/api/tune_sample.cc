#include "api/tune_sample.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "api/compiled.h"
#include "compiler/tune_sample.h"
#include "hlo/module.h"

namespace heddle::api {

void* SampleMemory::place(std::vector<std::vector<Array>>* arrays, size_t i, int64_t bytes) {
  if (arrays->size() <= i) arrays->resize(i + 1);
  std::vector<Array>& mine = (*arrays)[i];
  if (mine.empty() || mine.back().bytes < bytes) {
    // Earlier samples keep using the smaller one.
    const int64_t most = (bytes + bytes / 4 + 4095) / 4096 * 4096;
    mine.push_back(
        {std::unique_ptr<void, Free>(std::aligned_alloc(4096, static_cast<size_t>(most) + 4096)),
         most});
    if (!mine.back().memory) throw std::bad_alloc();
  }
  return mine.back().memory.get();
}

void SampleMemory::keep_results(const Sample& sample) {
  kept_.clear();
  for (size_t i = 0; i < sample.outputs().size(); ++i) {
    const auto* begin = static_cast<const char*>(sample.results()[i]);
    kept_.emplace_back(begin, begin + sample.outputs()[i].bytes);
  }
}

bool SampleMemory::agrees(const Sample& sample, double tolerance) const {
  for (size_t i = 0; i < kept_.size(); ++i) {
    const Port& port = sample.outputs()[i];
    const void* result = sample.results()[i];
    // Rows that only one of them has come after the others.
    const size_t bytes = std::min(kept_[i].size(), static_cast<size_t>(port.bytes));
    if (std::memcmp(result, kept_[i].data(), bytes) == 0) continue;
    if (port.shape.type() != tensor::Type::f32) return false;
    const auto* a = static_cast<const float*>(result);
    const auto* b = reinterpret_cast<const float*>(kept_[i].data());
    float most = 0, worst = 0;
    for (size_t e = 0; e < bytes / 4; ++e) {
      most = std::max(most, std::fabs(b[e]));
      worst = std::max(worst, std::fabs(a[e] - b[e]));
    }
    if (!(worst <= static_cast<float>(tolerance) * most)) return false;
  }
  return true;
}

Result<Sample> Sample::make(const compiler::TuneTask& task, const std::string& record,
                            const Settings& settings, SampleMemory* memory) {
  Settings mine = settings;
  compiler::SampleProgram made = compiler::sample_program(task, record, settings.target);
  mine.target = std::move(made.target);
  mine.compiler.twins = std::move(made.twins);
  mine.compiler.library = task.library ? "auto" : "none";
  mine.compiler.numerics = task.numerics;
  const std::unique_ptr<Model> model = Model::from_module(std::move(made.module));  // its ports
  Sample sample;
  sample.scale_ = made.scale;
  sample.alone_ = settings.threads == 1;
  HEDDLE_ASSIGN_OR_RETURN(sample.program_,
                          compile_for_device(model->module()->clone(), *model, mine));
  HEDDLE_ASSIGN_OR_RETURN(sample.context_, sample.program_->make_context());
  const std::vector<Port>& ports = sample.program_->inputs();
  std::vector<void*> inputs;
  for (size_t i = 0; i < ports.size(); ++i) inputs.push_back(memory->input(i, ports[i].bytes));
  HEDDLE_RETURN_IF_ERROR(model->random_inputs(1, inputs));
  for (size_t i = 0; i < inputs.size(); ++i)
    HEDDLE_RETURN_IF_ERROR(sample.context_->bind_input(static_cast<int64_t>(i), inputs[i]));
  for (size_t i = 0; i < sample.outputs().size(); ++i) {
    sample.results_.push_back(memory->output(i, sample.outputs()[i].bytes));
    HEDDLE_RETURN_IF_ERROR(
        sample.context_->bind_output(static_cast<int64_t>(i), sample.results_.back()));
  }
  HEDDLE_RETURN_IF_ERROR(sample.context_->run());  // weights are packed here
  return sample;
}

Result<double> Sample::time_ns(const std::vector<char>& sweep) {
  volatile int64_t sum = 0;
  for (size_t i = 0; i < sweep.size(); i += 64) sum = sum + sweep[i];
  const double begin = now_ns();
  HEDDLE_RETURN_IF_ERROR(context_->run());
  return (now_ns() - begin) * scale_;
}

// One thread's clock does not count time taken by others on a busy machine.
double Sample::now_ns() const {
  timespec now;
  clock_gettime(alone_ ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

}  // namespace heddle::api
