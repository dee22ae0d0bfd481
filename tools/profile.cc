// heddle profile: where the time of a run goes, by kernel; or what its values are.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "api/snapshot.h"
#include "breakdown.h"
#include "command_line.h"
#include "commands.h"
#include "model_options.h"
#include "output_file.h"
#include "program/nodes_text.h"
#include "report.h"
#include "roofs.h"
#include "run_times.h"
#include "statistics.h"
#include "terminal.h"
#include "value_profile.h"
#include "values.h"

namespace heddle::tools {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kRuns = 20, kWarmupRuns = 3;
constexpr size_t kPrintedNodes = 2;  // of a row; JSON has all

// One command, or all that launch the same kernel.
struct Row {
  std::string name, kernel, label, kind, operators;
  std::vector<std::string> nodes;              // the model's own, each once
  int64_t commands = 0, flops = 0, bytes = 0;  // of one run
  double ms = 0;                               // of one run, median
  MeasuredWork work() const { return {flops, bytes, ms}; }
};

class Profile : public Command {
 public:
  std::string_view name() const override { return "profile"; }
  std::string_view summary() const override { return "shows where the time goes, by kernel"; }

  void declare(CommandLine& line) override {
    open_.declare(line);
    inputs_.declare(line);
    line.group("Measuring");
    line.number(runs_, "--iterations", "N", "number of timed runs (default: 20)");
    line.flag(commands_, "--commands",
              "a line for each command, in order, instead of one for each kernel");
    line.flag(breakdown_, "--breakdown",
              "five totals instead of kernels: host, products, memory-bound kernels, copies, the "
              "whole run");
    line.output(trace_, "--trace", "F.json", "also writes a trace for Perfetto");
    values_.declare(line);
    compile_.declare(line, "ranges");  // here they are written
    json_.declare(line);
    line.examples(
        "  heddle profile model.onnx\n"
        "  heddle profile model.onnx --commands --threads 1 --trace trace.json\n"
        "  heddle profile model.onnx --ranges ranges.json --calib samples/\n");
  }

  Result<int> run() override {
    if (runs_ && *runs_ < 1) return user_error("--iterations {}: wanted at least 1", *runs_);
    HEDDLE_RETURN_IF_ERROR(values_.check());
    if (values_.asked() && (runs_ || commands_ || breakdown_ || trace_.given()))
      return user_error(
          "--ranges, --grad-histogram: no time is measured; leave out --iterations, --commands, "
          "--breakdown and --trace");
    if (values_.asked()) return values_.run(open_, inputs_, compile_, json_);
    HEDDLE_ASSIGN_OR_RETURN(tensor::NamedLiterals given, inputs_.read());
    HEDDLE_ASSIGN_OR_RETURN(const api::Snapshot snapshot, api::use_snapshot(open_.model, given));
    HEDDLE_ASSIGN_OR_RETURN(ModelHandle model, open_.open(given, inputs_));
    HEDDLE_ASSIGN_OR_RETURN(const bool stopped, compile_.stopped(model.get()));
    if (stopped) return 0;
    HEDDLE_ASSIGN_OR_RETURN(InputValues inputs, inputs_.values(model.get(), given));
    if (snapshot.used) inputs.description = "of the snapshot";
    if (trace_.given()) heddle_trace_start();
    HEDDLE_ASSIGN_OR_RETURN(const ProgramHandle program, compile_.compile(model.get(), true));
    head_ = Head{open_.model, where_text(info_of(program.get())), unbound_of(model.get()),
                 inputs.all_random, inputs_.seed_or_default()};
    model.reset();
    heddle_context* created = nullptr;
    HEDDLE_RETURN_IF_ERROR(to_status(heddle_context_create(program.get(), &created)));
    const ContextHandle context(created);
    HEDDLE_ASSIGN_OR_RETURN(std::vector<tensor::Literal> outputs, make_outputs(program.get()));
    HEDDLE_RETURN_IF_ERROR(bind(context.get(), inputs.values, outputs));
    HEDDLE_RETURN_IF_ERROR(measure(context.get()));
    const std::vector<Row> rows = read_rows(context.get());
    for (const Row& row : rows)
      parts_.add(row.kind, row.operators, static_cast<double>(row.commands), row.ms);
    if (!json_.only_json()) print(info_of(program.get()), inputs, rows);
    HEDDLE_RETURN_IF_ERROR(json_.write(json(info_of(program.get()), rows)));
    return 0;
  }

 private:
  Status measure(heddle_context* context) {
    // Tracing costs time: what is traced is not what is timed.
    for (int64_t i = 0; i < kWarmupRuns; ++i)
      HEDDLE_RETURN_IF_ERROR(to_status(heddle_context_run(context)));
    if (trace_.given())
      HEDDLE_RETURN_IF_ERROR(
          trace_.publish(to_status(heddle_trace_stop(trace_.work_path().c_str()))));
    HEDDLE_ASSIGN_OR_RETURN(RunTimes times, time_runs(context, runs_.value_or(kRuns)));
    times_ = std::move(times.commands);
    parts_.set_run(statistics_of(std::move(times.runs)).median);
    return {};
  }

