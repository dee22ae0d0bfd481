#include "fuse/explore.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>

#include "schedule/operator_cycles.h"
#include "schedule/parts.h"
#include "schedule/place.h"

namespace heddle::fuse {

namespace {

// The computation as a graph to search. A vertex is an instruction that may move, or a group that
// stays, or an instruction without a kernel. Views (what is_duplicable() says) whose readers are
// all kernels that hold a copy are no vertices: they are part of whoever reads them.
class Space {
 public:
  Space(const Basic& basic, const std::function<bool(const Group&)>& stays) : basic_(basic) {
    for (Group* group : basic.groups) (stays(*group) ? kept : free).push_back(group);
    for (Instr* instr : basic.covered->computation->instrs()) index_.emplace(instr, index_.size());
    for (const Group* group : free)
      for (Instr* member : group->members) movable_.insert(member);
    for (Group* group : kept)
      for (Instr* member : group->members)
        if (!group->copies.count(member)) kept_of_[member] = group;
    find_views();
    number();
  }

  std::vector<Group*> kept, free;
  SearchGraph graph;
  std::vector<Instr*> instr_of;  // by vertex; null: a group that stays

  bool is_view(const Instr* instr) const { return views_.count(instr) > 0; }
  size_t index(const Instr* instr) const { return index_.at(instr); }
  int vertex(const Instr* instr) const {
    auto found = vertex_of_.find(instr);
    return found == vertex_of_.end() ? -1 : found->second;
  }

  // The members' instructions with the views that they read, in the computation's order.
  std::vector<Instr*> with_views(const Members& members) const {
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

  // Somebody outside of the members reads it, views aside.
  bool leaves(const Instr* instr, const Members& members) const {
    if (instr == basic_.covered->computation->root()) return true;
    return std::any_of(instr->users().begin(), instr->users().end(), [&](const Instr* user) {
      if (is_view(user)) return leaves(user, members);
      return !std::binary_search(members.begin(), members.end(), vertex(user));
    });
  }

 private:
  // Readers first.
  void find_views() {
    const Computation& computation = *basic_.covered->computation;
    const std::vector<Instr*>& order = computation.instrs();
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
          instr == computation.root() || kept_of_.count(instr) || read_by_kept.count(instr))
        continue;
      const bool inside =
          std::all_of(instr->users().begin(), instr->users().end(), [&](const Instr* user) {
            return views_.count(user) || kept_of_.count(user) || movable_.count(user);
          });
      if (inside) views_.insert(instr);
    }
  }

  // Groups that stay and instructions, producers first, otherwise as they stand.
  void number() {
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
    for (Instr* instr : basic_.covered->computation->instrs()) {
      if (node_of.count(instr) || is_view(instr)) continue;
      node_of[instr] = nodes.size();
      nodes.push_back({{instr}, nullptr, {}, 0});
    }
    std::vector<std::vector<size_t>> producers(nodes.size());
    for (size_t n = 0; n < nodes.size(); ++n) {
      std::unordered_set<size_t> needs;
      std::function<void(const Instr*)> need = [&](const Instr* instr) {
        for (const Instr* operand : instr->operands()) {
          if (is_view(operand)) {
            need(operand);
          } else if (auto found = node_of.find(operand); found != node_of.end()) {
            needs.insert(found->second);
          }
        }
        for (const Instr* before : instr->control_predecessors())
          if (auto found = node_of.find(before); found != node_of.end())
            needs.insert(found->second);
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
        if (!nodes[n].group || !nodes[n].group->copies.count(member))
          vertex_of_[member] = number[n];
      for (size_t reader : nodes[n].readers)
        if (--nodes[reader].waits == 0) ready.push({key(reader), reader});
    }
    HEDDLE_CHECK(instr_of.size() == nodes.size(), "the basic fusion has a cycle");
  }

  const Basic& basic_;
  std::unordered_map<const Instr*, size_t> index_;
  std::unordered_set<const Instr*> movable_, views_;
  std::unordered_map<const Instr*, Group*> kept_of_;
  std::unordered_map<const Instr*, int> vertex_of_;
};

// The delta evaluator: traffic and launches saved, in nanoseconds (FusionStitching, formula 3).
class Delta : public Evaluator {
 public:
  Delta(const Space& space, const target::Target& target) : space_(space), target_(target) {}

  double gain(const Members& members) override {
    double apart = 0;
    for (int member : members) apart += alone(member);
    return apart - kernel_ns(members);
  }

  bool can_build(const Members& members) override {
    const std::vector<Instr*> instrs = space_.with_views(members);
    if (std::any_of(instrs.begin(), instrs.end(),
                    [](const Instr* instr) { return schedule::is_copied_by_parts(*instr); }))
      return false;
    std::unique_ptr<hlo::Module> candidate = extract(instrs, [&](const Instr* instr) {
      return !space_.is_view(instr) && space_.leaves(instr, members);
    });
    const schedule::PlacedFusion placed = schedule::place(*candidate->entry(), target_);
    if (!placed.decision) return false;
    int64_t tasks = 1, elems = 0;
    for (const schedule::ScheduleNode& node : placed.schedule.nodes)
      if (const auto* loop = std::get_if<schedule::Loop>(&node)) tasks *= loop->trips;
    bool reduces = false;
    for (const schedule::Stage& stage : placed.graph.stages) {
      elems = std::max(elems, stage.out_elems() * stage.red_elems());
      reduces |= stage.is_reduction();
    }
    return !reduces || placed.graph.stages.size() == 1 || tasks >= 2 * target_.cores ||
           elems <= 32768;
  }

