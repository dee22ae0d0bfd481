// The cover by XLA's published rules, to compare numbers of kernels. The rules do not know what a
// kernel costs; place() decides last, as everywhere.
//
//   producers   elementwise operators and index operators go into all their readers, a copy each;
//               expensive ones only where that computes nothing twice. A reduction ends a kernel:
//               it goes into no reader.
//   consumers   elementwise and index operators, and reductions (at most five per kernel).
//   Products,
//               convolutions and all others are library calls: nothing joins them.
//   siblings    kernels over the same space that read a common value become one of several outputs,
//               and so does a producer with a reader over the same space.
#include <algorithm>

#include "fuse/group_merger.h"
#include "schedule/place.h"

namespace heddle::fuse {

namespace {

constexpr size_t kMostReductions = 5, kMostMembers = 96, kMostPorts = 64;

// Whether it must not be computed twice.
bool is_expensive(const Instr* instr) {
  return is_costly(instr->opcode()) && instr->shape().type() != tensor::Type::s32;
}

bool is_index(const Instr* instr) {
  switch (instr->opcode()) {
    using enum Opcode;
    case bitcast:
    case broadcast:
    case concatenate:
    case copy:
    case dynamic_slice:
    case gather:
    case iota:
    case pad:
    case reshape:
    case reverse:
    case slice:
    case transpose:
      return true;
    default:
      return false;
  }
}

bool is_loop(const Instr* instr) {
  return is_index(instr) || has_trait(instr->opcode(), hlo::elementwise);
}

class Rules : public GroupMerger {
 public:
  using GroupMerger::GroupMerger;

  bool join_producers() {
    cover_.clear();
    const std::vector<Instr*>& order = cover_.computation()->instrs();
    for (size_t i = order.size(); i-- > 0;)
      if (cover_.needs_group(order[i]) && !joined_readers(order[i])) cover_.add_alone(order[i]);
    return changed_;
  }

  // Kernels of several outputs.
  bool join_siblings() {
    for (Instr* instr : cover_.computation()->instrs()) {
      if (instr->shape().is_scalar() || !instr->shape().is_array()) continue;
      bool others = false;
      std::vector<Group*> readers = cover_.readers(instr, &others);
      if (readers.size() > kMostPorts) continue;
      // The producer, together with its readers.
      const auto maker = cover_.group_of.find(instr);
      if (maker != cover_.group_of.end() && maker->second.size() == 1 &&
          std::find(readers.begin(), readers.end(), maker->second[0]) == readers.end())
        readers.insert(readers.begin(), maker->second[0]);
      for (size_t a = 0; a < readers.size(); ++a)
        for (size_t b = a + 1; b < readers.size();)
          if (unite(readers[a], readers[b]))
            readers.erase(readers.begin() + static_cast<long>(b));
          else
            ++b;
    }
    return changed_;
  }

 private:
  const Instr* root() const { return cover_.computation()->root(); }

  bool joined_readers(Instr* instr) {
    bool others = false;
    const std::vector<Group*> readers = cover_.readers(instr, &others);
    if (others || readers.empty()) return false;
    Decision decision = Decision::yes();
    if (readers.size() > 1 && is_expensive(instr))
      decision =
          Decision::no("xla-expensive", "it would be computed by {} kernels", readers.size());
    for (Group* group : readers)
      if (decision) decision = may_join(instr, group, readers.size() > 1);
    if (decision)
      join_all(instr, readers);
    else
      refuse(instr, readers[0]->members.back(), decision);
    return static_cast<bool>(decision);
  }

  // `copy`: other groups get one too, so that this group's is not an output.
  Decision may_join(Instr* instr, Group* group, bool copy) {
    // Packed weights are read in place.
    if (group->has_dot && !is_unpack(instr))
      return Decision::no("xla-library", "{} is a library call", group->members.back()->name());
    if (!group->has_dot && !is_loop(instr))
      return Decision::no("xla-producer", "{} ends a kernel", hlo::opcode_text(instr->opcode()));
    if (group->once != (cover_.once.count(instr) > 0))
      return Decision::no("once", "one side depends only on constants and is computed once");
    if (copy && has_control_edges(instr))
      return Decision::no("control", "{} has control edges, and is computed once", instr->name());
    if (!copy && cover_.order->makes_cycle(instr, group))
      return Decision::no("cycle", "a value would go out of the kernel and come back");
    for (const Instr* user : instr->users())
      if (is_expensive(instr) && user->is(Opcode::broadcast) && !instr->shape().is_scalar())
        return Decision::no("xla-expensive", "{} uses its elements several times", user->name());
    std::vector<Instr*> members{instr};
    members.insert(members.end(), group->members.begin(), group->members.end());
    std::unordered_set<const Instr*> copies = group->copies;
    if (copy) copies.insert(instr);
    return place_ok(std::move(members), copies, {group});
  }

