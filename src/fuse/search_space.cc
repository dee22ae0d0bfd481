#include "fuse/search_space.h"

#include <algorithm>
#include <functional>

#include "fuse/worth.h"

namespace heddle::fuse {

SearchSpace::SearchSpace(const Basic& basic, const target::Target& target, PlacedFacts* facts,
                         const std::function<bool(const Group&)>& stays,
                         const SearchOptions& options)
    : basic_(basic) {
  for (Group* group : basic.groups) (stays(*group) ? kept : free).push_back(group);
  keep_without_gain(target, facts, options);
  for (Instr* instr : computation().instrs()) index_.emplace(instr, index_.size());
  for (const Group* group : free)
    for (Instr* member : group->members) movable_.insert(member);
  for (Group* group : kept)
    for (Instr* member : group->members)
      if (!group->copies.count(member)) kept_of_[member] = group;
  find_views();
  number();
}

int SearchSpace::vertex(const Instr* instr) const {
  auto found = vertex_of_.find(instr);
  return found == vertex_of_.end() ? -1 : found->second;
}

Members SearchSpace::vertices_of(const Group& group, bool own) const {
  Members members;
  for (const Instr* member : group.members) {
    if (own && group.copies.count(member)) continue;
    const int found = vertex(member);
    if (found >= 0 && graph.vertices[static_cast<size_t>(found)].can_fuse) members.push_back(found);
  }
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
  return members;
}

std::vector<Instr*> SearchSpace::with_views(const Members& members) const {
  std::vector<Instr*> found;
  std::unordered_set<const Instr*> seen;
  for (int member : members) {
    found.push_back(instr_of[static_cast<size_t>(member)]);
    seen.insert(found.back());
  }
  for (size_t i = 0; i < found.size(); ++i)
    for (Instr* operand : found[i]->operands())
      if (is_view(operand) && seen.insert(operand).second) found.push_back(operand);
  return in_order(std::move(found));
}

std::vector<Instr*> SearchSpace::in_order(std::vector<Instr*> instrs) const {
  std::sort(instrs.begin(), instrs.end(),
            [&](const Instr* a, const Instr* b) { return index_.at(a) < index_.at(b); });
  return instrs;
}

bool SearchSpace::leaves(const Instr* instr, const Members& members) const {
  if (instr == computation().root()) return true;
  return std::any_of(instr->users().begin(), instr->users().end(), [&](const Instr* user) {
    if (is_view(user)) return leaves(user, members);
    return !std::binary_search(members.begin(), members.end(), vertex(user));
  });
}

std::function<bool(const Instr*)> SearchSpace::leaves_of(const Group& group) const {
  return [&group, root = computation().root()](const Instr* instr) {
    if (group.copies.count(instr)) return false;
    if (instr == root || group.members.size() == 1) return true;
    return std::any_of(instr->users().begin(), instr->users().end(),
                       [&](const Instr* user) { return !has(group, user); });
  };
}

void SearchSpace::keep_without_gain(const target::Target& target, PlacedFacts* facts,
                                    const SearchOptions& options) {
  const std::vector<bool> stay = groups_without_gain(free, target, options, [&](Group* group) {
    return RegionGroup{signature(group->members, leaves_of(*group)),
                       facts->of(group->members, leaves_of(*group))};
  });
  std::vector<Group*> searched;
  for (size_t g = 0; g < free.size(); ++g) (stay[g] ? kept : searched).push_back(free[g]);
  free = std::move(searched);
}

// Visits readers first.
void SearchSpace::find_views() {
  const std::vector<Instr*>& order = computation().instrs();
  std::unordered_set<const Instr*> read_by_kept;  // values from outside of the group
  for (const Group* group : kept) {
    const std::unordered_set<const Instr*> inside(group->members.begin(), group->members.end());
    for (const Instr* member : group->members)
      for (const Instr* operand : member->operands())
        if (!inside.count(operand)) read_by_kept.insert(operand);
  }
  for (size_t i = order.size(); i-- > 0;) {
    const Instr* instr = order[i];
    if (!is_duplicable(instr) || instr->is(Opcode::constant) || instr->users().empty() ||
        instr == computation().root() || kept_of_.count(instr) || read_by_kept.count(instr) ||
        !has_kernel(instr))
      continue;
    const bool inside =
        std::all_of(instr->users().begin(), instr->users().end(), [&](const Instr* user) {
          return views_.count(user) || kept_of_.count(user) || movable_.count(user);
        });
    if (inside) views_.insert(instr);
  }
}

// Numbers groups that stay and instructions: producers first, otherwise in the old order.
void SearchSpace::number() {
  std::vector<std::vector<Instr*>> nodes;
  std::unordered_map<const Instr*, int> node_of;
  for (Group* group : kept) {
    for (const Instr* instr : group->members)
      if (!group->copies.count(instr)) node_of[instr] = static_cast<int>(nodes.size());
    nodes.push_back(group->members);
  }
  for (Instr* instr : computation().instrs()) {
    if (is_view(instr) || !node_of.emplace(instr, static_cast<int>(nodes.size())).second) continue;
    nodes.push_back({instr});
  }
  const auto before = waits_of(computation(), nodes, [&](const Instr* instr) {
    const auto found = node_of.find(instr);
    return found == node_of.end() ? -1 : found->second;
  });
  std::vector<size_t> key;
  for (const auto& node : nodes) key.push_back(index_.at(node.back()));
  const std::vector<int> order = fuse::in_order(before, key);
  has_order_ = order.size() == nodes.size();
  std::vector<int> number(nodes.size(), -1);
  for (int n : order) {
    std::vector<int> read;
    for (int other : before[static_cast<size_t>(n)])
      read.push_back(number[static_cast<size_t>(other)]);
    Instr* instr =
        static_cast<size_t>(n) < kept.size() ? nullptr : nodes[static_cast<size_t>(n)][0];
    number[static_cast<size_t>(n)] = graph.add(std::move(read), instr && movable_.count(instr) > 0);
    instr_of.push_back(instr);
  }
  for (const auto& [instr, node] : node_of) vertex_of_[instr] = number[static_cast<size_t>(node)];
}

}  // namespace heddle::fuse
