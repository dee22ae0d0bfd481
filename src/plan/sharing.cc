#include "plan/sharing.h"

#include <algorithm>

namespace heddle::plan {
namespace {

class Sharer {
 public:
  explicit Sharer(Flow& flow) : flow_(flow) {
    members_.resize(flow_.storages.size());
    for (size_t i = 0; i < members_.size(); ++i) members_[i] = {StorageId(i)};
    for (size_t n = 0; n < flow_.nodes.size(); ++n) add_reader(NodeId(n));
  }

  void run() {
    const size_t count = flow_.nodes.size();
    for (size_t n = 0; n < count; ++n) overwrite_operands(NodeId(n));
    for (size_t n = 0; n < count; ++n) place_results(NodeId(n));
  }

 private:
  // --- Readers. ---

  std::vector<NodeId>& readers(StorageId id) {
    if (readers_.size() < flow_.storages.size()) readers_.resize(flow_.storages.size());
    return readers_[id.index()];
  }

  void add_reader(NodeId id) {
    for (const Leaf& leaf : flow_.node(id).operands) {
      std::vector<NodeId>& list = readers(leaf.storage);
      if (list.empty() || list.back() != id) list.push_back(id);
    }
  }

  // Regions that have the value as a result.
  std::vector<RegionId> handing_on(StorageId id) const {
    std::vector<RegionId> result;
    for (size_t r = 0; r < flow_.regions.size(); ++r)
      for (const Leaf& leaf : flow_.regions[r].results)
        if (leaf.storage == id) {
          result.push_back(RegionId(r));
          break;
        }
    return result;
  }

  static int64_t count_reads(const Node& node, StorageId id) {
    return std::count_if(node.operands.begin(), node.operands.end(),
                         [&](const Leaf& leaf) { return leaf.storage == id; });
  }

  // --- Order inside one region. ---

  // Whether `to` must run after `from`.
  bool leads_to(NodeId from, NodeId to) const {
    if (from == to) return true;
    // Search backwards over predecessors.
    std::vector<bool> seen(flow_.nodes.size());
    std::vector<NodeId> stack{to};
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      for (NodeId before : flow_.node(id).after) {
        if (before == from) return true;
        if (seen[before.index()]) continue;
        seen[before.index()] = true;
        stack.push_back(before);
      }
    }
    return false;
  }

  void run_before(NodeId first, NodeId second) {
    std::vector<NodeId>& after = flow_.node(second).after;
    if (std::find(after.begin(), after.end(), first) == after.end()) after.push_back(first);
  }

  using Edges = std::vector<std::pair<NodeId, NodeId>>;

  // --- Overwriting an operand. ---

  // Whether `id` can be the last to need `value`: all other readers can run before it, in its
  // region and in those around it up to the region where the value is made. `own`: the regions that
  // `id` executes may read it (if `id` is a branch, the caller has checked these).
  bool may_overwrite(NodeId id, StorageId value, bool own, Edges& edges) {
    const Storage& storage = flow_.storage(value);
    if (storage.kind != StorageKind::work || storage.alone || !storage.producer.valid() ||
        flow_.node(storage.producer).once)
      return false;
    RegionId region = flow_.node(id).region;
    const bool is_state = storage.state_of.valid() && flow_.within(region, storage.state_of);
    const RegionId made = is_state ? storage.state_of : storage.region;
    const std::vector<RegionId> handing = handing_on(value);
    for (NodeId at = id;; own = true) {
      for (RegionId r : handing) {
        if (r == region) return false;
        const NodeId owner = flow_.region(r).owner;
        if (owner.valid() && !add_before(owner, at, region, own, edges)) return false;
      }
      for (NodeId reader : readers(value))
        if (!(reader == id && at == id) && !add_before(reader, at, region, own, edges))
          return false;
      for (NodeId overwriter : overwriters(value)) {
        const NodeId other = flow_.lift(overwriter, region);
        if (other.valid() && (other != at || !own)) return false;
      }
      if (region == made) return true;
      if (flow_.region(region).repeats || !flow_.region(region).parent.valid()) return false;
      at = flow_.region(region).owner;
      region = flow_.region(region).parent;
    }
  }

