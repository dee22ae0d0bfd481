#include "fuse/open_cover.h"

#include <algorithm>
#include <map>

#include "fuse/feeds.h"
#include "fuse/many_sums.h"
#include "fuse/rebuild.h"
#include "stage/parts.h"

namespace heddle::fuse {

namespace {

std::unordered_map<const Instr*, size_t> places_in(const Computation& computation) {
  std::unordered_map<const Instr*, size_t> places;
  for (const Instr* instr : computation.instrs()) places.emplace(instr, places.size());
  return places;
}

// Keeps the refusals of a computation together, although passes go from one computation to another.
void hand_over(std::vector<Refusal>* from, std::vector<Refusal>* to) {
  if (to) to->insert(to->end(), from->begin(), from->end());
  from->clear();
}

}  // namespace

OpenCover::OpenCover(Covered computation, const target::Target& target)
    : covered(std::move(computation)),
      index(places_in(*covered.computation)),
      once(find_once(covered, &constant)),
      facts(target, /*with_traffic=*/false) {
  clear();
}

void OpenCover::clear() {
  groups.clear();
  group_of.clear();
  copies.clear();
  before.clear();
  most_bytes = 0;
  searched.reset();
  is_settled = false;
  order.emplace(*computation());
}

bool OpenCover::needs_group(const Instr* instr) const {
  return group_of.count(instr) == 0 && has_kernel(instr) &&
         (!instr->users().empty() || instr == computation()->root());
}

Group* OpenCover::add_alone(Instr* instr) {
  Group* group = groups.emplace_back(std::make_unique<Group>()).get();
  group->members = {instr};
  group->once = once.count(instr) > 0;
  group->has_gemm = has_template(instr);
  group->has_dot = is_product(instr);
  group_of[instr].push_back(group);
  order->add_group(group);
  add_filter(instr, group);
  return group;
}

// A transformed filter has a meaning only in its convolution's group.
void OpenCover::add_filter(const Instr* instr, Group* group) {
  Instr* filter = transformed_filter(instr);
  if (!filter) return;
  group->members.insert(group->members.begin(), filter);
  group->copies.insert(filter);
  order->has_copied(filter, group);
  group_of[filter].push_back(group);
  copies.insert(filter);
}

bool OpenCover::has_template(Instr* instr) {
  if (!instr->is(Opcode::convolution)) return instr->is(Opcode::dot);
  auto [known, fresh] = templates_.emplace(instr, false);
  if (fresh) known->second = facts.of_alone(instr).is_gemm;
  return known->second;
}

bool OpenCover::is_window(Instr* instr) {
  if (!instr->is(Opcode::convolution) && !instr->is(Opcode::reduce_window)) return false;
  auto [known, fresh] = windows_.emplace(instr, false);
  if (fresh) known->second = facts.of_alone(instr).windows > 0;
  return known->second;
}

bool OpenCover::has_window(const Group& group) {
  return std::any_of(group.members.begin(), group.members.end(), [&](Instr* member) {
    return is_window(member) || stage::is_stored_by_parts(*member);
  });
}

bool OpenCover::stays(const Group& group) {
  return group.has_dot || has_window(group) || puts_many_together(group.members);
}

std::vector<Group*> OpenCover::readers(const Instr* instr, bool* others) const {
  std::vector<Group*> found;
  *others = instr == computation()->root();
  for (const Instr* user : instr->users()) {
    const auto groups = group_of.find(user);
    if (groups == group_of.end()) {
      *others = true;
      continue;
    }
    for (Group* group : groups->second)
      if (std::find(found.begin(), found.end(), group) == found.end()) found.push_back(group);
  }
  return found;
}

std::vector<Instr*> OpenCover::in_order(std::vector<Instr*> instrs) const {
  std::sort(instrs.begin(), instrs.end(),
            [&](const Instr* a, const Instr* b) { return index.at(a) < index.at(b); });
  instrs.erase(std::unique(instrs.begin(), instrs.end()), instrs.end());
  return instrs;
}

void OpenCover::refuse(const Instr* producer, const Instr* consumer, const Decision& decision) {
  refusals.push_back({producer->name(), consumer->name(), decision.code(), decision.reason()});
}

std::vector<Group*> OpenCover::kernels() {
  std::vector<Group*> kept;
  for (const auto& group : groups) {
    if (group->members.empty()) continue;  // moved into another group
    if (is_view(*group)) {
      group_of.erase(group->members[0]);
      continue;
    }
    group->members = in_order(std::move(group->members));
    kept.push_back(group.get());
  }
  return kept;
}

Decision OpenCover::verify() const {
  std::unordered_set<const Instr*> owned;
  for (const auto& group : groups)
    for (const Instr* member : group->members) {
      if (index.count(member) == 0)
        return Decision::no("cover", "{} is not in {}", member->name(), computation()->name());
      if (!group->copies.count(member) && !copies.count(member) && !owned.insert(member).second)
        return Decision::no("cover", "{} is computed by two kernels", member->name());
    }
  for (const auto& [instr, holders] : group_of)
    for (const Group* group : holders)
      if (!has(*group, instr))
        return Decision::no("cover", "a kernel of {} does not have it", instr->name());
  return Decision::yes();
}

std::string OpenCover::text() const {
  std::map<std::vector<size_t>, std::string> lines;  // by the places of their members, last first
  const auto add = [&](const Group& group) {
    if (group.members.empty() || is_view(group)) return;
    std::string line = fmt::format("// kernel of %{}:", computation()->name());
    std::vector<size_t> places;
    for (const Instr* member : in_order(group.members)) {
      const bool copy = group.copies.count(member) > 0;
      line += copy ? fmt::format(" (%{})", member->name()) : fmt::format(" %{}", member->name());
      places.insert(places.begin(), index.at(member));
    }
    lines.emplace(std::move(places), std::move(line));
  };
  if (searched)
    for (const Group* group : searched->groups) add(*group);
  else
    for (const auto& group : groups) add(*group);
  std::string text;
  for (const auto& [places, line] : lines) text += line + '\n';
  return text;
}

Result<bool> open_cover(Covers& covers, const Context& context) {
  covers.open.clear();
  covers.is_open = true;
  bool changed = false;
  for (Covered& covered : covered_computations(*covers.module)) {
    auto cover = std::make_unique<OpenCover>(std::move(covered), *context.target);
    const std::vector<Instr*>& order = cover->computation()->instrs();
    for (size_t i = order.size(); i-- > 0;)
      if (cover->needs_group(order[i])) cover->add_alone(order[i]);
    changed |= !cover->groups.empty();
    covers.open.push_back(std::move(cover));
  }
  return changed;
}

Result<bool> make_kernels(Covers& covers, const Context& context) {
  if (!covers.is_open) return user_error("no cover is open: run open_cover before it");
  bool changed = false;
  for (const auto& cover : covers.open) {
    const GroupCover joined{cover->kernels(), cover->copies};
    if (!joined.groups.empty()) {
      std::optional<GroupCover> searched;
      if (cover->searched)
        searched.emplace(GroupCover{cover->searched->groups, cover->searched->copies});
      std::vector<const GroupCover*> candidates;
      if (searched) candidates.push_back(&*searched);
      candidates.push_back(&joined);
      rebuild_first(cover->covered, candidates, context.refusals ? &cover->refusals : nullptr);
      changed = true;
    }
    hand_over(&cover->refusals, context.refusals);
  }
  covers.open.clear();
  covers.is_open = false;
  return changed;
}

}  // namespace heddle::fuse
