// Merges (chains, pools, siblings) keep a kernel's inputs alive until its last result is computed.
// If that would raise the computation's peak memory, they are undone: measure_memory records the
// groups and the peak, limit_memory splits the groups at which more is live, worst first.
#include <algorithm>

#include "fuse/memory.h"
#include "fuse/open_cover.h"

namespace heddle::fuse {

namespace {

constexpr int kMostRestored = 16;

bool is_argument(const Instr* instr) {
  return instr->is(Opcode::parameter) || instr->is(Opcode::constant) || instr->is(Opcode::tuple);
}

// Live bytes, by group.
std::vector<int64_t> live(const OpenCover& cover) {
  if (!cover.covered.callers.empty()) return {};
  std::unordered_map<const Group*, int> number;
  int nodes = 0;
  for (const auto& group : cover.groups) {
    const int node = nodes++;
    if (!group->members.empty() && !group->once && !is_view(*group))
      number.emplace(group.get(), node);
  }
  std::unordered_map<const Instr*, std::vector<int>> nodes_of;
  for (const Instr* instr : cover.computation()->instrs()) {
    const auto groups = cover.group_of.find(instr);
    if (groups == cover.group_of.end() || groups->second.empty()) {
      if (!is_argument(instr)) nodes_of[instr] = {nodes++};
      continue;
    }
    for (const Group* group : groups->second)
      if (const auto known = number.find(group); known != number.end())
        nodes_of[instr].push_back(known->second);
  }
  const std::vector<int> none;
  return live_bytes(
      memory_graph(*cover.computation(), nodes, [&](const Instr* instr) -> const std::vector<int>& {
        const auto known = nodes_of.find(instr);
        return known == nodes_of.end() ? none : known->second;
      }));
}

// All groups from before the merges that share members with the group, directly or through other
// merges.
std::vector<size_t> merged_with(const OpenCover& cover, size_t group) {
  const auto both = [&](size_t g) {
    return std::vector<const Group*>{&cover.before[g], cover.groups[g].get()};
  };
  std::unordered_map<const Instr*, std::vector<size_t>> holders;
  for (size_t g = 0; g < cover.before.size(); ++g)
    for (const Group* of : both(g))
      for (const Instr* member : of->members)
        if (!of->copies.count(member)) holders[member].push_back(g);
  std::vector<size_t> found{group};
  for (size_t i = 0; i < found.size(); ++i)
    for (const Group* of : both(found[i]))
      for (const Instr* member : of->members)
        for (size_t other : holders[member])
          if (std::find(found.begin(), found.end(), other) == found.end()) found.push_back(other);
  return found;
}

void restore(OpenCover* cover, const std::vector<size_t>& parts) {
  for (size_t part : parts) {
    Group* group = cover->groups[part].get();
    for (const Instr* member : group->members) std::erase(cover->group_of[member], group);
  }
  for (size_t part : parts) {
    Group* group = cover->groups[part].get();
    *group = cover->before[part];
    for (const Instr* member : group->members) cover->group_of[member].push_back(group);
  }
}

}  // namespace

Result<bool> measure_memory(OpenCover& cover, const Context&) {
  cover.before.clear();
  for (const auto& group : cover.groups) cover.before.push_back(*group);
  const std::vector<int64_t> bytes = live(cover);
  cover.most_bytes = bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
  return false;
}

Result<bool> limit_memory(OpenCover& cover, const Context&) {
  if (cover.most_bytes == 0 || cover.searched) return false;
  bool changed = false;
  for (int round = 0; round < kMostRestored; ++round) {
    const std::vector<int64_t> now = live(cover);
    const auto worst = std::max_element(now.begin(), now.end());
    if (*worst <= cover.most_bytes) break;
    const auto at = static_cast<size_t>(worst - now.begin());
    if (at >= cover.groups.size()) break;  // not a group
    const std::vector<size_t> parts = merged_with(cover, at);
    if (parts.size() < 2) break;
    restore(&cover, parts);
    changed = true;
  }
  cover.is_settled |= changed;  // the order of kernels is not updated
  return changed;
}

}  // namespace heddle::fuse
