#include "plan/lifetimes.h"

#include <algorithm>

namespace heddle::plan {
namespace {

using program::BufferKind;

class LifetimeFinder {
 public:
  LifetimeFinder(const Flow& flow, const std::vector<BufferKind>& kinds,
                 const std::vector<NodeId>& order)
      : flow_(flow), kinds_(kinds), order_(order) {
    const size_t count = flow.storages.size();
    result_.first.assign(count, -1);
    result_.last.assign(count, -1);
    for (size_t i = 0; i < count; ++i) result_.home.push_back(StorageId(i));
  }

  Lifetimes find(bool in_place) {
    for (size_t step = 0; step < order_.size(); ++step) {
      const Node& node = flow_.node(order_[step]);
      for (const Leaf& leaf : node.operands) touch(leaf.storage, static_cast<int64_t>(step));
      for (const Leaf& leaf : node.results) touch(leaf.storage, static_cast<int64_t>(step));
      for (StorageId workspace : node.workspaces) touch(workspace, static_cast<int64_t>(step));
    }
    result_.own_first = result_.first;
    result_.own_last = result_.last;
    if (in_place)
      for (size_t step = 0; step < order_.size(); ++step)
        share(flow_.node(order_[step]), static_cast<int64_t>(step));
    for (size_t i = 0; i < result_.home.size(); ++i) result_.home[i] = home(StorageId(i));
    return std::move(result_);
  }

 private:
  void touch(StorageId id, int64_t step) {
    int64_t& first = result_.first[id.index()];
    if (first < 0) first = step;
    result_.last[id.index()] = step;
  }

  StorageId home(StorageId id) const {
    while (result_.home[id.index()] != id) id = result_.home[id.index()];
    return id;
  }

  // Results of a node that may overwrite an operand which dies there.
  void share(const Node& node, int64_t step) {
    if (node.use == nullptr) return;
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
      // The operand's memory serves both, unless the result's is not the arena's.
      const bool into_result = kinds_[to.index()] != BufferKind::temporary;
      const StorageId kept = into_result ? to : from, moved = into_result ? from : to;
      result_.home[moved.index()] = kept;
      const int64_t first = std::min(result_.first[from.index()], result_.first[to.index()]);
      result_.last[kept.index()] = std::max(result_.last[from.index()], result_.last[to.index()]);
      result_.first[kept.index()] = first;
      result_.first[moved.index()] = result_.last[moved.index()] = -1;
    }
  }

  bool can_share(const Node& node, int64_t step, size_t operand, StorageId from,
                 StorageId to) const {
    const Storage &source = flow_.storage(from), &target = flow_.storage(to);
    if (kinds_[from.index()] != BufferKind::temporary || home(to) != to) return false;
    // Once results lie side by side for good: nothing else moves in.
    if (kinds_[to.index()] == BufferKind::once) return false;
    if (source.bytes != target.bytes || source.bytes == 0) return false;
    if (program::stored_bytes(node.operands[operand].shape) != source.bytes) return false;
    // An output that is an input's memory is written when that input's readers have run, not
    // before.
    if (target.overwrites_input) return false;
    if (result_.last[from.index()] != step) return false;
    for (size_t o = 0; o < node.operands.size(); ++o)
      if (o != operand && home(node.operands[o].storage) == from) return false;
    return true;
  }

  const Flow& flow_;
  const std::vector<BufferKind>& kinds_;
  const std::vector<NodeId>& order_;
  Lifetimes result_;
};

}  // namespace

Lifetimes find_lifetimes(const Flow& flow, const std::vector<BufferKind>& kinds,
                         const std::vector<NodeId>& order, bool in_place) {
  return LifetimeFinder(flow, kinds, order).find(in_place);
}

}  // namespace heddle::plan
