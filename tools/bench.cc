// heddle bench: latency of a model, alone or in turn with peers.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "api/snapshot.h"
#include "command_line.h"
#include "commands.h"
#include "extent_sweep.h"
#include "load.h"
#include "model_options.h"
#include "peer.h"
#include "report.h"
#include "rivals.h"
#include "statistics.h"
#include "temporary_folder.h"
#include "terminal.h"
#include "values.h"

namespace heddle::tools {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;

constexpr double kExtentSeconds = 0.02;  // of one extent of many
constexpr size_t kFewestOfExtent = 5;
constexpr double kDurationSeconds = 3, kWarmupMs = 200;
constexpr int64_t kFewestRounds = 15, kMostCacheMs = 60'000;
constexpr double kMuchVariation = 0.05;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

class Bench : public Command {
 public:
  std::string_view name() const override { return "bench"; }
  std::string_view summary() const override { return "measures latency and throughput"; }

  void declare(CommandLine& line) override {
    open_.declare(line);
    inputs_.declare(line);
    line.group("Measuring");
    line.number(iterations_, "--iterations", "N",
                "number of measured runs (default: as many as fit into --duration)");
    line.real(duration_, "--duration", "SECONDS", "how long to measure (default: 3)");
    line.number(warmup_, "--warmup", "N",
                "runs before measuring (default: as many as fit into 200 ms)");
    line.list(versus_, "--vs", "PEER",
              "also measures onnxruntime, openvino or xla (of JAX), alternating with heddle");
    line.text(python_, "--peer-python", "PYTHON",
              "the Python that runs the peers (default: HEDDLE_PEER_PYTHON, else python3)");
    load_.declare(line);
    compile_.declare(line);
    json_.declare(line);
    line.examples(
        "  heddle bench model.onnx\n"
        "  heddle bench model.onnx --dim batch=8 --threads 2 --vs onnxruntime\n"
        "  heddle bench model.onnx --dim length=1..512:16 --threads 1\n"
        "  heddle bench model.onnx --clients 4 --threads 1\n"
        "  heddle bench model.onnx --rate 200 --duration 10\n"
        "  heddle bench model.heddle --iterations 100 --json result.json\n");
  }

  Result<int> run() override {
    HEDDLE_RETURN_IF_ERROR(check());
    HEDDLE_ASSIGN_OR_RETURN(const std::optional<ExtentRange> range, find_range(open_.dims));
    if (range) return bench_range(*range);
    HEDDLE_ASSIGN_OR_RETURN(tensor::NamedLiterals given, inputs_.read());
    HEDDLE_ASSIGN_OR_RETURN(const api::Snapshot snapshot, api::use_snapshot(open_.model, given));
    tensor::NamedLiterals all_given = given;
    HEDDLE_ASSIGN_OR_RETURN(ModelHandle model, open_.open(given, inputs_));
    HEDDLE_ASSIGN_OR_RETURN(const bool stopped, compile_.stopped(model.get()));
    if (stopped) return 0;
    for (const std::string& kind : versus_)
      if (!Peer::reads(kind, info_of(model.get()).format))
        return user_error("--vs {}: {} is {}; wanted ONNX{}", kind, open_.model,
                          info_of(model.get()).format, kind == "xla" ? ", HLO or StableHLO" : "");
    HEDDLE_ASSIGN_OR_RETURN(inputs_made_, inputs_.values(model.get(), given));
    if (snapshot.used) inputs_made_.description = "of the snapshot";
    HEDDLE_RETURN_IF_ERROR(write_peer_inputs(model.get(), all_given));
    given.clear();
    all_given.clear();
    import_ms_ = info_of(model.get()).import_ms;
    unbound_ = unbound_of(model.get());
    warn_of(unbound_);
    HEDDLE_ASSIGN_OR_RETURN(const ProgramHandle program, compile_.compile(model.get(), true));
    model.reset();
    HEDDLE_RETURN_IF_ERROR(load_.given() ? measure_load(program.get()) : measure(program.get()));
    if (!json_.only_json()) print(program.get());
    HEDDLE_RETURN_IF_ERROR(json_.write(json(program.get())));
    return 0;
  }

