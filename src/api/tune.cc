#include "api/tune.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <numeric>

#include "api/compiled.h"
#include "base/hash.h"
#include "cache/tuning_store.h"
#include "compiler/library_calls.h"
#include "compiler/tune.h"
#include "hlo/module.h"
#include "schedule/tuning.h"

namespace heddle::api {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLeastRounds = 5, kMostRounds = 15;
// Of one candidate in all its rounds.
constexpr double kCandidateSeconds = 0.25;
// Read before every run: as much as drives weights out of a second cache, as other layers would.
constexpr size_t kSweepBytes = 8 << 20;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// A sample program with memory of its own, ready to run.
class Sample {
 public:
  static Result<Sample> make(const compiler::TuneTask& task, const std::string& record,
                             const Settings& settings) {
    Settings mine = settings;
    mine.target = compiler::with_record(settings.target, task.key, record);
    mine.compiler.library = task.library ? "auto" : "none";
    mine.compiler.numerics = task.numerics;
    const std::unique_ptr<Model> model = Model::from_module(task.sample->clone());  // its ports
    Sample sample;
    sample.alone_ = settings.threads == 1;
    HEDDLE_ASSIGN_OR_RETURN(sample.program_,
                            compile_for_device(model->module()->clone(), *model, mine));
    HEDDLE_ASSIGN_OR_RETURN(sample.context_, sample.program_->make_context());
    std::vector<void*> inputs;
    for (const Port& port : sample.program_->inputs())
      inputs.push_back(sample.allocate(port.bytes));
    HEDDLE_RETURN_IF_ERROR(model->random_inputs(1, inputs));
    for (size_t i = 0; i < inputs.size(); ++i)
      HEDDLE_RETURN_IF_ERROR(sample.context_->bind_input(static_cast<int64_t>(i), inputs[i]));
    for (size_t i = 0; i < sample.program_->outputs().size(); ++i) {
      sample.outputs_.push_back(sample.allocate(sample.program_->outputs()[i].bytes));
      HEDDLE_RETURN_IF_ERROR(
          sample.context_->bind_output(static_cast<int64_t>(i), sample.outputs_.back()));
    }
    HEDDLE_RETURN_IF_ERROR(sample.context_->run());  // weights are packed here
    return sample;
  }

  Result<double> time_ns(const std::vector<char>& sweep) {
    volatile int64_t sum = 0;
    for (size_t i = 0; i < sweep.size(); i += 64) sum = sum + sweep[i];
    const double begin = now_ns();
    HEDDLE_RETURN_IF_ERROR(context_->run());
    return now_ns() - begin;
  }

  bool was_compiled() const { return !program_->facts().cache_warm; }

  // The same numbers, but for the order of additions.
  bool agrees(const Sample& other, double tolerance) const {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Port& port = program_->outputs()[i];
      if (std::memcmp(outputs_[i], other.outputs_[i], static_cast<size_t>(port.bytes)) == 0)
        continue;
      if (port.shape.type() != tensor::Type::f32) return false;
      const auto* a = static_cast<const float*>(outputs_[i]);
      const auto* b = static_cast<const float*>(other.outputs_[i]);
      float most = 0, worst = 0;
      for (int64_t e = 0; e < port.bytes / 4; ++e) {
        most = std::max(most, std::fabs(b[e]));
        worst = std::max(worst, std::fabs(a[e] - b[e]));
      }
      if (!(worst <= static_cast<float>(tolerance) * most)) return false;
    }
    return true;
  }

 private:
  // One thread's own clock does not count what others do on a busy machine.
  double now_ns() const {
    timespec now;
    clock_gettime(alone_ ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
  }

  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  void* allocate(int64_t bytes) {
    const size_t size = (static_cast<size_t>(bytes) + 63) / 64 * 64 + 64;
    memory_.emplace_back(std::aligned_alloc(64, size));
    if (!memory_.back()) throw std::bad_alloc();
    return memory_.back().get();
  }

  std::vector<std::unique_ptr<void, Free>> memory_;
  std::vector<void*> outputs_;
  std::shared_ptr<Program> program_;
  std::unique_ptr<Context> context_;
  bool alone_ = false;  // one thread
};

class Tuner {
 public:
  Tuner(const Settings& settings, const TuneOptions& options, cache::TuningStore store)
      : settings_(settings), options_(options), store_(std::move(store)), sweep_(kSweepBytes, 1) {}

  Result<TuneResult> run(std::vector<compiler::TuneTask> tasks) {
    result_.tasks = static_cast<int64_t>(tasks.size());
    result_.store = store_.path();
    const std::string device = tuning_device(settings_.target);
    for (compiler::TuneTask& task : tasks) {
      TuneProgress progress;
      progress.key = task.key;
      progress.candidates = task.candidates;
      const auto& records = settings_.target.records;
      const auto known = records ? records->find(task.key) : decltype(records->end())();
      if (records && known != records->end() && !options_.again) {
        progress.known = true;
        progress.record = known->second;
        ++result_.known;
      } else if (seconds_since(begin_) >= options_.budget_s) {
        ++result_.left;
        continue;
      } else {
        HEDDLE_ASSIGN_OR_RETURN(const cache::TuningRecord record, measure(task, device));
        HEDDLE_RETURN_IF_ERROR(store_.put(record));
        // What follows is measured with it: a library against our own best.
        settings_.target = compiler::with_record(settings_.target, task.key, record.record);
        progress.measured = record.measured;
        progress.record = record.record;
        progress.ns = record.ns;
        progress.untuned_ns = record.untuned_ns;
        ++result_.measured;
        result_.faster += record.ns < record.untuned_ns;
        result_.ns += record.ns * static_cast<double>(task.uses);
        result_.untuned_ns += record.untuned_ns * static_cast<double>(task.uses);
      }
      task.sample.reset();
      progress.done = result_.measured + result_.known;
      progress.tasks = result_.tasks;
      progress.seconds = seconds_since(begin_);
      if (options_.progress && !options_.progress(progress)) {
        result_.left = result_.tasks - progress.done;
        break;
      }
    }
    result_.seconds = seconds_since(begin_);
    return result_;
  }