  std::vector<Row> read_rows(const heddle_context* context) const {
    std::vector<Row> rows;
    std::map<std::string, size_t> places;
    std::set<std::pair<size_t, std::string_view>> seen;
    for (int64_t i = 0; i < heddle_context_command_count(context); ++i) {
      auto one = sized<heddle_command_profile>();
      heddle_context_get_profile(context, i, &one);
      const std::string key = commands_     ? std::to_string(i)
                              : *one.kernel ? std::string(one.kernel)
                                            : fmt::format("{} {}", one.kind, one.operators);
      const auto [place, added] = places.try_emplace(key, rows.size());
      if (added)
        rows.push_back({one.name, one.kernel, one.label, one.kind, one.operators, {}, 0, 0, 0, 0});
      Row& row = rows[place->second];
      for (int64_t n = 0; n < one.node_count; ++n)
        if (seen.emplace(place->second, one.nodes[n]).second) row.nodes.emplace_back(one.nodes[n]);
      // Of the last run; a command in a loop runs several times.
      row.commands += one.count;
      row.flops += one.flops * one.count;
      row.bytes += one.bytes * one.count;
      row.ms += statistics_of(times_[static_cast<size_t>(i)]).median;
    }
    if (!commands_)
      std::stable_sort(rows.begin(), rows.end(),
                       [](const Row& a, const Row& b) { return a.ms > b.ms; });
    return rows;
  }

  static Roofs roofs_of_all(const std::vector<Row>& rows, const heddle_program_info& info) {
    std::vector<MeasuredWork> works;
    for (const Row& row : rows) works.push_back(row.work());
    return roofs_of(info.peak_flops_per_ns, info.bandwidth_bytes_per_ns, works);
  }

  void print(const heddle_program_info& info, const InputValues& inputs,
             const std::vector<Row>& rows) const {
    double total = 0;
    for (const Row& row : rows) total += row.ms;
    fmt::print("{}\ninputs: {}\n", to_string(head_), inputs.description);
    if (breakdown_) return parts_.print();
    const bool named =
        std::any_of(rows.begin(), rows.end(), [](const Row& row) { return !row.nodes.empty(); });
    fmt::print("{:>10} {:>6} {:>6} {:>9} {:>8} {:>9}  {:<24} {}\n", "time", "share", "count",
               "GFLOP/s", "GB/s", "roofline", commands_ ? "command" : "kernel",
               named ? "nodes of the model" : "operators");
    const Roofs roofs = roofs_of_all(rows, info);
    for (const Row& row : rows)
      fmt::print("{:>10} {:>5.1f}% {:>6} {:>9.2f} {:>8.2f} {:>8.0f}%  {:<24} {}\n", ms_text(row.ms),
                 total > 0 ? row.ms / total * 100 : 0, row.commands, rate_of(row.flops, row.ms),
                 rate_of(row.bytes, row.ms), roofline_share(row.work(), roofs) * 100, row.label,
                 row.nodes.empty() ? row.operators : program::nodes_text(row.nodes, kPrintedNodes));
    fmt::print("{:>10} {:>5.1f}% {:>6}\n", ms_text(total), 100.0, info.launches);
    if (roofs.raised)
      fmt::print(
          "roofs: {:.0f} GFLOP/s and {:.1f} GB/s, the highest seen here, above those of target {}; "
          "heddle calibrate measures this machine's\n",
          roofs.flops_per_ns, roofs.bytes_per_ns, info.target);
    if (trace_.given()) tell("trace: {}", trace_.path);
  }

  ordered_json json(const heddle_program_info& info, const std::vector<Row>& rows) const {
    ordered_json json = json_head(open_.model, info);
    json["bound_dimensions"] = to_json(head_.unbound);
    json["iterations"] = runs_.value_or(kRuns);
    json["warmup_runs"] = kWarmupRuns;
    json["breakdown"] = parts_.json();
    const Roofs roofs = roofs_of_all(rows, info);
    json["roofs"] = {{"gflops_per_s", roofs.flops_per_ns},
                     {"gbytes_per_s", roofs.bytes_per_ns},
                     {"raised", roofs.raised}};
    json[commands_ ? "commands" : "kernels"] = ordered_json::array();
    for (const Row& row : rows) {
      ordered_json one;
      one["name"] = row.name;
      one["kernel"] = row.kernel;
      one["label"] = row.label;
      one["kind"] = row.kind;
      one["operators"] = row.operators;
      one["commands"] = row.commands;
      one["ms"] = row.ms;
      one["flops"] = row.flops;
      one["bytes"] = row.bytes;
      one["gflops_per_s"] = rate_of(row.flops, row.ms);
      one["gbytes_per_s"] = rate_of(row.bytes, row.ms);
      one["roofline"] = roofline_share(row.work(), roofs);
      one["nodes"] = row.nodes;
      json[commands_ ? "commands" : "kernels"].push_back(std::move(one));
    }
    return json;
  }

  OpenChoices open_;
  InputChoices inputs_;
  CompileChoices compile_;
  JsonChoice json_;
  ValueProfile values_;
  std::optional<int64_t> runs_;
  bool commands_ = false;
  OutputFile trace_;
  bool breakdown_ = false;
  std::vector<std::vector<double>> times_;  // by command: ms in each run
  Breakdown parts_;
  Head head_;
};

}  // namespace

std::unique_ptr<Command> make_profile() { return std::make_unique<Profile>(); }

}  // namespace heddle::tools
