#include "plan/partition.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>

#include "hlo/library_call.h"
#include "plan/convex.h"
#include "plan/cut.h"

namespace heddle::plan {
namespace {

using hlo::Instr;
using hlo::Opcode;
using program::Space;
using Unit = CutProblem::Unit;

// Values up to this size may be computed on the host.
constexpr int64_t kSmallBytes = 64;
// Assumed trip count of a loop; deeper nests count no more than kMostLoops loops.
constexpr int64_t kTrips = 16;
constexpr int kMostLoops = 3;

bool is_small(const tensor::Shape& shape) {
  const bool plain =
      shape.is_array() && shape.is_static() && (!shape.layout() || shape.layout()->is_row_major());
  return plain && program::stored_bytes(shape) <= kSmallBytes &&
         (tensor::is_integer(shape.type()) || shape.type() == tensor::Type::pred);
}

// Whether it consists of pure arithmetic of small integers, which gives the same bits in any order.
bool is_pure_arithmetic(const Instr& instr) {
  const Opcode opcode = instr.opcode();
  if (opcode == Opcode::tuple || opcode == Opcode::get_tuple_element) return true;
  if (!instr.shape().is_tuple() && !is_small(instr.shape())) return false;
  if (opcode == Opcode::parameter || opcode == Opcode::constant) return true;
  if (hlo::has_effect(instr) || instr.is(Opcode::custom_call) ||
      !hlo::has_trait(opcode, hlo::Trait::pure) || hlo::has_trait(opcode, hlo::Trait::collective))
    return false;
  for (const hlo::Computation* called : instr.called())
    if (!std::all_of(called->instrs().begin(), called->instrs().end(),
                     [](const Instr* inside) { return is_pure_arithmetic(*inside); }))
      return false;
  return true;
}

// The capability query: the sides where a node can run.
Unit where(const Node& node) {
  if (node.kind != NodeKind::work) return Unit::free;
  if (node.use == nullptr) return hlo::library_call(*node.instr) ? Unit::device : Unit::host;
  const bool boxes = std::count(node.use->in_part.begin(), node.use->in_part.end(), true) > 0;
  return !boxes && node.use->dims.empty() && is_shape_arithmetic(node) ? Unit::free : Unit::device;
}

class Partitioner {
 public:
  Partitioner(Flow& flow, const target::Target& target) : flow_(flow), target_(target) {
    HEDDLE_CHECK(!flow.own_memory);
    flow_.own_memory = true;
  }

  void run() {
    problem_.units.push_back(Unit::host);  // unit 0: the caller, predicates, selectors and starts
    for (const Node& node : flow_.nodes) add_units(node);
    find_shapes();
    const size_t count = flow_.nodes.size();
    for (size_t n = 0; n < count; ++n) add_reads(NodeId(n));
    for (size_t r = 0; r < flow_.regions.size(); ++r) add_handed_on(RegionId(r));
    for (const auto& [key, value] : values_) problem_.values.push_back(value.cut);
    sides_ = best_sides(problem_);
    place(count);
    for (auto& [key, value] : values_) copy_over(key, value);
  }

 private:
  // A value as read within a region: a loop's state is a different value in its condition, in its
  // body and after the loop.
  using Key = std::pair<StorageId, RegionId>;
  struct Read {
    int unit;
    NodeId node;      // whose operand it is, or
    RegionId region;  // the region whose result `number` it is
    size_t number;
  };
  struct Value {
    CutProblem::Value cut;
    std::vector<Read> reads;
  };

  // One unit per node; for loops and branches one per result.
  void add_units(const Node& node) {
    unit_of_.push_back(static_cast<int>(problem_.units.size()));
    const size_t count = node.regions.empty() ? 1 : node.results.size();
    for (size_t i = 0; i < count; ++i) problem_.units.push_back(where(node));
    for (size_t i = 0; i < node.results.size(); ++i)
      unit_of_storage_[node.results[i].storage] =
          unit_of_.back() + static_cast<int>(node.regions.empty() ? 0 : i);
  }