  bool add_before(NodeId reader, NodeId at, RegionId region, bool own, Edges& edges) {
    const NodeId lifted = flow_.lift(reader, region);
    if (!lifted.valid()) return true;  // a reader outside: checked in an outer region
    if (lifted == at) return own;
    if (leads_to(at, lifted)) return false;
    edges.emplace_back(lifted, at);
    return true;
  }

  std::vector<NodeId>& overwriters(StorageId id) {
    if (overwriters_.size() < flow_.storages.size()) overwriters_.resize(flow_.storages.size());
    return overwriters_[id.index()];
  }

  void overwrite(NodeId id, StorageId value, StorageId result, const Edges& edges) {
    for (const auto& [first, second] : edges) run_before(first, second);
    overwriters(value).push_back(id);
    join(result, value);
  }

  std::vector<StorageId>& members(StorageId id) {
    for (size_t i = members_.size(); i < flow_.storages.size(); ++i)
      members_.push_back({StorageId(i)});
    return members_[home_of(flow_, id).index()];
  }

  // From now on everything in `from`'s memory is in `to`'s.
  void join(StorageId from, StorageId to) {
    const std::vector<StorageId> moved = members(from);
    std::vector<StorageId>& all = members(to);
    all.insert(all.end(), moved.begin(), moved.end());
    flow_.storage(home_of(flow_, from)).home = home_of(flow_, to);
  }

  void overwrite_operands(NodeId id) {
    switch (flow_.node(id).kind) {
      case NodeKind::update:
      case NodeKind::work:
        for (size_t r = 0; r < flow_.node(id).results.size(); ++r) overwrite_array(id, r);
        return;
      case NodeKind::loop:
        for (size_t i = 0; i < flow_.node(id).operands.size(); ++i) overwrite_operand(id, i, i);
        return;
      case NodeKind::branch:
        for (size_t i = 0; i < flow_.node(id).results.size(); ++i) overwrite_in_branch(id, i);
        return;
      default:
        return;
    }
  }

  // In-place updates of arrays; inputs in the entry are left to finish_updates().
  void overwrite_array(NodeId id, size_t r) {
    const int array = flow_.node(id).array_of(r);
    if (array < 0) return;
    const auto i = static_cast<size_t>(array);
    const bool input = flow_.storage(flow_.node(id).operands[i].storage).kind == StorageKind::input;
    if (!input || flow_.node(id).region != RegionId(0)) overwrite_operand(id, i, r);
  }

  // Result r takes the memory of operand i, or of a copy of it.
  void overwrite_operand(NodeId id, size_t i, size_t r) {
    const Leaf operand = flow_.node(id).operands[i];
    const StorageId result = flow_.node(id).results[r].storage;
    Edges edges;
    if (fills(operand) && flow_.storage(operand.storage).bytes == flow_.storage(result).bytes &&
        count_reads(flow_.node(id), operand.storage) == 1 &&
        may_overwrite(id, operand.storage, false, edges)) {
      overwrite(id, operand.storage, result, edges);
      return;
    }
    const Leaf copy = add_copy(operand, flow_.storage(result).name + ".start",
                               flow_.node(id).region, flow_.storage(result).space);
    if (count_reads(flow_.node(id), operand.storage) == 1) std::erase(readers(operand.storage), id);
    flow_.node(id).operands[i] = copy;
    readers(copy.storage).push_back(id);
    run_before(flow_.storage(copy.storage).producer, id);
    overwrite(id, copy.storage, result, {});
  }

  bool fills(const Leaf& leaf) const {
    return program::stored_bytes(leaf.shape) == flow_.storage(leaf.storage).bytes;
  }

  Leaf add_copy(const Leaf& from, const std::string& name, RegionId region, program::Space space) {
    const Leaf copy = flow_.add_copy(from, name, region, space);
    add_reader(flow_.storage(copy.storage).producer);
    return copy;
  }