 private:
  // Times of the samples `turns`, a median each: rounds by turns.
  Result<std::vector<double>> medians_of(std::vector<Sample>* samples,
                                         const std::vector<size_t>& turns) {
    double once = 0;
    for (size_t i : turns) {
      HEDDLE_ASSIGN_OR_RETURN(const double ns, (*samples)[i].time_ns(sweep_));
      once = std::max(once, ns);
    }
    const int rounds = static_cast<int>(std::clamp(kCandidateSeconds * 1e9 / std::max(once, 1.0),
                                                   double{kLeastRounds}, double{kMostRounds}));
    std::vector<std::vector<double>> times(turns.size());
    for (int round = 0; round < rounds; ++round) {
      for (size_t i = 0; i < turns.size(); ++i) {
        const size_t turn = (i + static_cast<size_t>(round)) % turns.size();
        HEDDLE_ASSIGN_OR_RETURN(const double ns, (*samples)[turns[turn]].time_ns(sweep_));
        times[turn].push_back(ns);
      }
    }
    std::vector<double> medians;
    for (const std::vector<double>& some : times) medians.push_back(median(some));
    return medians;
  }

  Result<cache::TuningRecord> measure(const compiler::TuneTask& task, const std::string& device) {
    std::vector<Sample> samples;
    std::vector<std::string> tried;
    std::vector<size_t> all;
    for (const std::string& candidate : task.records) {
      if (settings_.threads > 1 && candidate.ends_with(compiler::kWhole)) continue;
      HEDDLE_ASSIGN_OR_RETURN(Sample sample, Sample::make(task, candidate, settings_));
      ++result_.samples;
      result_.compiled += sample.was_compiled();
      if (!samples.empty() && !sample.agrees(samples.front(), task.tolerance)) continue;
      all.push_back(samples.size());
      samples.push_back(std::move(sample));
      tried.push_back(candidate);
    }
    HEDDLE_ASSIGN_OR_RETURN(std::vector<double> medians, medians_of(&samples, all));
    cache::TuningRecord record;
    record.device = device;
    record.key = task.key;
    size_t best = 0;
    for (size_t i = 0; i < samples.size(); ++i) {
      if (i > 0) record.measured += "; ";
      record.measured += fmt::format("{}: {:.0f}", tried[i], medians[i]);
      // A library, and then a library's call on one thread, must each gain something.
      const double gain = task.library ? task.least_gain : 1;
      if (medians[i] * gain < medians[best]) best = i;
    }
    // Below that it is noise, or not worth a library.
    if (medians[best] * task.least_gain > medians[0]) best = 0;
    if (best > 0) {
      // The best of many is also the luckiest: it has to win again, against the first alone.
      HEDDLE_ASSIGN_OR_RETURN(const std::vector<double> again, medians_of(&samples, {0, best}));
      if (again[1] * task.least_gain > again[0]) best = 0;
      medians[0] = again[0];
      if (best > 0) medians[best] = again[1];
    }
    record.record = tried[best];
    record.ns = medians[best];
    record.untuned_ns = medians[0];
    return record;
  }

  Settings settings_;
  const TuneOptions& options_;
  cache::TuningStore store_;
  std::vector<char> sweep_;
  Clock::time_point begin_ = Clock::now();
  TuneResult result_;
};

}  // namespace

std::string tuning_device(const target::Target& target) {
  return target.name + "-" + hash128(target::to_string(target)).hex().substr(0, 16);
}

Result<TuneResult> tune(const Model& model, const CompileOptions& options,
                        const TuneOptions& tuning) {
  if (model.module() == nullptr)
    return user_error("{} is compiled already, or was consumed: tune the model itself",
                      model.name());
  if (!(tuning.budget_s > 0) || tuning.candidates < 1)
    return user_error("tuning: a budget of {} s and {} candidates; both must be above 0",
                      tuning.budget_s, tuning.candidates);
  HEDDLE_ASSIGN_OR_RETURN(const Settings settings, read_settings(options));
  if (settings.device != Device::cpu)
    return user_error("device '{}': there is nothing to tune; take cpu", options.device);
  if (settings.compiler.object_cache_directory.empty())
    return user_error("tuning keeps its records in the cache folder, and that is off; name one");
  HEDDLE_ASSIGN_OR_RETURN(cache::TuningStore store,
                          cache::TuningStore::open(settings.compiler.object_cache_directory));
  HEDDLE_ASSIGN_OR_RETURN(
      std::vector<compiler::TuneTask> tasks,
      compiler::find_tune_tasks(model.module()->clone(), settings.target, settings.compiler,
                                static_cast<size_t>(tuning.candidates)));
  return Tuner(settings, tuning, std::move(store)).run(std::move(tasks));
}

}  // namespace heddle::api
