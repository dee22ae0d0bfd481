#include "api/tune.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "api/tune_sample.h"
#include "base/hash.h"
#include "cache/tuning_store.h"
#include "compiler/library_calls.h"
#include "compiler/tune.h"
#include "hlo/module.h"

namespace heddle::api {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLeastRounds = 5, kMostRounds = 31, kPairs = 3;
// For one candidate in all rounds together.
constexpr double kCandidateSeconds = 0.25;
// Read before every run: large enough to evict weights from a second-level cache, as other layers
// would.
constexpr size_t kSweepBytes = 8 << 20;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The value that a share `part` of them are below.
double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(part * static_cast<double>(values.size()))];
}

// Disturbances only make a run longer, and weights are evicted before every run: the time of a
// candidate is that of its better runs.
double usual_ns(const std::vector<double>& times) { return quantile(times, 0.25); }

class Tuner {
 public:
  Tuner(const Settings& settings, const TuneOptions& options, cache::TuningStore store)
      : settings_(settings), options_(options), store_(std::move(store)), sweep_(kSweepBytes, 1) {}

  Result<TuneResult> run(std::vector<compiler::TuneTask> tasks) {
    result_.tasks = static_cast<int64_t>(tasks.size());
    result_.store = store_.path();
    const std::string& device = settings_.tuning_device;
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
        // Later tasks use this record, so that a library is compared with our own best.
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
  // Times of the samples `turns`, measured in turn: one list of rounds each.
  Result<std::vector<std::vector<double>>> times_of(const compiler::TuneTask& task,
                                                    std::vector<Sample>* samples,
                                                    const std::vector<size_t>& turns) {
    static const std::vector<char> kNothing;
    const std::vector<char>& sweep = task.whole ? kNothing : sweep_;
    double once = 0;
    for (size_t i : turns) {
      HEDDLE_ASSIGN_OR_RETURN(const double ns, (*samples)[i].time_ns(sweep));
      once = std::max(once, ns);
    }
    const int rounds = static_cast<int>(std::clamp(kCandidateSeconds * 1e9 / std::max(once, 1.0),
                                                   double{kLeastRounds}, double{kMostRounds}));
    std::vector<std::vector<double>> times(turns.size());
    for (int round = 0; round < rounds; ++round) {
      for (size_t i = 0; i < turns.size(); ++i) {
        const size_t turn = (i + static_cast<size_t>(round)) % turns.size();
        HEDDLE_ASSIGN_OR_RETURN(const double ns, (*samples)[turns[turn]].time_ns(sweep));
        times[turn].push_back(ns);
      }
    }
    return times;
  }

  // Speed-up of the second record over the first: the median over rounds, then over pairs of
  // samples. Each pair is loaded anew: the addresses of weights can change a time by 5%.
  Result<double> gain_of(const compiler::TuneTask& task, const std::vector<std::string>& records,
                         SampleMemory* memory, double* first_ns) {
    std::vector<double> gains, firsts;
    for (int pair = 0; pair < kPairs; ++pair) {
      std::vector<Sample> samples;
      for (const std::string& record : records) {
        HEDDLE_ASSIGN_OR_RETURN(Sample sample, Sample::make(task, record, settings_, memory));
        samples.push_back(std::move(sample));
      }
      HEDDLE_ASSIGN_OR_RETURN(const auto times, times_of(task, &samples, {0, 1}));
      std::vector<double> ratios;
      for (size_t round = 0; round < times[0].size(); ++round)
        ratios.push_back(times[0][round] / times[1][round]);
      gains.push_back(quantile(ratios, 0.5));
      firsts.push_back(usual_ns(times[0]));
    }
    *first_ns = quantile(firsts, 0.5);
    return quantile(gains, 0.5);
  }

  Result<cache::TuningRecord> measure(const compiler::TuneTask& task, const std::string& device) {
    SampleMemory memory;
    std::vector<Sample> samples;
    std::vector<std::string> tried;
    std::vector<size_t> all;
    for (const std::string& candidate : task.records) {
      if (settings_.threads > 1 && candidate.ends_with(compiler::kWhole)) continue;
      HEDDLE_ASSIGN_OR_RETURN(Sample sample, Sample::make(task, candidate, settings_, &memory));
      ++result_.samples;
      result_.compiled += sample.was_compiled();
      if (samples.empty())
        memory.keep_results(sample);
      else if (!task.whole && !memory.agrees(sample, task.tolerance))
        continue;
      all.push_back(samples.size());
      samples.push_back(std::move(sample));
      tried.push_back(candidate);
    }
    HEDDLE_ASSIGN_OR_RETURN(const auto times, times_of(task, &samples, all));
    std::vector<double> ns;
    for (const std::vector<double>& some : times) ns.push_back(usual_ns(some));
    cache::TuningRecord record;
    record.device = device;
    record.key = task.key;
    size_t best = 0;
    for (size_t i = 0; i < samples.size(); ++i) {
      if (i > 0) record.measured += "; ";
      record.measured += fmt::format("{}: {:.0f}", tried[i], ns[i]);
      // A library, and then a library's call on one thread, must each bring a gain.
      const double gain = task.library ? task.least_gain : 1;
      if (ns[i] * gain < ns[best]) best = i;
    }
    // A smaller gain is noise, or not worth a library.
    if (ns[best] * task.least_gain > ns[0]) best = 0;
    if (best > 0) {
      // The best of many may only be lucky: it has to win again, compared with the first alone.
      HEDDLE_ASSIGN_OR_RETURN(const double gain,
                              gain_of(task, {tried[0], tried[best]}, &memory, &ns[0]));
      if (gain < task.least_gain)
        best = 0;
      else
        ns[best] = ns[0] / gain;
    }
    record.record = tried[best];
    record.ns = ns[best];
    record.untuned_ns = ns[0];
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
    return user_error("{} is already compiled, or was consumed: tune the model itself",
                      model.name());
  if (!(tuning.budget_s > 0) || tuning.candidates < 1)
    return user_error("tuning: a budget of {} s and {} candidates; both must be above 0",
                      tuning.budget_s, tuning.candidates);
  HEDDLE_ASSIGN_OR_RETURN(const Settings settings, read_settings(options));
  if (!settings.device->is_host())
    return user_error("device '{}': there is nothing to tune; use cpu", options.device);
  if (settings.compiler.object_cache_directory.empty())
    return user_error("tuning keeps its records in the cache folder, which is off; name a folder");
  HEDDLE_ASSIGN_OR_RETURN(cache::TuningStore store,
                          cache::TuningStore::open(settings.compiler.object_cache_directory));
  HEDDLE_ASSIGN_OR_RETURN(
      std::vector<compiler::TuneTask> tasks,
      compiler::find_tune_tasks(model.module()->clone(), settings.target, settings.compiler,
                                static_cast<size_t>(tuning.candidates)));
  return Tuner(settings, tuning, std::move(store)).run(std::move(tasks));
}

}  // namespace heddle::api