 private:
  // The latency at every extent of --dim NAME=FIRST..LAST.
  Result<int> bench_range(const ExtentRange& range) {
    if (!versus_.empty() || !compile_.stop_after.empty() || load_.given())
      return user_error(
          "--dim {}={}..{}: --vs, --clients, --rate and --stop-after are for one extent",
          range.name, range.first, range.last);
    HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<ExtentSweep> sweep,
                            ExtentSweep::begin(open_, inputs_, compile_, range));
    const bool text = !json_.only_json();
    if (text) fmt::print("{}\n", sweep->head_text(open_.model));
    warn_of(sweep->unbound());
    if (text) fmt::print("inputs: {}\n", sweep->inputs_description());
    if (text) print_notes(sweep->program());
    ordered_json extents = ordered_json::array();
    for (int64_t n = range.first; n <= range.last; n += range.step) {
      sweep->show_progress(n);
      HEDDLE_RETURN_IF_ERROR(sweep->set_extent(n));
      for (int64_t i = 0; i < std::max<int64_t>(1, warmup_.value_or(1)); ++i) {
        HEDDLE_ASSIGN_OR_RETURN(const double ms, sweep->timed_run());  // may compile
        (void)ms;
      }
      std::vector<double> times;
      const Clock::time_point begin = Clock::now();
      const double wanted_ms = duration_.value_or(kExtentSeconds) * 1000;
      while (iterations_ ? static_cast<int64_t>(times.size()) < *iterations_
                         : times.size() < kFewestOfExtent || ms_since(begin) < wanted_ms) {
        HEDDLE_ASSIGN_OR_RETURN(const double ms, sweep->timed_run());
        times.push_back(ms);
      }
      sweep->hide_progress();
      const Statistics s = statistics_of(times);
      if (text) print_latency(fmt::format("{}={}", range.name, n), s);
      extents.push_back(
          ordered_json{{range.name, n}, {"iterations", times.size()}, {"latency_ms", to_json(s)}});
    }
    if (text) fmt::print("{}\n", sweep->counts_text());
    HEDDLE_RETURN_IF_ERROR(json_.write(sweep->json(open_.model, std::move(extents))));
    return 0;
  }

  static void warn_of(const Unbound& unbound) {
    if (unbound.empty()) return;
    std::string names;
    for (const auto& [name, extent] : unbound) names += (names.empty() ? "" : ", ") + name;
    tell("warning: not given, so measured at 1: {}; --dim NAME=N sets a dimension", names);
  }

  Status check() const {
    if (iterations_ && *iterations_ < 1)
      return user_error("--iterations {}: wanted at least 1", *iterations_);
    if (warmup_ && *warmup_ < 0) return user_error("--warmup {}: wanted at least 0", *warmup_);
    if (duration_ && !(*duration_ > 0 && *duration_ < 1e6))
      return user_error("--duration {}: wanted a number of seconds above 0", *duration_);
    HEDDLE_RETURN_IF_ERROR(load_.check());
    if (load_.given() && !versus_.empty())
      return user_error("--vs {}: peers run one request at a time; leave out --clients and --rate",
                        versus_[0]);
    for (const std::string& kind : versus_) HEDDLE_RETURN_IF_ERROR(Peer::check_kind(kind));
    return {};
  }

  Status write_peer_inputs(const heddle_model* model, const tensor::NamedLiterals& given) {
    if (versus_.empty()) return {};
    HEDDLE_ASSIGN_OR_RETURN(folder_, TemporaryFolder::make());
    return write_inputs_of_rivals(folder_->file("inputs.npz"), model, inputs_made_.values, given,
                                  open_.fixed);
  }

  Result<double> timed_run() {
    const Clock::time_point begin = Clock::now();
    HEDDLE_RETURN_IF_ERROR(to_status(heddle_context_run(context_.get())));
    return ms_since(begin);
  }

  Status measure(heddle_program* program) {
    heddle_context* created = nullptr;
    HEDDLE_RETURN_IF_ERROR(to_status(heddle_context_create(program, &created)));
    context_.reset(created);
    HEDDLE_ASSIGN_OR_RETURN(outputs_, make_outputs(program));
    HEDDLE_RETURN_IF_ERROR(bind(context_.get(), inputs_made_.values, outputs_));
    HEDDLE_ASSIGN_OR_RETURN(first_run_ms_, timed_run());
    // What the first run puts into the cache would be measured, too.
    HEDDLE_RETURN_IF_ERROR(to_status(heddle_program_wait(program, kMostCacheMs, nullptr)));
    HEDDLE_ASSIGN_OR_RETURN(const double run_ms, warm_up());
    HEDDLE_ASSIGN_OR_RETURN(rivals_,
                            start_rivals(versus_, {"", Peer::python(python_), open_.model,
                                                   folder_ ? folder_->file("inputs.npz") : "",
                                                   info_of(program).threads}));
    // Alone every run is a round of its own.
    const int64_t runs = rivals_.empty() ? 1 : runs_of_round(run_ms);
    const Clock::time_point begin = Clock::now();
    while (goes_on(begin)) {
      HEDDLE_RETURN_IF_ERROR(round(runs));
      show_progress(begin);
    }
    progress_.hide();
    return {};
  }

