#include "dataflow.h"

#include <algorithm>
#include <set>

#include "program/views.h"

namespace heddle::tools {
namespace {

using program::BufferId;
using program::BufferKind;
using program::Command;
using program::CommandInfo;
using program::Program;
using program::Use;
using program::View;

struct Piece {
  size_t command = 0;
  BufferId buffer;
  int64_t begin = 0, end = 0;
};

struct Pieces {
  std::vector<std::vector<Piece>> writes;  // by buffer, in the order of commands
  std::vector<Piece> reads;
  size_t commands = 0;
};

Pieces pieces_of(const Program& program) {
  Pieces pieces;
  pieces.writes.resize(program.buffers.size());
  program::for_each_command(program, program.commands, program.command_info,
                            [&](const Command& command, const CommandInfo&, int) {
                              const size_t number = pieces.commands++;
                              program::for_each_view(command, [&](const View& view, Use use) {
                                if (!view.buffer.valid() || use == Use::workspace) return;
                                const Piece piece{
                                    number, view.buffer, view.offset_bytes,
                                    view.offset_bytes + program::stored_bytes(view.shape)};
                                if (use == Use::read)
                                  pieces.reads.push_back(piece);
                                else
                                  pieces.writes[view.buffer.index()].push_back(piece);
                              });
                            });
  return pieces;
}

bool overlap(const Piece& a, const Piece& b) { return a.begin < b.end && b.begin < a.end; }

// Those that the read may see: the last before it that covers it, and what was written since; where
// nothing was, what the loop's trip before wrote.
std::vector<size_t> writers_of(const Piece& read, const std::vector<Piece>& writes) {
  std::vector<size_t> writers;
  for (auto at = writes.rbegin(); at != writes.rend(); ++at) {
    if (at->command >= read.command || !overlap(*at, read)) continue;
    writers.push_back(at->command);
    if (at->begin <= read.begin && at->end >= read.end) return writers;
  }
  for (const Piece& write : writes)
    if (write.command >= read.command && overlap(write, read)) writers.push_back(write.command);
  return writers;
}

}  // namespace

Dataflow dataflow_of(const Program& program) {
  const Pieces pieces = pieces_of(program);
  Dataflow result;
  result.given.resize(pieces.commands);
  std::set<std::tuple<size_t, size_t, uint32_t>> seen;
  for (const Piece& read : pieces.reads) {
    const size_t buffer = read.buffer.index();
    const std::vector<size_t> writers = writers_of(read, pieces.writes[buffer]);
    for (size_t writer : writers)
      if (seen.emplace(writer, read.command, read.buffer.value).second)
        result.flows.push_back({writer, read.command, read.buffer, read.end - read.begin});
    std::vector<BufferId>& given = result.given[read.command];
    if (writers.empty() && std::find(given.begin(), given.end(), read.buffer) == given.end())
      given.push_back(read.buffer);
  }
  for (const std::vector<Piece>& writes : pieces.writes)
    result.last_writer.push_back(writes.empty() ? -1 : static_cast<int64_t>(writes.back().command));
  return result;
}

std::vector<std::vector<BufferId>> sources_of_once(const Program& program) {
  std::vector<std::vector<BufferId>> sources(program.buffers.size());
  const auto add = [&](std::vector<BufferId>* to, BufferId id) {
    const bool constant = program.buffers[id.index()].kind == BufferKind::constant;
    for (BufferId from : constant ? std::vector<BufferId>{id} : sources[id.index()])
      if (std::find(to->begin(), to->end(), from) == to->end()) to->push_back(from);
  };
  program::for_each_command(program, program.once, program.once_info,
                            [&](const Command& command, const CommandInfo&, int) {
                              std::vector<BufferId> from;
                              program::for_each_view(command, [&](const View& view, Use use) {
                                if (!view.buffer.valid() || use == Use::workspace) return;
                                if (use == Use::read) return add(&from, view.buffer);
                                std::vector<BufferId>& to = sources[view.buffer.index()];
                                for (BufferId id : from)
                                  if (std::find(to.begin(), to.end(), id) == to.end())
                                    to.push_back(id);
                              });
                            });
  return sources;
}

}  // namespace heddle::tools
