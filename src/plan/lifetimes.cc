#include "plan/lifetimes.h"

#include <algorithm>

#include "plan/sharing.h"

namespace heddle::plan {
namespace {

using program::BufferKind;

class LifetimeFinder {
 public:
  LifetimeFinder(const Flow& flow, const std::vector<BufferKind>& kinds, const Sequence& sequence,
                 const Ordering& ordering)
      : flow_(flow), kinds_(kinds), sequence_(sequence), ordering_(ordering) {
    const size_t count = flow.storages.size();
    handed_on_.assign(count, -1);
    result_.first.assign(count, -1);
    result_.last.assign(count, -1);
    result_.commands.resize(count);
    for (size_t i = 0; i < count; ++i) result_.home.push_back(StorageId(i));
  }

  Lifetimes find(bool in_place) {
    const std::vector<NodeId>& nodes = sequence_.nodes;
    for (size_t step = 0; step < nodes.size(); ++step)
      touch_all(nodes[step], static_cast<int64_t>(step));
    result_.own_first = result_.first;
    result_.own_last = result_.last;
    share_where_must();
    if (in_place)
      for (size_t step = 0; step < nodes.size(); ++step)
        share(flow_.node(nodes[step]), static_cast<int64_t>(step));
    for (size_t i = 0; i < result_.home.size(); ++i) result_.home[i] = home(StorageId(i));
    return std::move(result_);
  }

 private:
  void touch_all(NodeId id, int64_t step) {
    const Node& node = flow_.node(id);
    for (const Leaf& leaf : node.operands) touch(leaf.storage, step, node.region);
    for (StorageId workspace : node.workspaces) touch(workspace, step, node.region);
    const int64_t end = sequence_.end[id.index()];
    for (size_t i = 0; i < node.results.size(); ++i) {
      touch(node.results[i].storage, step, node.region);
      touch(node.results[i].storage, end, node.region);
    }
    for (size_t r = 0; r < node.regions.size(); ++r) {
      const int64_t region_end = std::max(step, sequence_.region_end[node.regions[r].index()]);
      const std::vector<Leaf>& results = flow_.region(node.regions[r]).results;
      for (size_t i = 0; i < results.size(); ++i) {
        touch(results[i].storage, region_end, node.regions[r]);
        int64_t& handed_on = handed_on_[results[i].storage.index()];
        handed_on = std::max(handed_on, region_end);
        if (node.kind != NodeKind::loop || r == 0 || !node.swapped[i]) continue;
        widen(results[i].storage, step);
        widen(results[i].storage, end);
      }
    }
  }

  // A use at a step of `region`. If the value is made outside of a loop around the use, every trip
  // needs it.
  void touch(StorageId id, int64_t step, RegionId region) {
    widen(id, step);
    for (const RegionId made = flow_.storage(id).region; region != made && region.valid();
         region = flow_.region(region).parent) {
      const NodeId owner = flow_.region(region).owner;
      if (!flow_.region(region).repeats) continue;
      widen(id, sequence_.step[owner.index()]);
      widen(id, sequence_.end[owner.index()]);
    }
  }

  void widen(StorageId id, int64_t step) {
    int64_t &first = result_.first[id.index()], &last = result_.last[id.index()];
    if (first < 0 || step < first) first = step;
    last = std::max(last, step);
    std::vector<int64_t>& commands = result_.commands[id.index()];
    const int64_t command = sequence_.command[static_cast<size_t>(step)];
    if (commands.empty() || commands.back() != command) commands.push_back(command);
  }

  void move_commands(StorageId from, StorageId to) {
    std::vector<int64_t>&moved = result_.commands[from.index()],
    &all = result_.commands[to.index()];
    all.insert(all.end(), moved.begin(), moved.end());
    moved.clear();
  }

  // Storages that must share memory have one lifetime; if one is an output, it is the home of all.
  void share_where_must() {
    std::vector<StorageId> home(flow_.storages.size());
    std::vector<bool> shared(flow_.storages.size());
    for (size_t i = 0; i < home.size(); ++i) {
      home[i] = home_of(flow_, StorageId(i));
      if (home[i] != StorageId(i)) shared[home[i].index()] = true;
    }
    std::vector<StorageId> output(home.size());
    for (size_t i = 0; i < home.size(); ++i)
      if (flow_.storages[i].output >= 0) output[home[i].index()] = StorageId(i);
    for (size_t i = 0; i < home.size(); ++i) {
      if (!shared[home[i].index()]) continue;
      const StorageId named = output[home[i].index()];
      const StorageId to = named.valid() ? named : home[i];
      if (to != StorageId(i)) move_home(StorageId(i), to);
    }
  }