  // A value that one branch returns unchanged may be overwritten by the results of the others.
  void overwrite_in_branch(NodeId id, size_t i) {
    const Node& node = flow_.node(id);
    const StorageId result = node.results[i].storage;
    for (RegionId region : node.regions) {
      const Leaf& leaf = flow_.region(region).results[i];
      if (!flow_.within(node.region, flow_.storage(leaf.storage).region) || !fills(leaf) ||
          flow_.storage(leaf.storage).bytes != flow_.storage(result).bytes ||
          count_reads(node, leaf.storage) != 0 || !is_only_result(node, i, leaf.storage))
        continue;
      Edges edges;
      if (!may_overwrite(id, leaf.storage, true, edges)) continue;
      overwrite(id, leaf.storage, result, edges);
      return;
    }
  }

  // Whether in every region of the branch `value`, or a value in its memory, is at most result
  // number i, and if the region overwrites it, number i is in its memory.
  bool is_only_result(const Node& node, size_t i, StorageId value) {
    const StorageId home = home_of(flow_, value);
    for (RegionId region : node.regions) {
      const std::vector<Leaf>& results = flow_.region(region).results;
      for (size_t j = 0; j < results.size(); ++j)
        if (j != i && home_of(flow_, results[j].storage) == home) return false;
      for (StorageId member : members(value)) {
        const NodeId producer = flow_.storage(member).producer;
        if (producer.valid() && flow_.within(flow_.node(producer).region, region) &&
            home_of(flow_, results[i].storage) != home)
          return false;
      }
    }
    return true;
  }

  // --- Places of the results of regions. ---

  void place_results(NodeId id) {
    const NodeKind kind = flow_.node(id).kind;
    if (kind != NodeKind::loop && kind != NodeKind::branch) return;
    const std::vector<RegionId> regions = flow_.node(id).regions;
    for (size_t r = kind == NodeKind::loop ? 1 : 0; r < regions.size(); ++r) {
      const size_t count = flow_.node(id).results.size();
      for (size_t i = 0; i < count; ++i) save(id, regions[r], i);
      for (size_t i = 0; i < count; ++i) place_result(id, regions[r], i);
    }
  }

  // A result in memory that another result will overwrite is copied first.
  void save(NodeId id, RegionId region, size_t i) {
    const Leaf leaf = flow_.region(region).results[i];
    const StorageId home = home_of(flow_, leaf.storage);
    const Node& node = flow_.node(id);
    for (size_t j = 0; j < node.results.size(); ++j) {
      if (j == i || home_of(flow_, node.results[j].storage) != home) continue;
      flow_.region(region).results[i] = add_copy(leaf, flow_.storage(leaf.storage).name + ".saved",
                                                 region, flow_.storage(leaf.storage).space);
      return;
    }
  }

  void place_result(NodeId id, RegionId region, size_t i) {
    const Leaf leaf = flow_.region(region).results[i];
    const StorageId target = flow_.node(id).results[i].storage;
    if (home_of(flow_, leaf.storage) == home_of(flow_, target)) return;
    if (make_there(leaf, target, region)) return;
    if (flow_.node(id).kind == NodeKind::loop && swap_in(id, i, leaf, target, region)) return;
    const Leaf copy =
        add_copy(leaf, flow_.storage(target).name + ".next", region, flow_.storage(target).space);
    const NodeId writer = flow_.storage(copy.storage).producer;
    for (NodeId touching : touching(target, region))
      if (touching != writer) run_before(touching, writer);
    join(copy.storage, target);
    flow_.region(region).results[i] = copy;
  }

  // Nodes of the region that read or write the storage's memory, or contain nodes that do.
  std::vector<NodeId> touching(StorageId id, RegionId region) {
    std::vector<NodeId> result;
    auto add = [&](NodeId node) {
      if (!node.valid()) return;
      if (const NodeId lifted = flow_.lift(node, region); lifted.valid()) result.push_back(lifted);
    };
    for (StorageId member : std::vector<StorageId>(members(id))) {
      add(flow_.storage(member).producer);
      for (NodeId reader : readers(member)) add(reader);
      for (RegionId r : handing_on(member))
        if (r != region) add(flow_.region(r).owner);
    }
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  }

