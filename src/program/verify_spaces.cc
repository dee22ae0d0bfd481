// The checker's own definition of the side on which commands work.
#include "program/verify_parts.h"
#include "program/views.h"

namespace heddle::program {
namespace {

// The space of a command's data, except views that the host reads to decide.
Space works_in(const Program& program, const Command& command) {
  if (std::holds_alternative<HostCall>(command)) return Space::host;
  if (const auto* update = std::get_if<Update>(&command))
    return program.buffers[update->result.buffer.index()].space;
  if (const auto* concatenate = std::get_if<Concatenate>(&command))
    return program.buffers[concatenate->result.buffer.index()].space;
  return Space::device;
}

// Whether the host reads the view to decide. Other views of loops and branches may be in any space
// (that memory is shared is checked elsewhere).
bool decides(const Command& command, const View& view) {
  if (const auto* update = std::get_if<Update>(&command))
    for (const View& start : update->starts)
      if (&start == &view) return true;
  if (const auto* loop = std::get_if<Loop>(&command)) return &view == &loop->predicate;
  if (const auto* branch = std::get_if<Branch>(&command)) return &view == &branch->selector;
  return false;
}

}  // namespace

Status verify_spaces(const Program& program) {
  if (!program.own_memory) return {};
  Status status;
  auto check = [&](const Command& command, const CommandInfo& info, int) {
    if (std::holds_alternative<Copy>(command)) return;
    const Space space = works_in(program, command);
    const bool control = !regions_of(command).empty();
    for_each_view(command, [&](const View& view, Use) {
      const bool decided = decides(command, view);
      const Buffer& buffer = program.buffers[view.buffer.index()];
      const Space wanted = decided ? Space::host : space;
      if (!status || (control && !decided) || buffer.kind == BufferKind::constant ||
          stored_bytes(view.shape) == 0 || buffer.space == wanted)
        return;
      status = user_error("program {}: {}: {} lies on the {}", program.name, info.name, buffer.name,
                          buffer.space == Space::host ? "host" : "device");
    });
  };
  for_each_command(program, program.once, program.once_info, check);
  for_each_command(program, program.commands, program.command_info, check);
  return status;
}

}  // namespace heddle::program
