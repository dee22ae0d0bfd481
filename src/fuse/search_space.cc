#include "fuse/search_space.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "base/check.h"
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
    std::vector<size_t> readers;
    size_t waits = 0;
  };
  std::vector<Node> nodes;
  std::unordered_map<const Instr*, size_t> node_of;
  for (Group* group : kept) {
    for (Instr* member : group->members)
      if (!group->copies.count(member)) node_of[member] = nodes.size();
    nodes.push_back({group->members, group, {}, 0});
  }
  for (Instr* instr : computation().instrs()) {
    if (node_of.count(instr) || is_view(instr)) continue;
    node_of[instr] = nodes.size();
    nodes.push_back({{instr}, nullptr, {}, 0});
  }
  std::vector<std::vector<size_t>> producers(nodes.size());
  for (size_t n = 0; n < nodes.size(); ++n) {
    std::unordered_set<size_t> needs;
    std::function<void(const Instr*)> need = [&](const Instr* instr) {
      for (const Instr* operand : instr->operands()) {
        if (nodes[n].group && nodes[n].group->copies.count(operand)) continue;  // its own
        if (is_view(operand)) {
          need(operand);
        } else if (auto found = node_of.find(operand); found != node_of.end()) {
          needs.insert(found->second);
        }
      }
      for (const Instr* before : instr->control_predecessors())
        if (auto found = node_of.find(before); found != node_of.end()) needs.insert(found->second);
    };
    for (const Instr* instr : nodes[n].instrs) need(instr);
    needs.erase(n);
    nodes[n].waits = needs.size();
    for (size_t other : needs) {
      nodes[other].readers.push_back(n);
      producers[n].push_back(other);
    }
  }
  using Ready = std::pair<size_t, size_t>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  auto key = [&](size_t n) { return index(nodes[n].instrs.back()); };
  for (size_t n = 0; n < nodes.size(); ++n)
    if (nodes[n].waits == 0) ready.push({key(n), n});
  std::vector<int> number(nodes.size(), -1);
  while (!ready.empty()) {
    const size_t n = ready.top().second;
    ready.pop();
    std::vector<int> read;
    for (size_t other : producers[n]) read.push_back(number[other]);
    Instr* instr = nodes[n].group ? nullptr : nodes[n].instrs[0];
    number[n] = graph.add(std::move(read), instr && movable_.count(instr) > 0);
    instr_of.push_back(instr);
    for (const Instr* member : nodes[n].instrs)
      if (!nodes[n].group || !nodes[n].group->copies.count(member)) vertex_of_[member] = number[n];
    for (size_t reader : nodes[n].readers)
      if (--nodes[reader].waits == 0) ready.push({key(reader), reader});
  }
  HEDDLE_CHECK(instr_of.size() == nodes.size(), "the basic fusion has a cycle");
}

}  // namespace heddle::fuse