  void move_home(StorageId id, StorageId to) {
    result_.home[id.index()] = to;
    const int64_t own_first = result_.first[id.index()], own_last = result_.last[id.index()];
    result_.first[id.index()] = result_.last[id.index()] = -1;
    handed_on_[to.index()] = std::max(handed_on_[to.index()], handed_on_[id.index()]);
    if (own_first < 0) return;
    widen(to, own_first);
    widen(to, own_last);
    move_commands(id, to);
  }

  StorageId home(StorageId id) const {
    while (result_.home[id.index()] != id) id = result_.home[id.index()];
    return id;
  }

  // Lets results of a node overwrite operands that die there.
  void share(const Node& node, int64_t step) {
    if (node.kind != NodeKind::work || node.use == nullptr) return;
    std::vector<StorageId> taken;
    for (size_t r = 0; r < node.results.size() && r < node.use->in_place.size(); ++r) {
      const int operand = node.use->in_place[r];
      if (operand < 0) continue;
      HEDDLE_CHECK(static_cast<size_t>(operand) < node.operands.size(),
                   "{}: in place of operand {}", node.instr->name(), operand);
      const StorageId from = home(node.operands[static_cast<size_t>(operand)].storage);
      const StorageId to = node.results[r].storage;
      if (!can_share(node, step, static_cast<size_t>(operand), from, to) ||
          std::find(taken.begin(), taken.end(), from) != taken.end())
        continue;
      taken.push_back(from);
      // Both use the operand's memory, unless the result's is not in the arena.
      const bool into_result = kinds_[to.index()] != BufferKind::temporary;
      const StorageId kept = into_result ? to : from, moved = into_result ? from : to;
      result_.home[moved.index()] = kept;
      handed_on_[kept.index()] = std::max(handed_on_[from.index()], handed_on_[to.index()]);
      const int64_t first = std::min(result_.first[from.index()], result_.first[to.index()]);
      result_.last[kept.index()] = std::max(result_.last[from.index()], result_.last[to.index()]);
      result_.first[kept.index()] = first;
      result_.first[moved.index()] = result_.last[moved.index()] = -1;
      move_commands(moved, kept);
    }
  }

  bool can_share(const Node& node, int64_t step, size_t operand, StorageId from,
                 StorageId to) const {
    const Storage &source = flow_.storage(from), &target = flow_.storage(to);
    if (kinds_[from.index()] != BufferKind::temporary || home(to) != to) return false;
    if (source.alone || target.alone) return false;
    // A value from outside a loop is needed in the next trip.
    for (RegionId region = node.region; region != source.region && region.valid();
         region = flow_.region(region).parent)
      if (flow_.region(region).repeats) return false;
    // Results of the once section are stored side by side permanently: their memory is not shared.
    if (kinds_[to.index()] == BufferKind::once) return false;
    if (source.bytes != target.bytes || source.bytes == 0) return false;
    if (program::stored_bytes(node.operands[operand].shape) != source.bytes) return false;
    // An output in an input's memory is written only after that input's readers have run.
    if (target.overwrites_input) return false;
    if (result_.last[from.index()] != step || handed_on_[from.index()] >= step) return false;
    for (size_t o = 0; o < node.operands.size(); ++o)
      if (o != operand && home(node.operands[o].storage) == from) return false;
    const int64_t here = sequence_.command[static_cast<size_t>(step)];
    const std::vector<int64_t>& touching = result_.commands[from.index()];
    return std::all_of(touching.begin(), touching.end(), [&](int64_t command) {
      return command == here ||
             ordering_.runs_before(static_cast<size_t>(command), static_cast<size_t>(here));
    });
  }

  const Flow& flow_;
  const std::vector<BufferKind>& kinds_;
  const Sequence& sequence_;
  const Ordering& ordering_;
  Lifetimes result_;
  std::vector<int64_t> handed_on_;  // by storage: the last step after which a region returns it
};

}  // namespace

Lifetimes find_lifetimes(const Flow& flow, const std::vector<BufferKind>& kinds,
                         const Sequence& sequence, const Ordering& ordering, bool in_place) {
  return LifetimeFinder(flow, kinds, sequence, ordering).find(in_place);
}

}  // namespace heddle::plan
