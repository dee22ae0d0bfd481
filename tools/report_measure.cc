#include "report_measure.h"

#include <chrono>
#include <unordered_map>

#include "base/trace.h"
#include "command_line.h"
#include "rivals.h"
#include "run_times.h"
#include "statistics.h"
#include "values.h"

namespace heddle::tools {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kRuns = 20, kWarmupRuns = 3;
constexpr int kRounds = 15;  // with peers
constexpr size_t kMostSpans = 200'000;

// One run, recorded: every event on a thread that bears the name of a command. A command's parts on
// the thread that runs it lie inside of its own event, and are left out.
Status trace_run(heddle_context* context, ReportedTimes* times) {
  std::unordered_map<std::string, size_t> numbers, threads;
  for (int64_t i = 0; i < heddle_context_command_count(context); ++i) {
    auto one = sized<heddle_command_profile>();
    heddle_context_get_profile(context, i, &one);
    numbers.try_emplace(one.name, static_cast<size_t>(i));
  }
  trace::start();
  const Status done = to_status(heddle_context_run(context));
  trace::stop();
  HEDDLE_RETURN_IF_ERROR(done);
  const ordered_json events = ordered_json::parse(trace::to_json(), nullptr, false);
  if (!events.is_object() || !events.contains("traceEvents")) return {};
  double begin_us = -1;
  std::unordered_map<size_t, double> ends;  // of the last span, by thread
  for (const ordered_json& event : events["traceEvents"]) {
    if (event.value("ph", "") != "X" || times->spans.size() == kMostSpans) continue;
    const double at = event.value("ts", 0.0), us = event.value("dur", 0.0);
    if (begin_us < 0) begin_us = at;
    const auto command = numbers.find(event.value("name", ""));
    if (command == numbers.end()) continue;
    const auto [thread, added] =
        threads.try_emplace(std::to_string(event.value("tid", 0)), times->threads.size());
    if (added) times->threads.push_back("thread " + thread->first);
    double& end = ends[thread->second];
    if (at + us <= end) continue;
    end = at + us;
    times->spans.push_back({thread->second, command->second, at - begin_us, us});
  }
  return {};
}

Status run_beside(const std::vector<std::string>& kinds, const Peer::Setup& setup,
                  heddle_context* context, double run_ms, ReportedTimes* times) {
  if (kinds.empty()) return {};
  HEDDLE_ASSIGN_OR_RETURN(std::vector<Rival> rivals, start_rivals(kinds, setup));
  const int64_t runs = runs_of_round(run_ms);
  for (int round = 0; round < kRounds; ++round) {
    HEDDLE_RETURN_IF_ERROR(to_status(heddle_context_run(context)));  // wakes the workers
    const auto begin = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < runs; ++i)
      HEDDLE_RETURN_IF_ERROR(to_status(heddle_context_run(context)));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    fall_asleep();
    for (Rival& rival : rivals)
      HEDDLE_RETURN_IF_ERROR(rival.round(took.count() / static_cast<double>(runs)));
  }
  for (const Rival& rival : rivals) times->versus.push_back(rival.json());
  return {};
}

}  // namespace

void MeasureChoices::declare(CommandLine& line) {
  line.group("Measuring");
  line.flag(profile, "--profile", "runs the model: times of all commands, and one run by threads");
  line.number(runs, "--iterations", "N", "number of timed runs (20)");
  line.list(versus, "--vs", "PEER",
            "also measures onnxruntime or openvino, alternating with heddle");
  line.text(python, "--peer-python", "PYTHON",
            "the Python that runs the peers (HEDDLE_PEER_PYTHON, or python3)");
}

Status MeasureChoices::check() const {
  if (runs && *runs < 1) return user_error("--iterations {}: wanted at least 1", *runs);
  for (const std::string& kind : versus) HEDDLE_RETURN_IF_ERROR(Peer::check_kind(kind));
  return {};
}

Result<ReportedTimes> measure_report(const MeasureChoices& choices, heddle_program* program,
                                     MeasuredInputs inputs) {
  ReportedTimes times;
  times.source = "measured with this report";
  times.inputs = inputs.description;
  heddle_context* created = nullptr;
  HEDDLE_RETURN_IF_ERROR(to_status(heddle_context_create(program, &created)));
  const ContextHandle context(created);
  HEDDLE_ASSIGN_OR_RETURN(std::vector<tensor::Literal> outputs, make_outputs(program));
  HEDDLE_RETURN_IF_ERROR(bind(context.get(), inputs.values, outputs));
  for (int64_t i = 0; i < kWarmupRuns; ++i)
    HEDDLE_RETURN_IF_ERROR(to_status(heddle_context_run(context.get())));
  HEDDLE_RETURN_IF_ERROR(trace_run(context.get(), &times));
  HEDDLE_ASSIGN_OR_RETURN(RunTimes measured,
                          time_runs(context.get(), choices.runs.value_or(kRuns)));
  for (size_t i = 0; i < measured.commands.size(); ++i) {
    times.commands.push_back(statistics_of(measured.commands[i]).median);
    auto one = sized<heddle_command_profile>();
    heddle_context_get_profile(context.get(), static_cast<int64_t>(i), &one);
    times.launches.push_back(one.count);
    times.names.emplace_back(one.name);
  }
  times.runs = std::move(measured.runs);
  const Peer::Setup setup{"", Peer::python(choices.python), inputs.model, inputs.peers_inputs,
                          info_of(program).threads};
  HEDDLE_RETURN_IF_ERROR(
      run_beside(choices.versus, setup, context.get(), statistics_of(times.runs).median, &times));
  return times;
}

}  // namespace heddle::tools