  // Shapes at the producer: views may have other shapes.
  void find_shapes() {
    for (const Leaf& leaf : flow_.inputs) shape_of_.emplace(leaf.storage, leaf.shape);
    for (const Node& node : flow_.nodes)
      for (const Leaf& leaf : node.results) shape_of_.emplace(leaf.storage, leaf.shape);
  }

  void add_reads(NodeId id) {
    const Node& node = flow_.node(id);
    for (size_t i = 0; i < node.operands.size(); ++i) {
      int unit = unit_of_[id.index()];
      if (node.kind == NodeKind::loop) unit += static_cast<int>(i);
      const bool decides =
          node.kind == NodeKind::branch || (node.kind == NodeKind::update && i >= 2);
      read(node.operands[i], node.region, {decides ? 0 : unit, id, {}, i});
    }
  }

  void add_handed_on(RegionId id) {
    const Region& region = flow_.region(id);
    for (size_t i = 0; i < region.results.size(); ++i) {
      int unit = 0;
      if (region.owner.valid()) {
        const Node& owner = flow_.node(region.owner);
        const bool condition = owner.kind == NodeKind::loop && owner.regions[0] == id;
        if (!condition) unit = unit_of_[region.owner.index()] + static_cast<int>(i);
      }
      read(region.results[i], id, {unit, {}, id, i});
    }
  }

  void read(const Leaf& leaf, RegionId region, Read read) {
    const Storage& storage = flow_.storage(leaf.storage);
    if (storage.bytes == 0 ||
        (storage.kind != StorageKind::input && storage.kind != StorageKind::work))
      return;
    const Key key{leaf.storage, scope(storage, region)};
    const auto [found, added] = values_.try_emplace(key);
    Value& value = found->second;
    if (added) {
      const auto producer = unit_of_storage_.find(leaf.storage);
      value.cut.producer = producer == unit_of_storage_.end() ? 0 : producer->second;
      value.cut.cost = cost_of(storage, key.second);
    }
    value.cut.readers.push_back(read.unit);
    value.reads.push_back(read);
  }

  // The region in which a value read in `region` would be copied.
  RegionId scope(const Storage& storage, RegionId region) const {
    if (storage.kind == StorageKind::input) return RegionId(0);
    if (storage.state_of.valid()) {
      const Node& loop = flow_.node(flow_.region(storage.state_of).owner);
      for (RegionId own : loop.regions)
        if (flow_.within(region, own)) return own;
    }
    return storage.region;
  }

  CutCost cost_of(const Storage& storage, RegionId scope) const {
    if (storage.producer.valid() && flow_.node(storage.producer).once) return {0, storage.bytes};
    int64_t times = 1;
    int loops = 0;
    for (RegionId r = scope; r.valid() && loops < kMostLoops; r = flow_.region(r).parent)
      if (flow_.region(r).repeats && ++loops <= kMostLoops) times *= kTrips;
    return {times * price_of(storage.bytes), times * storage.bytes};
  }

  // Price of one copy, in whole nanoseconds; bounded, so that sums do not overflow.
  int64_t price_of(int64_t bytes) const {
    constexpr double kMostNs = 1e12;
    if (!target_.has_link()) return 1;
    return std::llround(std::min(kMostNs, std::ceil(target_.link_ns(static_cast<double>(bytes)))));
  }

  Space side(int unit) const { return sides_[static_cast<size_t>(unit)]; }

  void place(size_t count) {
    for (const Leaf& leaf : flow_.inputs) flow_.storage(leaf.storage).space = Space::host;
    for (const auto& [storage, unit] : unit_of_storage_) flow_.storage(storage).space = side(unit);
    for (size_t n = 0; n < count; ++n) {
      Node& node = flow_.nodes[n];
      if (node.kind != NodeKind::work || side(unit_of_[n]) != Space::host) continue;
      node.use = nullptr;
      node.workspaces.clear();
    }
  }

