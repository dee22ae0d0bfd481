#include "fuse/limit_memory.h"

#include <algorithm>

#include "fuse/memory.h"

namespace heddle::fuse {

namespace {

constexpr int kMostRestored = 16;

int64_t most(const std::vector<int64_t>& live) {
  return live.empty() ? 0 : *std::max_element(live.begin(), live.end());
}

bool is_argument(const Instr* instr) {
  return instr->is(Opcode::parameter) || instr->is(Opcode::constant) || instr->is(Opcode::tuple);
}

}  // namespace

MemoryLimit::MemoryLimit(const Covered& covered, const Grouped& grouped)
    : covered_(covered), grouped_(grouped) {
  for (const auto& group : grouped.groups) before_.push_back(*group);
  limit_ = most(live());
}

void MemoryLimit::restore() {
  if (limit_ == 0) return;
  for (int round = 0; round < kMostRestored; ++round) {
    const std::vector<int64_t> now = live();
    const auto worst = std::max_element(now.begin(), now.end());
    if (*worst <= limit_) return;
    const auto at = static_cast<size_t>(worst - now.begin());
    if (at >= grouped_.groups.size()) return;  // no group
    const std::vector<size_t> parts = merged_with(at);
    if (parts.size() < 2) return;
    for (size_t part : parts) {
      Group* group = grouped_.groups[part].get();
      for (const Instr* member : group->members) std::erase(grouped_.group_of[member], group);
    }
    for (size_t part : parts) {
      Group* group = grouped_.groups[part].get();
      *group = before_[part];
      for (const Instr* member : group->members) grouped_.group_of[member].push_back(group);
    }
  }
}

// All groups of before that share members with the group, or with what these became part of.
std::vector<size_t> MemoryLimit::merged_with(size_t group) const {
  std::unordered_map<const Instr*, std::vector<size_t>> holders;
  for (size_t g = 0; g < before_.size(); ++g)
    for (const Group* of : {&before_[g], static_cast<const Group*>(grouped_.groups[g].get())})
      for (const Instr* member : of->members)
        if (!of->copies.count(member)) holders[member].push_back(g);
  std::vector<size_t> found{group};
  for (size_t i = 0; i < found.size(); ++i)
    for (const Group* of :
         {&before_[found[i]], static_cast<const Group*>(grouped_.groups[found[i]].get())})
      for (const Instr* member : of->members)
        for (size_t other : holders[member])
          if (std::find(found.begin(), found.end(), other) == found.end()) found.push_back(other);
  return found;
}

std::vector<int64_t> MemoryLimit::live() const {
  if (!covered_.callers.empty()) return {};
  std::unordered_map<const Group*, int> number;
  int nodes = 0;
  for (const auto& group : grouped_.groups) {
    const int node = nodes++;
    if (!group->members.empty() && !group->once && !is_view(*group))
      number.emplace(group.get(), node);
  }
  std::unordered_map<const Instr*, std::vector<int>> nodes_of;
  for (const Instr* instr : covered_.computation->instrs()) {
    const auto groups = grouped_.group_of.find(instr);
    if (groups == grouped_.group_of.end() || groups->second.empty()) {
      if (!is_argument(instr)) nodes_of[instr] = {nodes++};
      continue;
    }
    for (const Group* group : groups->second)
      if (const auto known = number.find(group); known != number.end())
        nodes_of[instr].push_back(known->second);
  }
  const std::vector<int> none;
  return live_bytes(memory_graph(*covered_.computation, nodes,
                                 [&](const Instr* instr) -> const std::vector<int>& {
                                   const auto known = nodes_of.find(instr);
                                   return known == nodes_of.end() ? none : known->second;
                                 }));
}

}  // namespace heddle::fuse