  double kernel_ns(const Members& members) const {
    double moved = 0, cycles = 0;
    std::unordered_set<const Instr*> read;
    for (int member : members) {
      const Instr* instr = space_.instr_of[static_cast<size_t>(member)];
      cycles += cycles_of(instr);
      add_reads(instr, members, &read, &moved);
      if (space_.leaves(instr, members)) moved += transfer_ns(bytes_of(instr->shape()));
    }
    const double compute = cycles / target_.clock_ghz;
    return target_.launch_ns + target_.serial_command_ns + compute + moved -
           0.95 * std::min(compute, moved);
  }

 private:
  double alone(int vertex) {
    const auto [known, added] = alone_.try_emplace(vertex, 0);
    if (added) known->second = kernel_ns({vertex});
    return known->second;
  }

  static double bytes_of(const tensor::Shape& shape) {
    if (!shape.is_tuple()) return static_cast<double>(shape.bytes());
    double total = 0;
    for (const tensor::Shape& element : shape.elements()) total += bytes_of(element);
    return total;
  }

  // From where an array of this size lies, or to there: the smaller, the nearer.
  double transfer_ns(double bytes) const {
    double rate = target_.memory_bandwidth_bytes_per_ns;
    for (size_t i = target_.caches.size(); i-- > 0;)
      if (bytes * 4 <= static_cast<double>(target_.caches[i].bytes))
        rate = target_.caches[i].bandwidth_bytes_per_ns;
    return bytes / std::max(rate, 1e-3);
  }

  void add_reads(const Instr* instr, const Members& members, std::unordered_set<const Instr*>* read,
                 double* moved) const {
    for (const Instr* operand : instr->operands()) {
      if (space_.is_view(operand)) {
        add_reads(operand, members, read, moved);
        continue;
      }
      const int vertex = space_.vertex(operand);
      if (std::binary_search(members.begin(), members.end(), vertex)) continue;
      if (!read->insert(operand).second) continue;
      double bytes = bytes_of(operand->shape());
      if (space_.is_view(instr)) bytes = std::min(bytes, bytes_of(instr->shape()));
      *moved += transfer_ns(bytes);
    }
  }

  // Vector cycles of all its elements.
  double cycles_of(const Instr* instr) const {
    double elems = static_cast<double>(instr->shape().is_tuple() ? 0 : instr->shape().elems());
    if (instr->is(Opcode::reduce) && !instr->operands().empty())
      elems = static_cast<double>(instr->operand(0)->shape().elems());
    const double cycles = schedule::operator_cycles(instr->opcode(), /*fast=*/false, target_);
    return elems * cycles / target_.lanes(tensor::Type::f32);
  }

  const Space& space_;
  const target::Target& target_;
  std::unordered_map<int, double> alone_;
};

}  // namespace

Explored explore(const Basic& basic, const target::Target& target,
                 const std::function<bool(const Group&)>& stays, const SearchOptions& options) {
  const Space space(basic, stays);
  Delta delta(space, target);
  Patterns patterns(space.graph, &delta, options);
  Explored result;
  result.kept = space.kept;
  // What the basic fusion found is a candidate like others.
  for (const Group* group : space.free) {
    Members members;
    for (const Instr* member : group->members)
      if (const int vertex = space.vertex(member);
          vertex >= 0 && space.graph.vertices[static_cast<size_t>(vertex)].can_fuse)
        members.push_back(vertex);
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
    if (members.size() < 2) continue;
    if (std::optional<PatternId> id = patterns.offer(members))
      result.basic_gain_ns += patterns.pattern(*id).gain;
  }
  const Cover cover = search_covers(space.graph, &patterns, options).at(0);
  result.gain_ns = cover.gain;
  std::vector<Members> parts;
  std::vector<bool> taken(space.graph.vertices.size(), false);
  for (PatternId id : cover.patterns) {
    parts.push_back(patterns.pattern(id).members);
    for (int member : parts.back()) taken[static_cast<size_t>(member)] = true;
  }
  for (int v = 0; v < static_cast<int>(taken.size()); ++v)
    if (!taken[static_cast<size_t>(v)] && space.graph.vertices[static_cast<size_t>(v)].can_fuse)
      parts.push_back({v});
  // A view that an instruction by itself cannot read in place is a kernel of its own, or none.
  std::unordered_set<const Instr*> apart;
  std::function<void(const Instr*)> set_apart = [&](const Instr* reader) {
    for (const Instr* operand : reader->operands())
      if (space.is_view(operand) && apart.insert(operand).second) set_apart(operand);
  };
  for (const Members& members : parts) {
    auto group = std::make_unique<Group>();
    if (members.size() == 1 && !delta.can_build(members)) {
      group->members = {space.instr_of[static_cast<size_t>(members[0])]};
      set_apart(group->members[0]);
    } else {
      group->members = space.with_views(members);
    }
    for (const Instr* member : group->members)
      if (space.is_view(member)) group->copies.insert(member);
    result.groups.push_back(std::move(group));
  }
  for (Instr* instr : basic.covered->computation->instrs()) {
    if (!space.is_view(instr)) continue;
    if (!apart.count(instr)) {
      result.copies.insert(instr);
    } else if (!instr->is(Opcode::reshape) && !instr->is(Opcode::bitcast)) {
      result.groups.push_back(std::make_unique<Group>());
      result.groups.back()->members = {instr};
    }
  }
  return result;
}

}  // namespace heddle::fuse
