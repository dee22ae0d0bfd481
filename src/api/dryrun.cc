#include "api/dryrun.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

#include "api/program_facts.h"
#include "api/settings.h"
#include "compiler/compiler.h"
#include "cost/rates.h"
#include "hlo/loop_trips.h"
#include "hlo/text.h"
#include "program/live.h"
#include "program/streams.h"
#include "program/views.h"
#include "runtime/pooled_run.h"

namespace heddle::api {
namespace {

using program::Buffer;
using program::BufferKind;
using program::Command;

constexpr const char* kKinds[] = {"kernel", "copy",   "host",        "update",
                                  "loop",   "branch", "concatenate", "library"};

class Estimate {
 public:
  Estimate(const program::Program& program, const compiler::Report& report,
           const target::Target& target)
      : program_(program), target_(target) {
    find_trips(report);
    for (const auto& kernel : report.kernels) kernel_ns_[kernel.name] = kernel.predicted_ns;
  }

  // How often its regions run: for a loop its trip count, or 1 if that is unknown.
  int64_t times(const Command& command, const program::CommandInfo& info) {
    if (!std::holds_alternative<program::Loop>(command)) return 1;
    const auto known = trips_.find(info.name);
    has_unknown_trips = has_unknown_trips || known == trips_.end();
    return known == trips_.end() ? 1 : known->second;
  }

  // For a loop all known trips, for a branch the longest region.
  double ns(const Command& command, const program::CommandInfo& info) {
    if (const auto* launch = std::get_if<program::Launch>(&command)) return kernel_ns(*launch);
    if (const auto* loop = std::get_if<program::Loop>(&command))
      return ns(loop->condition) +
             static_cast<double>(times(command, info)) * (ns(loop->condition) + ns(loop->body));
    double longest = 0;
    for (const program::RegionId region : program::regions_of(command))
      longest = std::max(longest, ns(region));
    if (std::holds_alternative<program::Branch>(command)) return longest;
    if (const auto* copy = std::get_if<program::Copy>(&command); copy && crosses(*copy))
      return target_.link_ns(static_cast<double>(program::stored_bytes(copy->to.shape)));
    has_host_calls = has_host_calls || std::holds_alternative<program::HostCall>(command);
    const auto bytes = static_cast<double>(work_of(program_, command).bytes);
    const double moved =
        cost::transfer_ns(cost::Transition::memory_reg, bytes, cost::core_count(target_), target_);
    if (const auto* call = std::get_if<program::LibraryCall>(&command))
      return std::max(
          moved, static_cast<double>(call->flops) / target_.peak_flops_per_ns(tensor::Type::f32));
    return moved + cost::call_ns(true, 1, target_);
  }

  bool has_unknown_trips = false, has_host_calls = false;

 private:
  bool crosses(const program::Copy& copy) const {
    return target_.has_link() &&
           (program::goes_to_device(program_, copy) || program::goes_to_host(program_, copy));
  }
  double ns(program::RegionId region) {
    double total = 0;
    const program::Region& inside = program_.regions[region.index()];
    for (size_t i = 0; i < inside.commands.size(); ++i)
      total += ns(inside.commands[i], inside.info[i]);
    return total;
  }
  void find_trips(const compiler::Report& report) {
    const auto module = hlo::parse_module(report.fused_module);
    if (!module) return;
    for (const auto& computation : (*module)->computations())
      for (const hlo::Instr* instr : computation->instrs())
        if (const auto trips = hlo::known_trips(instr)) trips_[instr->name()] = *trips;
  }
  double kernel_ns(const program::Launch& launch) const {
    const program::Kernel& kernel = program_.kernels[launch.kernel.index()];
    const auto known = kernel_ns_.find(kernel.name);
    if (known != kernel_ns_.end() && known->second > 0) return known->second;
    const double moved =
        cost::transfer_ns(cost::Transition::memory_reg, static_cast<double>(kernel.min_bytes),
                          cost::core_count(target_), target_);
    const double computed =
        static_cast<double>(kernel.flops) / target_.peak_flops_per_ns(tensor::Type::f32);
    return cost::overlapped_ns(computed, moved) +
           cost::call_ns(false, static_cast<int>(kernel.phases.size()), target_);
  }