  void copy_over(const Key& key, const Value& value) {
    const Space from = side(value.cut.producer);
    Leaf copy;
    for (const Read& read : value.reads) {
      if (side(read.unit) == from) continue;
      if (!copy.storage.valid()) copy = add_copy(key, from);
      const NodeId copier = flow_.storage(copy.storage).producer;
      if (read.node.valid()) {
        flow_.node(read.node).operands[read.number].storage = copy.storage;
        run_before(copier, flow_.lift(read.node, key.second));
      } else {
        flow_.region(read.region).results[read.number].storage = copy.storage;
        if (read.region != key.second)
          run_before(copier, flow_.lift(flow_.region(read.region).owner, key.second));
      }
    }
  }

  Leaf add_copy(const Key& key, Space from) {
    const bool to_host = from == Space::device;
    const Storage& storage = flow_.storage(key.first);
    const bool once = storage.producer.valid() && flow_.node(storage.producer).once;
    const std::string name = storage.name + (to_host ? ".host" : ".device");
    const Leaf copy = flow_.add_copy({key.first, shape_of_.at(key.first)}, name, key.second,
                                     to_host ? Space::host : Space::device);
    flow_.node(flow_.storage(copy.storage).producer).once = once;
    return copy;
  }

  void run_before(NodeId first, NodeId second) {
    std::vector<NodeId>& after = flow_.node(second).after;
    if (std::find(after.begin(), after.end(), first) == after.end()) after.push_back(first);
  }

  Flow& flow_;
  const target::Target& target_;
  CutProblem problem_;
  std::vector<int> unit_of_;  // by node: its first unit
  std::map<StorageId, int> unit_of_storage_;
  std::map<StorageId, tensor::Shape> shape_of_;
  std::map<Key, Value> values_;
  std::vector<Space> sides_;
};

Label label_of(const Flow& flow, const Node& node) {
  if (!node.regions.empty()) return Label::control;
  if (node.results.empty()) return node.use == nullptr ? Label::host : Label::device;
  const Space to = flow.storage(node.results[0].storage).space;
  if (node.kind == NodeKind::copy) {
    const Storage& from = flow.storage(node.operands[0].storage);
    if (from.kind != StorageKind::constant && from.space != to) return Label::control;
  }
  return to == Space::host ? Label::host : Label::device;
}

}  // namespace

bool is_shape_arithmetic(const Node& node) {
  auto small = [](const Leaf& leaf) { return is_small(leaf.shape); };
  return node.kind == NodeKind::work && is_pure_arithmetic(*node.instr) &&
         std::all_of(node.operands.begin(), node.operands.end(), small) &&
         std::all_of(node.results.begin(), node.results.end(), small);
}

void partition(Flow& flow, const target::Target& target) { Partitioner(flow, target).run(); }

std::vector<Part> parts_of(const Flow& flow, RegionId region) {
  std::vector<NodeId> nodes;
  std::vector<int> labels;
  std::vector<size_t> place(flow.nodes.size());
  for (size_t n = 0; n < flow.nodes.size(); ++n) {
    const Node& node = flow.nodes[n];
    if (node.region != region) continue;
    place[n] = nodes.size();
    nodes.push_back(NodeId(n));
    const Label label = label_of(flow, node);
    labels.push_back(label == Label::control ? -1 : 2 * static_cast<int>(label) + node.once);
  }
  std::vector<std::vector<size_t>> before;
  for (NodeId id : nodes) {
    before.emplace_back();
    for (NodeId other : flow.node(id).after)
      if (flow.node(other).region == region) before.back().push_back(place[other.index()]);
  }
  std::vector<Part> parts;
  const std::vector<size_t> regions = convex_regions(before, labels);
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (parts.size() <= regions[n]) parts.resize(regions[n] + 1);
    parts[regions[n]].label = label_of(flow, flow.node(nodes[n]));
    parts[regions[n]].nodes.push_back(nodes[n]);
  }
  return parts;
}

}  // namespace heddle::plan
