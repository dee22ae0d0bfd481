#include "plan/pack.h"

#include <algorithm>
#include <map>
#include <set>

#include "plan/convex.h"
#include "plan/partition.h"

namespace heddle::plan {
namespace {

class Packer {
 public:
  explicit Packer(Flow& flow) : flow_(flow), gone_(flow.nodes.size()) {}

  void run() {
    for (size_t r = 0; r < flow_.regions.size(); ++r)
      for (const std::vector<NodeId>& members : groups(RegionId(r)))
        if (members.size() > 1 && one_type_each(members)) pack(members);
    compact();
  }

 private:
  // Groups of nodes that may become one call, each in an order that its edges allow.
  std::vector<std::vector<NodeId>> groups(RegionId region) const {
    std::vector<NodeId> nodes;
    std::vector<int> labels;
    std::vector<size_t> place(flow_.nodes.size());
    for (size_t n = 0; n < flow_.nodes.size(); ++n) {
      const Node& node = flow_.nodes[n];
      if (node.region != region) continue;
      place[n] = nodes.size();
      nodes.push_back(NodeId(n));
      const bool fits = node.use == nullptr && is_shape_arithmetic(node) && has_flat_result(node);
      labels.push_back(fits ? node.once : -1);
    }
    std::vector<std::vector<size_t>> before;
    for (NodeId id : nodes) {
      before.emplace_back();
      for (NodeId other : flow_.node(id).after) before.back().push_back(place[other.index()]);
    }
    const std::vector<size_t> regions = convex_regions(before, labels);
    std::map<size_t, std::vector<NodeId>> by_region;
    for (size_t n = 0; n < nodes.size(); ++n)
      if (labels[n] >= 0) by_region[regions[n]].push_back(nodes[n]);
    std::vector<std::vector<NodeId>> result;
    for (auto& [number, members] : by_region) result.push_back(in_order(members));
    return result;
  }

  static bool has_flat_result(const Node& node) {
    const tensor::Shape& shape = node.instr->shape();
    if (!shape.is_tuple()) return shape.is_array();
    return std::all_of(shape.elements().begin(), shape.elements().end(),
                       [](const tensor::Shape& element) { return element.is_array(); });
  }

  std::vector<NodeId> in_order(const std::vector<NodeId>& members) const {
    std::vector<NodeId> order;
    std::set<NodeId> left(members.begin(), members.end());
    while (!left.empty()) {
      const auto next = std::find_if(left.begin(), left.end(), [&](NodeId id) {
        const std::vector<NodeId>& after = flow_.node(id).after;
        return std::none_of(after.begin(), after.end(),
                            [&](NodeId other) { return left.contains(other); });
      });
      HEDDLE_CHECK(next != left.end(), "a group has a cycle");
      order.push_back(*next);
      left.erase(next);
    }
    return order;
  }

  // Whether no value is viewed as another type.
  bool one_type_each(const std::vector<NodeId>& members) const {
    std::map<StorageId, tensor::Type> types;
    for (NodeId id : members)
      for (const auto* leaves : {&flow_.node(id).operands, &flow_.node(id).results})
        for (const Leaf& leaf : *leaves)
          if (types.try_emplace(leaf.storage, leaf.shape.type()).first->second != leaf.shape.type())
            return false;
    return true;
  }

  // The packed node replaces the last member.
  void pack(const std::vector<NodeId>& members) {
    const NodeId id = members.back();
    Node made = flow_.node(id);
    made.operands.clear();
    made.results.clear();
    made.after.clear();
    std::set<StorageId> inside, read;
    for (NodeId member : members) {
      const Node& node = flow_.node(member);
      for (const Leaf& leaf : node.operands)
        if (!inside.contains(leaf.storage) && read.insert(leaf.storage).second)
          made.operands.push_back(leaf);
      for (const Leaf& leaf : node.results) inside.insert(leaf.storage);
      for (NodeId before : node.after)
        if (std::find(members.begin(), members.end(), before) == members.end())
          made.after.push_back(before);
      made.packed.push_back(node);
    }
    const std::set<StorageId> wanted = read_outside(members);
    for (NodeId member : members)
      for (const Leaf& leaf : flow_.node(member).results) {
        flow_.storage(leaf.storage).producer = id;
        if (wanted.contains(leaf.storage)) made.results.push_back(leaf);
      }
    flow_.node(id) = std::move(made);
    for (NodeId member : members)
      if (member != id) gone_[member.index()] = true;
    for (Node& node : flow_.nodes)
      for (NodeId& before : node.after)
        if (std::find(members.begin(), members.end(), before) != members.end()) before = id;
    for (Node& node : flow_.nodes) {
      std::sort(node.after.begin(), node.after.end());
      node.after.erase(std::unique(node.after.begin(), node.after.end()), node.after.end());
    }
  }

  std::set<StorageId> read_outside(const std::vector<NodeId>& members) const {
    std::set<StorageId> wanted;
    for (size_t n = 0; n < flow_.nodes.size(); ++n)
      if (!gone_[n] && std::find(members.begin(), members.end(), NodeId(n)) == members.end())
        for (const Leaf& leaf : flow_.nodes[n].operands) wanted.insert(leaf.storage);
    for (const Region& region : flow_.regions)
      for (const Leaf& leaf : region.results) wanted.insert(leaf.storage);
    return wanted;
  }

  void compact() {
    std::vector<NodeId> place(flow_.nodes.size());
    std::vector<Node> kept;
    for (size_t n = 0; n < flow_.nodes.size(); ++n) {
      if (gone_[n]) continue;
      place[n] = NodeId(kept.size());
      kept.push_back(std::move(flow_.nodes[n]));
    }
    auto renumber = [&](NodeId& id) {
      if (id.valid()) id = place[id.index()];
    };
    for (Node& node : kept)
      for (NodeId& before : node.after) renumber(before);
    for (Storage& storage : flow_.storages) renumber(storage.producer);
    for (Region& region : flow_.regions) {
      renumber(region.owner);
      size_t first = 0;
      for (size_t n = 0; n < region.first_node; ++n) first += !gone_[n];
      region.first_node = first;
    }
    flow_.nodes = std::move(kept);
  }

  Flow& flow_;
  std::vector<bool> gone_;  // by node: packed into another one
};

}  // namespace

void pack_shape_arithmetic(Flow& flow) { Packer(flow).run(); }

}  // namespace heddle::plan