  const program::Program& program_;
  const target::Target& target_;
  std::unordered_map<std::string, double> kernel_ns_;
  std::unordered_map<std::string, int64_t> trips_;  // by name of the loop
};

// `times`: number of executions of the command.
void collect_flops(const program::Program& program, const Command& command,
                   const program::CommandInfo& info, int64_t times, Estimate& estimate,
                   DryCommand& made) {
  const CommandWork work = work_of(program, command);
  made.flops += times * work.flops;
  made.bytes += times * work.bytes;
  times *= estimate.times(command, info);
  for (const program::RegionId id : program::regions_of(command)) {
    const program::Region& region = program.regions[id.index()];
    for (size_t i = 0; i < region.commands.size(); ++i)
      collect_flops(program, region.commands[i], region.info[i], times, estimate, made);
  }
}

void describe_memory(const program::Program& program, const Model& model, int64_t most_streams,
                     DryRun& run) {
  run.memory = program.memory;
  run.pool_peak_bytes = runtime::pool_peak_bytes(program, most_streams);
  run.once_bytes = program.once_bytes;
  std::vector<bool> used(program.buffers.size(), false);
  program::for_each_view_within(
      program, program.commands,
      [&](const program::View& view, program::Use) { used[view.buffer.index()] = true; });
  for (size_t i = 0; i < used.size(); ++i)
    if (used[i] && program.buffers[i].kind == BufferKind::constant)
      run.constant_bytes += program.buffers[i].bytes;
  for (const Port& port : model.inputs()) run.input_bytes += port.bytes;
  for (const Port& port : model.outputs()) run.output_bytes += port.bytes;
  run.own_memory = program.own_memory;
  run.host_memory = program.host_memory;
  run.crossings = program::count_crossings(program);
  run.total_bytes = run.constant_bytes + run.once_bytes + run.pool_peak_bytes;
  if (!run.own_memory) run.total_bytes += run.input_bytes + run.output_bytes;
}

// Uses the clock of program::plan_streams, so that the last end equals run.ns.
void describe_commands(const program::Program& program, const std::vector<double>& ns,
                       const program::StreamPlan& plan, double wait_ns, Estimate& estimate,
                       DryRun& run) {
  int64_t number = program::command_count(program, program.once), most = -1;
  std::vector<double> free_ns(static_cast<size_t>(plan.streams), 0);
  std::vector<double> ends(program.commands.size(), 0);
  for (size_t i = 0; i < program.commands.size(); ++i) {
    const Command& command = program.commands[i];
    DryCommand& made = run.commands.emplace_back();
    made.name = program.command_info[i].name;
    made.operators = program.command_info[i].operators;
    made.kind = kKinds[command.index()];
    if (const auto* launch = std::get_if<program::Launch>(&command))
      made.kernel = program.kernels[launch->kernel.index()].name;
    collect_flops(program, command, program.command_info[i], 1, estimate, made);
    made.stream = plan.stream[i];
    double& free = free_ns[static_cast<size_t>(made.stream)];
    made.start_ns = plan.alone[i] ? *std::max_element(free_ns.begin(), free_ns.end()) : free;
    for (size_t other : plan.waits[i]) {
      made.waits.push_back(static_cast<int64_t>(other));
      made.start_ns = std::max(made.start_ns, ends[other]) + wait_ns;
    }
    made.ns = ns[i];
    free = ends[i] = made.start_ns + made.ns;
    if (plan.alone[i]) std::fill(free_ns.begin(), free_ns.end(), ends[i]);
    int64_t end = number + 1;
    for (const program::RegionId region : program::regions_of(command))
      end += program::command_count(program, program.regions[region.index()].commands);
    const std::vector<const Buffer*> buffers = program::alive(program, number, end);
    made.live_bytes = program::covered_bytes(buffers);
    number = end;
    if (made.live_bytes <= most) continue;
    most = made.live_bytes;
    run.peak_command = i;
    run.peak.clear();
    for (const Buffer* buffer : buffers) run.peak.push_back({buffer->name, buffer->bytes});
  }
  std::stable_sort(run.peak.begin(), run.peak.end(),
                   [](const DryValue& a, const DryValue& b) { return a.bytes > b.bytes; });
}

// Compiled for the device's target without machine code.
Result<Settings> settings_for(const CompileOptions& options, const target::Target& target,
                              const std::string& name) {
  CompileOptions chosen = options;
  chosen.device = target.kind == target::DeviceKind::gpu ? "cuda" : "cpu";
  if (options.target == "host") chosen.target = name;
  chosen.code = false;
  return read_settings(chosen);
}

}  // namespace

Result<DryRun> dry_run(const Model& model, const CompileOptions& options) {
  if (model.module() == nullptr)
    return user_error("{} is already compiled, or was consumed: a dry run needs the model itself",
                      model.name());
  HEDDLE_RETURN_IF_ERROR(open_device({options.device, 1, {}}));
  if (behind("virtual:", options.device).empty())
    return user_error("{}dryrun needs --device virtual:NAME, NAME one of {} or a target file",
                      options.device.empty() ? "" : fmt::format("device '{}': ", options.device),
                      fmt::join(target::shipped_targets(), ", "));
  HEDDLE_ASSIGN_OR_RETURN(const runtime::VirtualOptions simulated, read_virtual(options.device));
  HEDDLE_ASSIGN_OR_RETURN(const target::Target named, target::find_target(simulated.name));
  HEDDLE_ASSIGN_OR_RETURN(Settings settings, settings_for(options, named, simulated.name));
  // A CPU's kernels use all of its cores, so running them concurrently gains nothing.
  program::StreamOptions streams;
  const bool asked = options.device.find("streams=") != std::string::npos;
  streams.most_streams =
      settings.target.kind == target::DeviceKind::cpu && !asked ? 1 : simulated.streams;
  if (options.streams == 0) settings.compiler.streams = std::max<int64_t>(1, streams.most_streams);
  plan::Names names;
  for (const Port& port : model.inputs()) {
    names.inputs.push_back(port.name);
    names.input_aliases.push_back(port.alias);
  }
  for (const Port& port : model.outputs()) names.outputs.push_back(port.name);
  compiler::Report report;
  HEDDLE_ASSIGN_OR_RETURN(const program::Program program,
                          compiler::compile(model.module()->clone(), names, settings.target,
                                            settings.compiler, &report));
  DryRun run;
  run.device = options.device;
  run.target = settings.target.name;
  run.options = program.options;
  run.cores = cost::core_count(settings.target);
  run.capacity_bytes = simulated.capacity_bytes;
  run.notes = program.notes;
  if (named.memory_bytes == 0 && options.device.find("capacity=") == std::string::npos)
    run.notes.push_back(fmt::format(
        "target {} states no memory size: 1 TiB is assumed; virtual:{},capacity=BYTES sets another",
        run.target, simulated.name));
  describe_memory(program, model, streams.most_streams, run);
  HEDDLE_RETURN_IF_ERROR(check_limit(program.name, run.pool_peak_bytes, settings.compiler));

  Estimate estimate(program, report, settings.target);
  std::vector<double> ns;
  for (size_t i = 0; i < program.commands.size(); ++i)
    ns.push_back(estimate.ns(program.commands[i], program.command_info[i]));
  if (estimate.has_unknown_trips)
    run.notes.push_back("loops of unknown trip count: the time is that of one trip");
  if (estimate.has_host_calls)
    run.notes.push_back("host calls: the time is that of moving their bytes");
  streams.wait_ns = settings.target.serial_command_ns;
  const program::StreamPlan plan = program::plan_streams(program, program.commands, ns, streams);
  run.streams = plan.streams;
  run.events = plan.events;
  run.dependences = plan.reduced;
  run.crossing = plan.crossing;
  run.ns = plan.ns;
  run.one_stream_ns = plan.serial_ns;
  describe_commands(program, ns, plan, streams.wait_ns, estimate, run);
  return run;
}

}  // namespace heddle::api
