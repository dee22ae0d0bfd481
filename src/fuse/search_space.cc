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
  std::sort(found.begin(), found.end(),
            [&](const Instr* a, const Instr* b) { return index(a) < index(b); });
  return found;
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
    return std::any_of(instr->users().begin(), instr->users().end(), [&](const Instr* user) {
      return std::find(group.members.begin(), group.members.end(), user) == group.members.end();
    });
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

// Readers first.
void SearchSpace::find_views() {
  const std::vector<Instr*>& order = computation().instrs();
  std::unordered_set<const Instr*> read_by_kept;  // from outside of the group
  for (const Group* group : kept) {
    const std::unordered_set<const Instr*> inside(group->members.begin(), group->members.end());
    for (const Instr* member : group->members)
      for (const Instr* operand : member->operands())
        if (!inside.count(operand)) read_by_kept.insert(operand);
  }
  for (size_t i = order.size(); i-- > 0;) {
    const Instr* instr = order[i];
    if (!is_duplicable(instr) || instr->is(Opcode::constant) || instr->users().empty() ||
        instr == computation().root() || kept_of_.count(instr) || read_by_kept.count(instr))
      continue;
    const bool inside =
        std::all_of(instr->users().begin(), instr->users().end(), [&](const Instr* user) {
          return views_.count(user) || kept_of_.count(user) || movable_.count(user);
        });
    if (inside) views_.insert(instr);
  }
}

// Groups that stay and instructions, producers first, otherwise as they stand.
void SearchSpace::number() {
  struct Node {
    std::vector<Instr*> instrs;
    Group* group = nullptr;
  };
  std::vector<Node> nodes;
  std::unordered_map<const Instr*, int> node_of;
  auto add = [&](Node node) {
    for (const Instr* instr : node.instrs)
      if (!node.group || !node.group->copies.count(instr))
        node_of[instr] = static_cast<int>(nodes.size());
    nodes.push_back(std::move(node));
  };
  for (Group* group : kept) add({group->members, group});
  for (Instr* instr : computation().instrs())
    if (!node_of.count(instr) && !is_view(instr)) add({{instr}});
  const auto effects = effects_before(computation());
  std::vector<std::vector<int>> before(nodes.size());
  std::vector<size_t> key;
  for (size_t n = 0; n < nodes.size(); ++n) {
    std::unordered_set<int> needs;
    auto see = [&](const Instr* instr) {
      if (auto found = node_of.find(instr); found != node_of.end()) needs.insert(found->second);
    };
    std::function<void(const Instr*)> need = [&](const Instr* instr) {
      for (const Instr* operand : instr->operands()) {
        if (nodes[n].group && nodes[n].group->copies.count(operand)) continue;  // its own
        is_view(operand) ? need(operand) : see(operand);
      }
      for (const Instr* earlier : instr->control_predecessors()) see(earlier);
      if (const auto effect = effects.find(instr); effect != effects.end()) see(effect->second);
    };
    for (const Instr* instr : nodes[n].instrs) need(instr);
    needs.erase(static_cast<int>(n));
    before[n].assign(needs.begin(), needs.end());
    key.push_back(index(nodes[n].instrs.back()));
  }
  const std::vector<int> order = in_order(before, key);
  has_order_ = order.size() == nodes.size();
  std::vector<int> number(nodes.size(), -1);
  for (int n : order) {
    const Node& node = nodes[static_cast<size_t>(n)];
    std::vector<int> read;
    for (int other : before[static_cast<size_t>(n)])
      read.push_back(number[static_cast<size_t>(other)]);
    Instr* instr = node.group ? nullptr : node.instrs[0];
    const int vertex = graph.add(std::move(read), instr && movable_.count(instr) > 0);
    number[static_cast<size_t>(n)] = vertex;
    instr_of.push_back(instr);
    for (const Instr* member : node.instrs)
      if (!node.group || !node.group->copies.count(member)) vertex_of_[member] = vertex;
  }
}

}  // namespace heddle::fuse
