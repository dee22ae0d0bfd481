#include "api/program_facts.h"

#include <unordered_set>
#include <variant>

#include "program/side_by_side.h"
#include "program/views.h"

namespace heddle::api {

std::string option_value(const std::string& options, const std::string& key) {
  const std::string wanted = " " + key + "=", text = " " + options;
  const size_t begin = text.find(wanted);
  if (begin == std::string::npos) return {};
  const size_t value = begin + wanted.size();
  return text.substr(value, text.find(' ', value) - value);
}

CommandWork work_of(const program::Program& program, const program::Command& command) {
  if (const auto* launch = std::get_if<program::Launch>(&command)) {
    const program::Kernel& kernel = program.kernels[launch->kernel.index()];
    return {kernel.flops, kernel.min_bytes};
  }
  if (const auto* call = std::get_if<program::LibraryCall>(&command))
    return {call->flops, call->min_bytes};
  CommandWork work;
  if (!program::regions_of(command).empty()) return work;
  program::for_each_view(command, [&](const program::View& view, program::Use) {
    work.bytes += program::stored_bytes(view.shape);
  });
  return work;
}

void count_commands(const program::Program& program, ProgramFacts& facts) {
  std::unordered_set<uint32_t> used_kernels;
  std::vector<bool> used(program.buffers.size(), false);
  auto count = [&](const program::Command& command, const program::CommandInfo&, int) {
    ++facts.launches;
    program::for_each_view(command, [&](const program::View& view, program::Use) {
      used[view.buffer.index()] = true;
    });
    const CommandWork work = work_of(program, command);
    facts.flops += work.flops;
    facts.min_bytes += work.bytes;
    if (const auto* launch = std::get_if<program::Launch>(&command))
      used_kernels.insert(launch->kernel.value);
  };
  program::for_each_command(program, program.commands, program.command_info, count);
  for (const program::Port& port : program.outputs)
    if (port.source.buffer.valid()) used[port.source.buffer.index()] = true;
  for (size_t i = 0; i < used.size(); ++i)
    if (used[i] && program.buffers[i].kind == program::BufferKind::constant)
      facts.constant_bytes += program.buffers[i].bytes;
  facts.constant_bytes += program.once_bytes;
  facts.launches -= program::joined_count(program);
  // Kernels that differ only in extents may share code.
  std::unordered_set<std::string> codes, used_codes;
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    const program::Kernel& kernel = program.kernels[i];
    const std::string& code = kernel.phases.empty() ? kernel.name : kernel.phases[0].symbol;
    codes.insert(code);
    if (used_kernels.count(static_cast<uint32_t>(i)) > 0) used_codes.insert(code);
  }
  facts.kernels = static_cast<int64_t>(codes.size());
  facts.run_kernels = static_cast<int64_t>(used_codes.size());
}

}  // namespace heddle::api
