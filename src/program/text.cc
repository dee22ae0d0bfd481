#include "program/text.h"

#include <fmt/format.h>

#include "program/nodes_text.h"
#include "program/spaces.h"
#include "program/views.h"

namespace heddle::program {
namespace {

constexpr size_t kMostNodes = 8;  // names per line

std::string_view kind_name(BufferKind kind) {
  switch (kind) {
    case BufferKind::input:
      return "input";
    case BufferKind::output:
      return "output";
    case BufferKind::constant:
      return "constant";
    case BufferKind::once:
      return "once";
    case BufferKind::temporary:
      return "temporary";
  }
  return "?";
}

std::string view_text(const View& view) {
  if (!view.buffer.valid()) return "none";
  std::string text = fmt::format("b{}", view.buffer.value);
  if (view.offset_bytes != 0) text += fmt::format("+{}", view.offset_bytes);
  return text + ":" + tensor::to_string(view.shape);
}

std::string views_text(const std::vector<View>& views, size_t begin, size_t end) {
  std::string text;
  for (size_t i = begin; i < end && i < views.size(); ++i)
    text += (text.empty() ? "" : ", ") + view_text(views[i]);
  return text;
}

std::string loop_text(const Loop& loop) {
  std::string text = fmt::format("loop while {}", view_text(loop.predicate));
  for (const Carried& carried : loop.carried)
    text += fmt::format(", {} from {} {} {}", view_text(carried.state), view_text(carried.init),
                        carried.swapped ? "swap" : "then", view_text(carried.next));
  return text;
}

std::string branch_text(const Branch& branch) {
  std::string text = fmt::format("branch on {}", view_text(branch.selector));
  for (const Joined& joined : branch.joined)
    text += fmt::format(", {} from ({})", view_text(joined.result),
                        views_text(joined.sources, 0, joined.sources.size()));
  return text;
}

std::string command_text(const Program& program, const Command& command) {
  if (const auto* launch = std::get_if<Launch>(&command)) {
    const bool known = launch->kernel.index() < program.kernels.size();
    const auto inputs = static_cast<size_t>(launch->inputs);
    const auto outputs = inputs + static_cast<size_t>(launch->outputs);
    const size_t all = launch->arguments.size();
    std::string text = fmt::format(
        "launch {}({}) -> ({})", known ? program.kernels[launch->kernel.index()].name : "?",
        views_text(launch->arguments, 0, inputs), views_text(launch->arguments, inputs, outputs));
    if (all > outputs)
      text += fmt::format(" workspace ({})", views_text(launch->arguments, outputs, all));
    for (size_t o = 0; o < launch->in_part.size(); ++o)
      if (launch->in_part[o] != 0 && o < launch->in_place.size())
        text += fmt::format(" output {} in input {}", o, launch->in_place[o]);
    if (!launch->dims.empty()) text += fmt::format(" dims [{}]", fmt::join(launch->dims, ", "));
    return text;
  }
  if (const auto* copy = std::get_if<Copy>(&command))
    return fmt::format("copy {} -> {}", view_text(copy->from), view_text(copy->to));
  if (const auto* update = std::get_if<Update>(&command))
    return fmt::format(
        "update {} with {} at ({}) -> {}", view_text(update->operand), view_text(update->update),
        views_text(update->starts, 0, update->starts.size()), view_text(update->result));
  if (const auto* concatenate = std::get_if<Concatenate>(&command))
    return fmt::format("concatenate {} along {} -> {}",
                       views_text(concatenate->pieces, 0, concatenate->pieces.size()),
                       concatenate->dimension, view_text(concatenate->result));
  if (const auto* call = std::get_if<LibraryCall>(&command))
    return fmt::format("library {} {} ({}) -> {} in {} tasks, fixed [{}]", call->library,
                       call->operation, views_text(call->arguments, 0, call->arguments.size()),
                       view_text(call->result), call->tasks, fmt::join(call->fixed, ", "));
  if (const auto* loop = std::get_if<Loop>(&command)) return loop_text(*loop);
  if (const auto* branch = std::get_if<Branch>(&command)) return branch_text(*branch);
  const auto& call = std::get<HostCall>(command);
  return fmt::format("host {}({}) -> ({})", call.function,
                     views_text(call.arguments, 0, call.arguments.size()),
                     views_text(call.results, 0, call.results.size()));
}

// Appends one section or one region; `number` is the next command's number.
void append_list(std::string& out, const Program& program, const std::vector<Command>& commands,
                 const std::vector<CommandInfo>& info, size_t indent, int64_t& number) {
  for (size_t i = 0; i < commands.size(); ++i) {
    out += fmt::format("{:{}}{} {}", "", indent, number++, command_text(program, commands[i]));
    if (i < info.size()) {
      out += fmt::format("  // {}: {}", info[i].name, info[i].operators);
      if (!info[i].nodes.empty()) out += fmt::format("; {}", nodes_text(info[i].nodes, kMostNodes));
    }
    out += '\n';
    const std::vector<RegionId> regions = regions_of(commands[i]);
    const bool loop = std::holds_alternative<Loop>(commands[i]);
    for (size_t r = 0; r < regions.size(); ++r) {
      const Region& region = program.regions[regions[r].index()];
      out += fmt::format("{:{}}{}:\n", "", indent + 2,
                         !loop    ? fmt::format("branch {}", r)
                         : r == 0 ? "condition"
                                  : "body");
      append_list(out, program, region.commands, region.info, indent + 4, number);
    }
  }
}

void append_commands(std::string& out, const Program& program, std::string_view title,
                     const std::vector<Command>& commands, const std::vector<CommandInfo>& info) {
  if (commands.empty()) return;
  out += fmt::format("{}:\n", title);
  int64_t number = 0;
  append_list(out, program, commands, info, 2, number);
}

void append_port(std::string& out, std::string_view kind, const Port& port) {
  out += fmt::format("{} {}", kind, port.name);
  if (!port.alias_name.empty()) out += fmt::format(" ({})", port.alias_name);
  out += ": " + tensor::to_string(port.shape);
  if (port.buffer.valid()) out += fmt::format(" = b{}", port.buffer.value);
  if (port.source.buffer.valid()) out += " from " + view_text(port.source);
  out += '\n';
}

void append_check(std::string& out, const Program& program, const tensor::IndexCheck& check,
                  size_t hidden) {
  const bool computed = check.input < 0;
  const Port& port = computed ? program.outputs[hidden] : program.inputs[check.input];
  out += fmt::format("check {} {}:", computed ? "output" : "input", port.name);
  if (!check.starts.empty())
    out += fmt::format(" from [{}] to [{}]:", fmt::join(check.starts, ","),
                       fmt::join(check.limits, ","));
  for (const tensor::IndexRange& range : check.ranges)
    out += fmt::format(" {} to {}", range.low, range.high);
  out += fmt::format("  // {}\n", check.node);
}

void append_state(std::string& out, const Program& program, size_t i) {
  out += fmt::format("state input {}, output {}:", program.inputs[shown_inputs(program) + i].name,
                     program.outputs[program.outputs.size() - program.states.size() + i].name);
  for (const uint8_t byte : program.states[i].start) out += fmt::format(" {:02x}", byte);
  out += '\n';
}

void append_buffer(std::string& out, size_t i, const Buffer& b) {
  out += fmt::format("  b{} {} {} {} bytes", i, kind_name(b.kind), b.name, b.bytes);
  if (b.space == Space::host) out += " on the host";
  if (b.kind == BufferKind::input || b.kind == BufferKind::output)
    out += fmt::format(" number {}", b.number);
  else
    out += fmt::format(" at {}", b.offset_bytes);
  if (b.alias.valid()) out += fmt::format(" alias b{}", b.alias.value);
  if (b.kind == BufferKind::temporary)
    out += fmt::format(" live [{}, {}]", b.first_command, b.last_command);
  out += '\n';
}

}  // namespace

std::string to_string(const Program& program) {
  std::string out = fmt::format("program {}\n", program.name);
  if (!program.options.empty()) out += fmt::format("options {}\n", program.options);
  for (const std::string& note : program.notes) out += fmt::format("note {}\n", note);
  const MemoryNumbers& m = program.memory;
  out += fmt::format("memory: lower bound {} bytes, plan {}{}, unshared {}; once {}; object {}\n",
                     m.lower_bound_bytes, m.plan_bytes, m.optimal ? " (optimal)" : "",
                     m.unshared_bytes, program.once_bytes, program.object.size());
  if (program.own_memory) {
    const MemoryNumbers& h = program.host_memory;
    const Crossings crossings = count_crossings(program);
    out += fmt::format(
        "host memory: lower bound {} bytes, plan {}{}, unshared {}; once {}; copies: {} to the "
        "device, {} to the host\n",
        h.lower_bound_bytes, h.plan_bytes, h.optimal ? " (optimal)" : "", h.unshared_bytes,
        program.host_once_bytes, crossings.to_device, crossings.to_host);
  }
  if (!program.pool_blocks.empty())
    out += fmt::format("dynamic memory: {} blocks\n", program.pool_blocks.size());
  for (const Port& port : program.inputs) append_port(out, "input", port);
  for (const Port& port : program.outputs) append_port(out, "output", port);
  size_t hidden = shown_outputs(program);
  for (const tensor::IndexCheck& check : program.index_checks) {
    append_check(out, program, check, hidden);
    hidden += check.input < 0 ? 1 : 0;
  }
  for (size_t i = 0; i < program.states.size(); ++i) append_state(out, program, i);
  if (!program.kernels.empty()) out += "kernels:\n";
  for (const Kernel& kernel : program.kernels) {
    out += fmt::format("  {}{}: scratch {} bytes, {} flops, {} bytes;", kernel.name,
                       kernel.label.empty() ? "" : " " + kernel.label, kernel.scratch_bytes,
                       kernel.flops, kernel.min_bytes);
    for (const Phase& phase : kernel.phases)
      out += fmt::format(" {}[{}]{}", phase.symbol, phase.tasks, phase.serial ? " serial" : "");
    out += '\n';
  }
  if (!program.buffers.empty()) out += "buffers:\n";
  for (size_t i = 0; i < program.buffers.size(); ++i) append_buffer(out, i, program.buffers[i]);
  append_commands(out, program, "once", program.once, program.once_info);
  append_commands(out, program, "run", program.commands, program.command_info);
  return out;
}

}  // namespace heddle::program