  // As the clients of --clients and --rate see it; the latency is that of their runs.
  Status measure_load(heddle_program* program) {
    heddle_context* created = nullptr;
    HEDDLE_RETURN_IF_ERROR(to_status(heddle_context_create(program, &created)));
    context_.reset(created);
    HEDDLE_ASSIGN_OR_RETURN(outputs_, make_outputs(program));
    HEDDLE_RETURN_IF_ERROR(bind(context_.get(), inputs_made_.values, outputs_));
    HEDDLE_ASSIGN_OR_RETURN(first_run_ms_, timed_run());
    HEDDLE_RETURN_IF_ERROR(to_status(heddle_program_wait(program, kMostCacheMs, nullptr)));
    HEDDLE_ASSIGN_OR_RETURN(made_load_, run_load(program, inputs_made_.values, load_,
                                                 duration_.value_or(kDurationSeconds), iterations_,
                                                 inputs_.seed_or_default()));
    times_ = made_load_->run;
    if (times_.empty())
      return user_error("--rate {}: no request arrived in {} s; give a longer --duration",
                        load_.rate.value_or(0), duration_.value_or(kDurationSeconds));
    return {};
  }

  void show_progress(Clock::time_point begin) {
    constexpr double kEachMs = 250;
    const double passed = ms_since(begin);
    if (!progress_.is_shown() || passed < next_shown_ms_) return;
    next_shown_ms_ = passed + kEachMs;
    const auto done = static_cast<int64_t>(times_.size());
    const double wanted =
        duration_.value_or(kDurationSeconds) * (1 + static_cast<double>(rivals_.size()));
    progress_.show(iterations_
                       ? fmt::format("{} runs", Progress::bar(done, *iterations_))
                       : fmt::format("{} s", Progress::bar(static_cast<int64_t>(passed / 1000),
                                                           static_cast<int64_t>(wanted + 0.5))));
  }

  bool goes_on(Clock::time_point begin) const {
    const auto done = static_cast<int64_t>(times_.size());
    if (iterations_) return done < *iterations_;
    const double sides = 1 + static_cast<double>(rivals_.size());
    const double wanted_ms = duration_.value_or(kDurationSeconds) * 1000 * sides;
    return ms_since(begin) < wanted_ms || (!duration_ && rounds_ < kFewestRounds);
  }

  Status round(int64_t runs) {
    double ours = 0;
    if (iterations_) runs = std::min(runs, *iterations_ - static_cast<int64_t>(times_.size()));
    if (!rivals_.empty()) HEDDLE_RETURN_IF_ERROR(to_status(heddle_context_run(context_.get())));
    for (int64_t i = 0; i < runs; ++i) {
      HEDDLE_ASSIGN_OR_RETURN(const double ms, timed_run());
      times_.push_back(ms);
      ours += ms / static_cast<double>(runs);
    }
    if (!rivals_.empty()) fall_asleep();
    for (Rival& rival : rivals_) HEDDLE_RETURN_IF_ERROR(rival.round(ours));
    ++rounds_;
    return {};
  }

  // The time of the fastest run. A model whose first run was long enough is warm.
  Result<double> warm_up() {
    double fastest = first_run_ms_, spent = 0;
    for (int64_t i = 0; warmup_ ? i < *warmup_ : i < 1 || spent < kWarmupMs; ++i) {
      HEDDLE_ASSIGN_OR_RETURN(const double ms, timed_run());
      fastest = std::min(fastest, ms);
      spent += ms;
    }
    return fastest;
  }

