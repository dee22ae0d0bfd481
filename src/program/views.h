// Walks commands, and the views that they read and write.
#pragma once

#include <type_traits>
#include <variant>

#include "program/program.h"

namespace heddle::program {

enum class Use { read, write, workspace };

// Calls function(View&, Use) on every view of a command, reads before writes. For a loop or a
// branch only on its own views, not those of its regions.
template <typename CommandT, typename Function>
void for_each_view(CommandT& command, Function&& function) {
  static_assert(std::is_same_v<std::remove_const_t<CommandT>, Command>);
  if (auto* launch = std::get_if<Launch>(&command)) {
    int64_t i = 0;
    for (auto& view : launch->arguments) {
      const Use use = i < launch->inputs                     ? Use::read
                      : i < launch->inputs + launch->outputs ? Use::write
                                                             : Use::workspace;
      function(view, use);
      ++i;
    }
  } else if (auto* copy = std::get_if<Copy>(&command)) {
    function(copy->from, Use::read);
    function(copy->to, Use::write);
  } else if (auto* call = std::get_if<HostCall>(&command)) {
    for (auto& view : call->arguments) function(view, Use::read);
    for (auto& view : call->results) function(view, Use::write);
  } else if (auto* update = std::get_if<Update>(&command)) {
    function(update->operand, Use::read);
    function(update->update, Use::read);
    for (auto& view : update->starts) function(view, Use::read);
    function(update->result, Use::write);
  } else if (auto* concatenate = std::get_if<Concatenate>(&command)) {
    for (auto& view : concatenate->pieces) function(view, Use::read);
    function(concatenate->result, Use::write);
  } else if (auto* call = std::get_if<LibraryCall>(&command)) {
    for (auto& view : call->arguments) function(view, Use::read);
    function(call->result, Use::write);
  } else if (auto* loop = std::get_if<Loop>(&command)) {
    for (auto& carried : loop->carried) function(carried.init, Use::read);
    function(loop->predicate, Use::read);
    for (auto& carried : loop->carried) function(carried.next, Use::read);
    for (auto& carried : loop->carried) function(carried.state, Use::write);
  } else {
    auto& branch = std::get<Branch>(command);
    function(branch.selector, Use::read);
    for (auto& joined : branch.joined)
      for (auto& view : joined.sources) function(view, Use::read);
    for (auto& joined : branch.joined) function(joined.result, Use::write);
  }
}

// The regions that a command runs, in the numbering order of their commands.
inline std::vector<RegionId> regions_of(const Command& command) {
  if (const auto* loop = std::get_if<Loop>(&command)) return {loop->condition, loop->body};
  if (const auto* branch = std::get_if<Branch>(&command)) return branch->regions;
  return {};
}

// Calls function(const Command&, const CommandInfo&, int depth) on every command, each followed by
// the commands of its regions: in numbering order. The program must be valid.
template <typename Function>
void for_each_command(const Program& program, const std::vector<Command>& commands,
                      const std::vector<CommandInfo>& info, Function&& function, int depth = 0) {
  for (size_t i = 0; i < commands.size(); ++i) {
    function(commands[i], info[i], depth);
    for (RegionId id : regions_of(commands[i])) {
      const Region& region = program.regions[id.index()];
      for_each_command(program, region.commands, region.info, function, depth + 1);
    }
  }
}

// Number of commands of a section, including those of regions.
inline int64_t command_count(const Program& program, const std::vector<Command>& commands) {
  int64_t count = 0;
  for (const Command& command : commands) {
    ++count;
    for (RegionId id : regions_of(command))
      count += command_count(program, program.regions[id.index()].commands);
  }
  return count;
}

// Calls function(View&, Use) on every view of the commands and of all their regions.
template <typename ProgramT, typename CommandsT, typename Function>
void for_each_view_within(ProgramT& program, CommandsT& commands, Function&& function) {
  for (auto& command : commands) {
    for_each_view(command, function);
    for (RegionId id : regions_of(command))
      for_each_view_within(program, program.regions[id.index()].commands, function);
  }
}

}  // namespace heddle::program
