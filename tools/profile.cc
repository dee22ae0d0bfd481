// heddle profile: where the time of a run goes, by kernel.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "breakdown.h"
#include "command_line.h"
#include "commands.h"
#include "model_options.h"
#include "report.h"
#include "values.h"

namespace heddle::tools {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kRuns = 20, kWarmupRuns = 3;

// One command, or all that launch the same kernel.
struct Row {
  std::string name, kernel, kind, operators;
  int64_t commands = 0, flops = 0, bytes = 0;  // of one run
  double ms = 0;                               // of one run, mean
};

class Profile : public Command {
 public:
  std::string_view name() const override { return "profile"; }
  std::string_view summary() const override { return "shows where the time goes, by kernel"; }

  void declare(CommandLine& line) override {
    open_.declare(line);
    inputs_.declare(line);
    line.group("Measuring");
    line.number(runs_, "--iterations", "N", "runs that are timed (20)");
    line.flag(commands_, "--commands", "a line a command, in order, instead of a line a kernel");
    line.flag(breakdown_, "--breakdown",
              "host, products, memory, copies and the whole run, instead of kernels");
    line.text(trace_, "--trace", "F.json", "also writes a trace for Perfetto");
    compile_.declare(line);
    json_.declare(line);
    line.examples(
        "  heddle profile model.onnx\n"
        "  heddle profile model.onnx --commands --threads 1 --trace trace.json\n");
  }

  Result<int> run() override {
    if (runs_ && *runs_ < 1) return user_error("--iterations {}: wanted at least 1", *runs_);
    HEDDLE_ASSIGN_OR_RETURN(tensor::NamedLiterals given, inputs_.read());
    HEDDLE_ASSIGN_OR_RETURN(ModelHandle model, open_.open(given));
    HEDDLE_ASSIGN_OR_RETURN(const bool stopped, compile_.stopped(model.get()));
    if (stopped) return 0;
    HEDDLE_ASSIGN_OR_RETURN(InputValues inputs, inputs_.values(model.get(), given));
    if (!trace_.empty()) heddle_trace_start();
    HEDDLE_ASSIGN_OR_RETURN(const ProgramHandle program, compile_.compile(model.get(), true));
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
    if (!trace_.empty()) HEDDLE_RETURN_IF_ERROR(to_status(heddle_trace_stop(trace_.c_str())));
    heddle_context_reset_profile(context);
    heddle_context_set_profile(context, 1);
    const int64_t runs = runs_.value_or(kRuns);
    const auto begin = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < runs; ++i)
      HEDDLE_RETURN_IF_ERROR(to_status(heddle_context_run(context)));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    heddle_context_set_profile(context, 0);
    parts_.set_run(took.count() / static_cast<double>(runs));
    return {};
  }

  std::vector<Row> read_rows(const heddle_context* context) const {
    std::vector<Row> rows;
    std::map<std::string, size_t> places;
    for (int64_t i = 0; i < heddle_context_command_count(context); ++i) {
      auto one = sized<heddle_command_profile>();
      heddle_context_get_profile(context, i, &one);
      const std::string key = commands_     ? std::to_string(i)
                              : *one.kernel ? std::string(one.kernel)
                                            : fmt::format("{} {}", one.kind, one.operators);
      const auto [place, added] = places.try_emplace(key, rows.size());
      if (added) rows.push_back({one.name, one.kernel, one.kind, one.operators, 0, 0, 0, 0});
      Row& row = rows[place->second];
      // In a run; a command in a loop runs several times.
      const auto runs = static_cast<double>(runs_.value_or(kRuns));
      const double launches = static_cast<double>(one.count) / runs;
      row.commands += std::llround(launches);
      row.flops += std::llround(static_cast<double>(one.flops) * launches);
      row.bytes += std::llround(static_cast<double>(one.bytes) * launches);
      row.ms += static_cast<double>(one.total_ns) / runs / 1e6;
    }
    if (!commands_)
      std::stable_sort(rows.begin(), rows.end(),
                       [](const Row& a, const Row& b) { return a.ms > b.ms; });
    return rows;
  }

  // The time that arithmetic and memory traffic need at least, over the time taken.
  static double roofline_share(const Row& row, const heddle_program_info& info) {
    if (row.ms <= 0 || info.peak_flops_per_ns <= 0 || info.bandwidth_bytes_per_ns <= 0) return 0;
    const double least_ns = std::max(static_cast<double>(row.flops) / info.peak_flops_per_ns,
                                     static_cast<double>(row.bytes) / info.bandwidth_bytes_per_ns);
    return least_ns / 1e6 / row.ms;
  }

  static double rate(int64_t amount, double ms) {
    return ms > 0 ? static_cast<double>(amount) / ms / 1e6 : 0;
  }

  void print(const heddle_program_info& info, const InputValues& inputs,
             const std::vector<Row>& rows) const {
    double total = 0;
    for (const Row& row : rows) total += row.ms;
    fmt::print("{} on {}\ninputs: {}\n", open_.model, where_text(info), inputs.description);
    if (breakdown_) return parts_.print();
    fmt::print("{:>10} {:>6} {:>6} {:>9} {:>8} {:>9}  {:<18} {}\n", "time", "share", "count",
               "GFLOP/s", "GB/s", "roofline", commands_ ? "instruction" : "kernel", "operators");
    for (const Row& row : rows) {
      const std::string& label = commands_ ? row.name : row.kernel.empty() ? row.kind : row.kernel;
      fmt::print("{:>10} {:>5.1f}% {:>6} {:>9.2f} {:>8.2f} {:>8.0f}%  {:<18} {}\n", ms_text(row.ms),
                 total > 0 ? row.ms / total * 100 : 0, row.commands, rate(row.flops, row.ms),
                 rate(row.bytes, row.ms), roofline_share(row, info) * 100, label, row.operators);
    }
    fmt::print("{:>10} {:>5.1f}% {:>6}\n", ms_text(total), 100.0, info.launches);
    if (!trace_.empty()) fmt::print(stderr, "trace: {}\n", trace_);
  }

  ordered_json json(const heddle_program_info& info, const std::vector<Row>& rows) const {
    ordered_json json = json_head(open_.model, info);
    json["iterations"] = runs_.value_or(kRuns);
    json["warmup_runs"] = kWarmupRuns;
    json["breakdown"] = parts_.json();
    json[commands_ ? "commands" : "kernels"] = ordered_json::array();
    for (const Row& row : rows) {
      ordered_json one;
      one["name"] = row.name;
      one["kernel"] = row.kernel;
      one["kind"] = row.kind;
      one["operators"] = row.operators;
      one["commands"] = row.commands;
      one["ms"] = row.ms;
      one["flops"] = row.flops;
      one["bytes"] = row.bytes;
      one["gflops_per_s"] = rate(row.flops, row.ms);
      one["gbytes_per_s"] = rate(row.bytes, row.ms);
      one["roofline"] = roofline_share(row, info);
      json[commands_ ? "commands" : "kernels"].push_back(std::move(one));
    }
    return json;
  }

  OpenChoices open_;
  InputChoices inputs_;
  CompileChoices compile_;
  JsonChoice json_;
  std::optional<int64_t> runs_;
  bool commands_ = false;
  std::string trace_;
  bool breakdown_ = false;
  Breakdown parts_;
};

}  // namespace

std::unique_ptr<Command> make_profile() { return std::make_unique<Profile>(); }

}  // namespace heddle::tools
