#include "program/spaces.h"

namespace heddle::program {
namespace {

bool on_host(const Program& program, const View& view) {
  return program.buffers[view.buffer.index()].space == Space::host;
}
bool is_constant(const Program& program, const View& view) {
  return program.buffers[view.buffer.index()].kind == BufferKind::constant;
}

void count(const Program& program, const std::vector<Command>& commands, bool in_loop,
           Crossings& found) {
  for (const Command& command : commands) {
    found.host_calls += std::holds_alternative<HostCall>(command);
    if (const auto* copy = std::get_if<Copy>(&command)) {
      const int64_t bytes = stored_bytes(copy->to.shape);
      const bool in = goes_to_device(program, *copy), out = goes_to_host(program, *copy);
      found.to_device += in;
      found.to_host += out;
      if (in) found.to_device_bytes += bytes;
      if (out) found.to_host_bytes += bytes;
      found.in_loops += in_loop && (in || out);
    }
    if (const auto* loop = std::get_if<Loop>(&command)) {
      count(program, program.regions[loop->condition.index()].commands, true, found);
      count(program, program.regions[loop->body.index()].commands, true, found);
    } else if (const auto* branch = std::get_if<Branch>(&command)) {
      for (RegionId id : branch->regions)
        count(program, program.regions[id.index()].commands, in_loop, found);
    }
  }
}

}  // namespace

bool goes_to_device(const Program& program, const Copy& copy) {
  return program.own_memory && !on_host(program, copy.to) && on_host(program, copy.from);
}

bool goes_to_host(const Program& program, const Copy& copy) {
  return on_host(program, copy.to) && !on_host(program, copy.from) &&
         !is_constant(program, copy.from);
}

bool is_on_host(const Program& program, const Copy& copy) {
  return on_host(program, copy.to) && !goes_to_host(program, copy);
}
bool is_on_host(const Program& program, const Update& update) {
  return on_host(program, update.result);
}
bool is_on_host(const Program& program, const Concatenate& concatenate) {
  return on_host(program, concatenate.result);
}

bool is_read_by_host(const Program& program, const Command& command, const View& view) {
  if (const auto* copy = std::get_if<Copy>(&command)) return is_on_host(program, *copy);
  if (const auto* concatenate = std::get_if<Concatenate>(&command))
    return is_on_host(program, *concatenate);
  if (const auto* update = std::get_if<Update>(&command)) {
    const View* starts = update->starts.data();
    const bool start = &view >= starts && &view < starts + update->starts.size();
    return start || is_on_host(program, *update);
  }
  return std::holds_alternative<HostCall>(command) || std::holds_alternative<Loop>(command) ||
         std::holds_alternative<Branch>(command);
}

Crossings count_crossings(const Program& program) {
  Crossings found;
  count(program, program.commands, false, found);
  return found;
}

}  // namespace heddle::program
