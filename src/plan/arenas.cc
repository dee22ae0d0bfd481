#include "plan/arenas.h"

#include <map>

#include "base/check.h"

namespace heddle::plan {
namespace {

// Places the blocks one after another.
void lay_out(Arena& arena) {
  for (const Block& block : arena.blocks) {
    arena.offsets.offsets.push_back(arena.offsets.height_bytes);
    arena.offsets.height_bytes += block.bytes;
  }
}

void search(Arena& arena, int64_t limit) {
  arena.offsets = assign_offsets(arena.blocks, kSearchWork, arena.conflicts);
  if (limit >= 0 && arena.offsets.height_bytes > limit && !arena.offsets.optimal)
    arena.offsets = assign_offsets(arena.blocks, kSearchWorkUnderLimit, arena.conflicts);
  const Status status = check_offsets(arena.blocks, arena.offsets, arena.conflicts);
  HEDDLE_CHECK(status, "{}", status.error().message);
}

// By step: the step of the section's top-level command that contains it.
std::vector<int64_t> commands_of(const Flow& flow, const Sequence& sequence) {
  std::vector<int64_t> command;
  for (size_t step = 0; step < sequence.nodes.size(); ++step) {
    const bool own = flow.node(sequence.nodes[step]).region.index() == 0;
    command.push_back(own ? static_cast<int64_t>(step) : command.back());
  }
  return command;
}

// Dynamic memory: separate bytes for every block. Blocks that live inside only one loop or branch
// form an island: one pool block with its own offset search.
void place_for_pool(const Flow& flow, Section& section) {
  Arena& arena = section.device;
  const std::vector<int64_t> command = commands_of(flow, section.sequence);
  std::map<int64_t, std::vector<size_t>> islands;  // by command: its blocks
  arena.offsets.offsets.resize(arena.blocks.size());
  auto add = [&](int64_t bytes) {
    if (bytes > 0) section.pool_blocks.push_back({arena.offsets.height_bytes, bytes});
    arena.offsets.height_bytes += bytes;
  };
  for (size_t b = 0; b < arena.blocks.size(); ++b) {
    const Block& block = arena.blocks[b];
    const int64_t first = command[static_cast<size_t>(block.first)];
    const NodeId node = section.sequence.nodes[static_cast<size_t>(first)];
    if (!flow.node(node).regions.empty() && block.last <= section.sequence.end[node.index()]) {
      islands[first].push_back(b);
      continue;
    }
    arena.offsets.offsets[b] = arena.offsets.height_bytes;
    add(block.bytes);
  }
  for (const auto& [first, members] : islands) {
    std::vector<Block> blocks;
    for (size_t b : members) blocks.push_back(arena.blocks[b]);
    const Offsets island = assign_offsets(blocks);
    for (size_t m = 0; m < members.size(); ++m)
      arena.offsets.offsets[members[m]] = arena.offsets.height_bytes + island.offsets[m];
    add(island.height_bytes);
  }
}

}  // namespace

void place_blocks(const Flow& flow, const Options& options, bool apart, Section& section) {
  if (apart && options.static_memory) {
    lay_out(section.device);
    return lay_out(section.host);
  }
  if (options.static_memory) Orders::find_conflicts(section);
  search(section.host, -1);
  if (options.static_memory) return search(section.device, options.memory_limit_bytes);
  place_for_pool(flow, section);
}

}  // namespace heddle::plan
