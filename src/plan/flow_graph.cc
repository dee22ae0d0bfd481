// Adds nodes and storages to a flow; queries on its regions.
#include <algorithm>

#include "plan/flow.h"

namespace heddle::plan {

int Node::array_of(size_t result) const {
  if (kind == NodeKind::update) return 0;
  if (kind != NodeKind::work || use == nullptr || result >= use->in_part.size()) return -1;
  return use->in_part[result] ? use->in_place.at(result) : -1;
}

StorageId Flow::add_storage(Storage storage) {
  storages.push_back(std::move(storage));
  return StorageId(storages.size() - 1);
}

bool Flow::within(RegionId inner, RegionId outer) const {
  for (; inner.valid(); inner = region(inner).parent)
    if (inner == outer) return true;
  return false;
}

NodeId Flow::lift(NodeId from, RegionId to) const {
  for (;;) {
    if (node(from).region == to) return from;
    from = region(node(from).region).owner;
    if (!from.valid()) return {};
  }
}

NodeId Flow::add_node(Node node) {
  const NodeId id(nodes.size());
  auto read = [&](const Leaf& leaf) {
    const NodeId producer = storage(leaf.storage).producer;
    if (producer.valid()) node.after.push_back(producer);
  };
  for (const Leaf& leaf : node.operands) read(leaf);
  // The reads of its regions: regions inside have higher numbers, and their nodes lower ones.
  for (RegionId own : node.regions) region(own).owner = id;
  if (!node.regions.empty()) {
    for (size_t r = node.regions[0].index(); r < regions.size(); ++r)
      for (const Leaf& leaf : regions[r].results) read(leaf);
    for (size_t n = region(node.regions[0]).first_node; n < nodes.size(); ++n) {
      if (nodes[n].region.index() < node.regions[0].index()) continue;  // moved out
      for (const Leaf& leaf : nodes[n].operands) read(leaf);
    }
  }
  std::erase_if(node.after,
                [&](NodeId before) { return this->node(before).region != node.region; });
  std::sort(node.after.begin(), node.after.end());
  node.after.erase(std::unique(node.after.begin(), node.after.end()), node.after.end());
  for (const Leaf& leaf : node.results) storage(leaf.storage).producer = id;
  for (StorageId workspace : node.workspaces) storage(workspace).producer = id;
  nodes.push_back(std::move(node));
  return id;
}

Leaf Flow::add_copy(const Leaf& from, const std::string& name, RegionId region,
                    program::Space space) {
  Node node;
  node.kind = NodeKind::copy;
  node.region = region;
  const StorageId to = add_storage({name, StorageKind::work, program::stored_bytes(from.shape)});
  storage(to).region = region;
  storage(to).space = space;
  node.operands = {from};
  node.results = {{to, from.shape}};
  add_node(std::move(node));
  return {to, from.shape};
}

}  // namespace heddle::plan