  // Computes the value directly in the target's memory, if all values in its memory are made inside
  // the region by nodes that can run after the last access to the target.
  bool make_there(const Leaf& leaf, StorageId target, RegionId region) {
    if (!fills(leaf) || flow_.storage(leaf.storage).bytes != flow_.storage(target).bytes ||
        flow_.storage(leaf.storage).alone || flow_.storage(target).alone)
      return false;
    std::vector<NodeId> writers;
    for (StorageId member : members(leaf.storage)) {
      const Storage& storage = flow_.storage(member);
      if (storage.kind != StorageKind::work || !storage.producer.valid()) return false;
      if (!flow_.within(flow_.node(storage.producer).region, region)) return false;
      writers.push_back(flow_.lift(storage.producer, region));
    }
    const bool single = members(leaf.storage).size() == 1;
    Edges edges;
    for (NodeId toucher : touching(target, region)) {
      for (NodeId writer : writers) {
        if (toucher == writer) {
          if (!single || !in_place(leaf.storage, target)) return false;
        } else if (leads_to(writer, toucher)) {
          return false;
        } else {
          edges.emplace_back(toucher, writer);
        }
      }
    }
    for (const auto& [first, second] : edges) run_before(first, second);
    join(leaf.storage, target);
    return true;
  }

  // Whether the kernel that makes `value` reads the target's memory through one operand only, which
  // it may overwrite.
  bool in_place(StorageId value, StorageId target) {
    const Node& node = flow_.node(flow_.storage(value).producer);
    if (node.kind != NodeKind::work || node.use == nullptr) return false;
    const StorageId home = home_of(flow_, target);
    int64_t reads = 0, allowed = 0;
    for (size_t o = 0; o < node.operands.size(); ++o) {
      if (home_of(flow_, node.operands[o].storage) != home) continue;
      ++reads;
      for (size_t r = 0; r < node.results.size() && r < node.use->in_place.size(); ++r)
        allowed += node.results[r].storage == value &&
                   node.use->in_place[r] == static_cast<int>(o) && fills(node.operands[o]);
    }
    return reads == 1 && allowed == 1;
  }

  bool swap_in(NodeId loop, size_t i, const Leaf& leaf, StorageId target, RegionId body) {
    const Storage& next = flow_.storage(leaf.storage);
    if (!fills(leaf) || next.kind != StorageKind::work || next.alone || !next.producer.valid() ||
        next.bytes != flow_.storage(target).bytes || next.bytes == 0 ||
        members(leaf.storage).size() != 1)
      return false;
    const Node& writer = flow_.node(next.producer);
    if (writer.region != body || writer.kind != NodeKind::work) return false;
    // Inside the loop no value but the state itself may use its memory.
    for (StorageId member : members(target)) {
      const NodeId producer = flow_.storage(member).producer;
      if (producer.valid() && flow_.within(flow_.node(producer).region, body)) return false;
    }
    // Two results of the loop cannot both use the buffer.
    const std::vector<Leaf>& results = flow_.region(body).results;
    for (size_t j = 0; j < results.size(); ++j)
      if (j != i && results[j].storage == leaf.storage) return false;
    flow_.storage(leaf.storage).alone = true;
    flow_.node(loop).swapped[i] = true;
    return true;
  }

  Flow& flow_;
  std::vector<std::vector<NodeId>> readers_, overwriters_;  // by storage
  std::vector<std::vector<StorageId>> members_;             // by home: all storages in its memory
};

}  // namespace

void share_memory(Flow& flow) { Sharer(flow).run(); }

void finish_updates(Flow& flow) {
  for (size_t n = 0; n < flow.nodes.size(); ++n) {
    for (size_t r = 0; r < flow.nodes[n].results.size(); ++r) {
      const int array = flow.nodes[n].array_of(r);
      if (array < 0) continue;
      const Leaf operand = flow.nodes[n].operands[static_cast<size_t>(array)];
      const StorageId result = flow.nodes[n].results[r].storage;
      if (flow.storage(result).home.valid() || flow.storage(result).overwrites_input) continue;
      const Leaf copy = flow.add_copy(operand, flow.storage(result).name + ".start",
                                      flow.nodes[n].region, flow.storage(result).space);
      flow.nodes[n].operands[static_cast<size_t>(array)] = copy;
      flow.nodes[n].after.push_back(flow.storage(copy.storage).producer);
      flow.storage(result).home = copy.storage;
    }
  }
}

StorageId home_of(const Flow& flow, StorageId id) {
  while (flow.storage(id).home.valid()) id = flow.storage(id).home;
  return id;
}

}  // namespace heddle::plan