  void join_all(Instr* instr, const std::vector<Group*>& readers) {
    const bool copy = readers.size() > 1;
    for (Group* group : readers) {
      group->members.insert(group->members.begin(), instr);
      if (copy) group->copies.insert(instr);
      copy ? cover_.order->has_copied(instr, group) : cover_.order->has_joined(instr, group);
    }
    if (copy) cover_.copies.insert(instr);
    cover_.group_of[instr] = readers;
    changed_ = true;
  }

  // Whether another group has a copy of `user` and none of `member`.
  bool is_read_by_copy(const Instr* member, const Instr* user,
                       const std::vector<const Group*>& own) const {
    const auto found = cover_.group_of.find(user);
    if (found == cover_.group_of.end()) return false;
    return std::any_of(found->second.begin(), found->second.end(), [&](const Group* group) {
      return std::find(own.begin(), own.end(), group) == own.end() && !has(*group, member);
    });
  }

  Decision place_ok(std::vector<Instr*> members, const std::unordered_set<const Instr*>& copies,
                    const std::vector<const Group*>& own) const {
    if (members.size() > kMostMembers)
      return Decision::no("too-large", "the group has {} members", members.size());
    members = cover_.in_order(std::move(members));
    const std::unordered_set<const Instr*> inside(members.begin(), members.end());
    size_t reductions = 0, ports = 0;
    std::unordered_set<const Instr*> read;
    for (const Instr* member : members) {
      reductions += member->is(Opcode::reduce) || member->is(Opcode::reduce_window);
      for (const Instr* operand : member->operands())
        if (!inside.count(operand)) read.insert(operand);
    }
    if (reductions > kMostReductions)
      return Decision::no("xla-reductions", "{} reductions in a kernel", reductions);
    auto leaves = [&](const Instr* member) {
      if (copies.count(member)) return false;
      if (member == root() || member == members.back()) return true;
      return std::any_of(member->users().begin(), member->users().end(), [&](const Instr* user) {
        return !inside.count(user) || is_read_by_copy(member, user, own);
      });
    };
    for (const Instr* member : members) ports += leaves(member);
    if (ports + read.size() > kMostPorts)
      return Decision::no("xla-ports", "{} inputs and outputs", ports + read.size());
    return schedule::place(members_of(members, leaves), target_).decision;
  }

  // --- Kernels of several outputs. ---

  // The space that a kernel loops over; 0: nothing joins it.
  int64_t space_of(const Group& group) const {
    if (group.has_dot || group.once || group.members.empty()) return 0;
    const Instr* last = group.members.back();
    if (last->is(Opcode::reduce)) return last->operand(0)->shape().elems();
    return is_loop(last) && last->shape().is_array() ? last->shape().elems() : 0;
  }

  bool unite(Group* a, Group* b) {
    const int64_t space = space_of(*a);
    if (space == 0 || space != space_of(*b)) return false;
    if (cover_.order->makes_cycle({a, b})) return false;
    if (reads_reduced(*a, *b) || reads_reduced(*b, *a)) return false;
    if (!place_ok(members_in({a, b}), copies_of({a, b}), {a, b})) return false;
    join(b, a);
    return true;
  }

  // A reduction's result is complete at the end of its kernel: nothing inside can read it.
  static bool reads_reduced(const Group& maker, const Group& reader) {
    for (const Instr* member : reader.members)
      for (const Instr* operand : member->operands())
        if ((operand->is(Opcode::reduce) || operand->is(Opcode::reduce_window)) &&
            has(maker, operand))
          return true;
    return false;
  }
};

}  // namespace

Result<bool> xla_producers(OpenCover& cover, const Context& context) {
  return Rules(&cover, *context.target).join_producers();
}

Result<bool> xla_siblings(OpenCover& cover, const Context& context) {
  HEDDLE_RETURN_IF_ERROR(check_merges(cover));
  return Rules(&cover, *context.target).join_siblings();
}

}  // namespace heddle::fuse
