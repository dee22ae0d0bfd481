// heddle dryrun: memory, order, streams and time on a device that is not here.
#include "api/dryrun.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "command_line.h"
#include "commands.h"
#include "memory_plan.h"
#include "session_options.h"

namespace heddle::tools {
namespace {

using nlohmann::ordered_json;

constexpr size_t kFewCommands = 20, kFewValues = 5;

class Dryrun : public Command {
 public:
  std::string_view name() const override { return "dryrun"; }
  std::string_view summary() const override {
    return "predicts memory, order, streams and time on a device that this machine lacks";
  }

  void declare(CommandLine& line) override {
    chosen_.declare(line, "every command and every value at the peak, not only the first few");
    line.examples(
        "  heddle dryrun model.onnx --device virtual:sm_90\n"
        "  heddle dryrun model.onnx --device virtual:spr,capacity=1073741824\n"
        "  heddle dryrun model.hlo --device virtual:board.json --json -\n");
  }

  Result<int> run() override {
    HEDDLE_ASSIGN_OR_RETURN(const ModelHandle model, chosen_.open.open());
    if (!chosen_.compile.stop_after.empty())
      return user_error("dryrun: --stop-after does not produce a program");
    HEDDLE_ASSIGN_OR_RETURN(const api::CompileOptions options, session_options(chosen_.compile));
    HEDDLE_ASSIGN_OR_RETURN(const api::DryRun run, api::dry_run(api::unwrap(model.get()), options));
    if (!chosen_.json.only_json()) print(run);
    HEDDLE_RETURN_IF_ERROR(chosen_.json.write(json(run)));
    return run.fits() ? 0 : 1;
  }

 private:
  void print(const api::DryRun& run) const {
    fmt::print("{} on {} ({} cores), {}: nothing was run\n", chosen_.open.model, run.device,
               run.cores, run.options);
    print_notes(run.notes);
    fmt::print(
        "memory: {} of {}: constants {}, prepared weights {}, inputs {}, outputs {}, temporaries "
        "{}\n",
        bytes_text(run.total_bytes), bytes_text(run.capacity_bytes), bytes_text(run.constant_bytes),
        bytes_text(run.once_bytes), bytes_text(run.input_bytes), bytes_text(run.output_bytes),
        bytes_text(run.pool_peak_bytes));
    fmt::print("temporaries: lower bound {}, plan {}, without reuse {}\n",
               bytes_text(run.memory.lower_bound_bytes), bytes_text(run.memory.plan_bytes),
               bytes_text(run.memory.unshared_bytes));
    if (run.own_memory) fmt::print("{}", crossings_text(run.crossings, run.host_memory));
    if (run.streams == 1)
      fmt::print("streams: 1 (more are not faster)\n");
    else
      fmt::print("streams: {}, {} events; {} of {} dependencies between streams\n", run.streams,
                 run.events, run.crossing, run.dependences);
    fmt::print("time: {} predicted{}\n", ms_text(run.ns / 1e6),
               run.streams == 1
                   ? ""
                   : fmt::format(", {} on one stream", ms_text(run.one_stream_ns / 1e6)));
    print_peak(run);
    print_commands(run);
    if (!run.fits()) fmt::print("DOES NOT FIT\n");
  }

  void print_peak(const api::DryRun& run) const {
    if (run.peak.empty()) return;
    const api::DryCommand& at = run.commands[run.peak_command];
    fmt::print("\npeak of temporaries: {} at command {}, {}\n", bytes_text(at.live_bytes),
               run.peak_command, at.name);
    for (size_t i = 0; i < run.peak.size() && (chosen_.all || i < kFewValues); ++i)
      fmt::print("  {:>12}  {}\n", bytes_text(run.peak[i].bytes), run.peak[i].name);
    if (!chosen_.all && run.peak.size() > kFewValues)
      fmt::print("  and {} more; --all shows them\n", run.peak.size() - kFewValues);
  }

  void print_commands(const api::DryRun& run) const {
    fmt::print("\n{:>4} {:>6} {:>10} {:>10} {:>10}  {}\n", "#", "stream", "start", "time", "live",
               "command");
    for (size_t i = 0; i < run.commands.size() && (chosen_.all || i < kFewCommands); ++i) {
      const api::DryCommand& c = run.commands[i];
      fmt::print("{:>4} {:>6} {:>10} {:>10} {:>10}  {} {}{}\n", i, c.stream,
                 ms_text(c.start_ns / 1e6), ms_text(c.ns / 1e6), bytes_text(c.live_bytes), c.kind,
                 c.name, c.waits.empty() ? "" : fmt::format(" after {}", fmt::join(c.waits, ", ")));
    }
    if (!chosen_.all && run.commands.size() > kFewCommands)
      fmt::print("and {} more; --all shows them\n", run.commands.size() - kFewCommands);
  }

  ordered_json json(const api::DryRun& run) const {
    ordered_json json;
    json["schema"] = 1;
    json["model"] = chosen_.open.model;
    json["device"] = run.device;
    json["target"] = run.target;
    json["options"] = run.options;
    json["notes"] = run.notes;
    json["fits"] = run.fits();
    json["memory_bytes"] = {{"constants", run.constant_bytes},
                            {"prepared", run.once_bytes},
                            {"inputs", run.input_bytes},
                            {"outputs", run.output_bytes},
                            {"temporaries", run.pool_peak_bytes},
                            {"temporaries_lower_bound", run.memory.lower_bound_bytes},
                            {"temporaries_unshared", run.memory.unshared_bytes},
                            {"total", run.total_bytes},
                            {"capacity", run.capacity_bytes}};
    if (run.own_memory) json["host"] = crossings_json(run.crossings, run.host_memory);
    json["predicted_ms"] = run.ns / 1e6;
    json["predicted_one_stream_ms"] = run.one_stream_ns / 1e6;
    json["streams"] = {{"count", run.streams},
                       {"events", run.events},
                       {"dependences", run.dependences},
                       {"crossing", run.crossing}};
    json["peak"] = {{"command", run.peak_command}, {"values", ordered_json::array()}};
    for (const api::DryValue& value : run.peak)
      json["peak"]["values"].push_back({{"name", value.name}, {"bytes", value.bytes}});
    json["commands"] = ordered_json::array();
    for (const api::DryCommand& c : run.commands)
      json["commands"].push_back({{"name", c.name},
                                  {"kind", c.kind},
                                  {"kernel", c.kernel},
                                  {"operators", c.operators},
                                  {"stream", c.stream},
                                  {"waits", c.waits},
                                  {"start_ns", c.start_ns},
                                  {"ns", c.ns},
                                  {"flops", c.flops},
                                  {"bytes", c.bytes},
                                  {"live_bytes", c.live_bytes}});
    return json;
  }

  ReportChoices chosen_;
};

}  // namespace

std::unique_ptr<Command> make_dryrun() { return std::make_unique<Dryrun>(); }

}  // namespace heddle::tools