  void print(const heddle_program* program) const {
    const heddle_program_info info = info_of(program);
    const Statistics s = statistics_of(times_);
    fmt::print("{}\n", to_string(Head{open_.model, where_text(info), unbound_,
                                      inputs_made_.all_random, inputs_.seed_or_default()}));
    fmt::print("inputs: {}\n", inputs_made_.description);
    print_notes(program);
    if (made_load_) fmt::print("{}", to_string(*made_load_));
    const double per_second = made_load_ ? made_load_->throughput() : 1000 / s.mean;
    fmt::print("throughput: {:.4g} runs/s", per_second);
    if (info.flops > 0)
      fmt::print(", {:.4g} GFLOP/s, {:.4g} GB/s",
                 static_cast<double>(info.flops) * per_second / 1e9,
                 static_cast<double>(info.min_bytes) * per_second / 1e9);
    fmt::print("\n");
    print_latency("latency", s);
    fmt::print("first result: import {}, compile {} (cache {}), first run {}\n",
               ms_text(import_ms_), ms_text(info.compile_ms), info.cache_warm ? "warm" : "cold",
               ms_text(first_run_ms_));
    fmt::print("kernels: {}, launches: {}\n", info.kernels, info.launches);
    fmt::print(
        "memory: constants {}, temporaries {} (lower bound {}, pool peak {}), process peak {}\n",
        bytes_text(info.constant_bytes), bytes_text(info.temporary_bytes),
        bytes_text(info.temporary_lower_bound_bytes), bytes_text(info.temporary_pool_peak_bytes),
        bytes_text(peak_resident_bytes()));
    for (const Rival& rival : rivals_) {
      const Statistics ratio = statistics_of(rival.ratios);
      print_latency(rival.peer->name(), statistics_of(rival.times));
      fmt::print("vs {}: {:.3f} times as fast (median of {} rounds; {:.3f} to {:.3f})\n",
                 rival.peer->name(), ratio.median, rival.ratios.size(), ratio.min, ratio.max);
    }
    if (s.cv > kMuchVariation)
      tell("note: times vary by {:.0f}% (standard deviation over mean)", s.cv * 100);
  }

  static void print_latency(const std::string& what, const Statistics& s) {
    fmt::print("{}: median {}, min {}, mean {}, p90 {}, p95 {}, p99 {}, max {}\n", what,
               ms_text(s.median), ms_text(s.min), ms_text(s.mean), ms_text(s.p90), ms_text(s.p95),
               ms_text(s.p99), ms_text(s.max));
  }

  ordered_json json(const heddle_program* program) const {
    const heddle_program_info info = info_of(program);
    ordered_json json = json_head(open_.model, info);
    json["bound_dimensions"] = to_json(unbound_);
    json["iterations"] = times_.size();
    json["latency_ms"] = to_json(statistics_of(times_));
    json["import_ms"] = import_ms_;
    json["compile_ms"] = info.compile_ms;
    json["first_run_ms"] = first_run_ms_;
    json["compilations"] = info.compilations;
    json["bucket"] = info.bucket;
    json["kernels"] = info.kernels;
    json["launches"] = info.launches;
    json["flops"] = info.flops;
    json["min_bytes"] = info.min_bytes;
    json["memory_bytes"] = {{"constants", info.constant_bytes},
                            {"inputs", info.input_bytes},
                            {"outputs", info.output_bytes},
                            {"temporaries", info.temporary_bytes},
                            {"temporaries_lower_bound", info.temporary_lower_bound_bytes},
                            {"temporaries_optimal", info.temporary_optimal != 0},
                            {"temporaries_pool_peak", info.temporary_pool_peak_bytes},
                            {"temporaries_unshared", info.temporary_unshared_bytes},
                            {"process_peak", peak_resident_bytes()}};
    json["versus"] = ordered_json::array();
    for (const Rival& rival : rivals_) json["versus"].push_back(rival.json());
    if (made_load_) json["load"] = to_json(*made_load_);
    json["inputs"] = inputs_made_.description;
    json["notes"] = notes_of(program);
    json["run_kernels"] = info.run_kernels;
    json["temporaries_unshared"] = info.temporary_unshared_bytes;
    for (int64_t i = 0; i < info.steps; ++i) {
      double ms = 0;
      const char* step = heddle_program_step(program, i, &ms);
      json["steps_ms"][step] = ms;
    }
    return json;
  }

  OpenChoices open_;
  InputChoices inputs_;
  CompileChoices compile_;
  JsonChoice json_;
  std::optional<int64_t> iterations_, warmup_;
  std::optional<double> duration_;
  std::vector<std::string> versus_;
  std::string python_;

  std::unique_ptr<TemporaryFolder> folder_;
  InputValues inputs_made_;
  std::vector<tensor::Literal> outputs_;
  ContextHandle context_;
  Unbound unbound_;
  double import_ms_ = 0, first_run_ms_ = 0;
  std::vector<double> times_;
  int64_t rounds_ = 0;
  std::vector<Rival> rivals_;
  LoadChoices load_;
  std::optional<LoadResult> made_load_;
  Progress progress_;
  double next_shown_ms_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_bench() { return std::make_unique<Bench>(); }

}  // namespace heddle::tools
