#include "plan/model_nodes.h"

#include <algorithm>
#include <unordered_set>

namespace heddle::plan {
namespace {

using hlo::NodeList;

class ModelNodes {
 public:
  explicit ModelNodes(const Flow& flow)
      : flow_(flow),
        lists_(flow.nodes.size()),
        constants_(flow.nodes.size()),
        readers_(flow.storages.size()) {
    for (size_t n = 0; n < flow.nodes.size(); ++n)
      for (const Leaf& leaf : flow.nodes[n].operands)
        if (NodeId& reader = readers_[leaf.storage.index()]; !reader.valid()) reader = NodeId(n);
  }

  void collect() {
    for (size_t n = 0; n < lists_.size(); ++n) add_own(flow_.nodes[n], lists_[n], constants_[n]);
    for (const NamedView& view : flow_.views)
      for (StorageId storage : view.storages)
        if (NodeList* list = list_for(storage)) list->add(view.instr->nodes());
    // Work of the once section is attributed to its reader.
    for (size_t n = 0; n < lists_.size(); ++n) {
      if (!flow_.nodes[n].once) continue;
      add_names(constants_[n], lists_[n]);
      hand_on(flow_.nodes[n], lists_[n]);
    }
    add_constants();
    name_others();
  }

  std::vector<std::vector<std::string>> take(size_t most) const {
    std::vector<std::vector<std::string>> all(lists_.size());
    for (const bool once : {true, false}) {
      std::unordered_set<std::string_view> seen;
      for (size_t n = 0; n < lists_.size(); ++n) {
        if (flow_.nodes[n].once != once) continue;
        size_t again = 0;
        for (std::string_view name : lists_[n].names())
          if (seen.insert(name).second || ++again <= most) all[n].emplace_back(name);
      }
    }
    return all;
  }

 private:
  static void add_own(const Node& node, NodeList& list, NodeList& constants) {
    for (const Node& member : node.packed) add_own(member, list, constants);
    if (node.instr == nullptr) return;
    list.add(node.instr->nodes());
    // The work of a loop's regions is listed at their own commands.
    if (!node.regions.empty()) return;
    for (const hlo::Computation* called : node.instr->called())
      add_inside(*called, list, constants);
  }

  static void add_inside(const hlo::Computation& computation, NodeList& list, NodeList& constants) {
    std::unordered_set<const hlo::Instr*> known;
    for (const hlo::Instr* instr : computation.instrs()) {
      const bool constant =
          !instr->is(hlo::Opcode::parameter) && !instr->is(hlo::Opcode::rng) &&
          std::all_of(instr->operands().begin(), instr->operands().end(),
                      [&](const hlo::Instr* operand) { return known.contains(operand); });
      if (constant) known.insert(instr);
      (constant ? constants : list).add(instr->nodes());
      for (const hlo::Computation* called : instr->called()) add_inside(*called, list, constants);
    }
  }

  // Equal constants of many nodes are merged into one that has all their names, and one kernel
  // prepares the weights of many nodes: such names do not describe a command. A name that is listed
  // nowhere else goes to the first command that has it.
  void add_constants() {
    std::unordered_set<std::string_view> seen;
    for (size_t n = 0; n < lists_.size(); ++n)
      if (!flow_.nodes[n].once) seen.insert(lists_[n].names().begin(), lists_[n].names().end());
    for (size_t n = 0; n < lists_.size(); ++n) {
      if (flow_.nodes[n].once) continue;
      const std::vector<std::string_view> names = constants_[n].names();
      for (std::string_view name : names)
        if (seen.insert(name).second) lists_[n].add_name(name);
    }
  }

  // The list of the node that makes it in a run, else of the first reader.
  NodeList* list_for(StorageId storage) {
    const NodeId producer = flow_.storage(storage).producer;
    const NodeId reader = readers_[storage.index()];
    if (producer.valid() && !flow_.node(producer).once) return &lists_[producer.index()];
    return reader.valid() ? &lists_[reader.index()] : nullptr;
  }

  void hand_on(const Node& node, const NodeList& from) {
    for (const Leaf& result : node.results)
      if (const NodeId reader = readers_[result.storage.index()]; reader.valid())
        add_names(from, (flow_.node(reader).once ? lists_ : constants_)[reader.index()]);
  }

  static void add_names(const NodeList& from, NodeList& to) {
    const std::vector<std::string_view> names = from.names();
    for (std::string_view name : names) to.add_name(name);
  }

  // A copy gets the names of the value's producer; other commands without a name get those of their
  // readers, or of the enclosing loop.
  void name_others() {
    for (size_t n = lists_.size(); n-- > 0;) {
      const Node& node = flow_.nodes[n];
      if (!lists_[n].names().empty()) continue;
      if (node.kind == NodeKind::copy) {
        const NodeId producer = flow_.storage(node.operands[0].storage).producer;
        if (producer.valid()) add_names(lists_[producer.index()], lists_[n]);
      } else {
        for (const Leaf& result : node.results)
          if (const NodeId reader = readers_[result.storage.index()]; reader.valid())
            add_names(lists_[reader.index()], lists_[n]);
      }
      const NodeId owner = flow_.region(node.region).owner;
      if (lists_[n].names().empty() && owner.valid()) add_names(lists_[owner.index()], lists_[n]);
    }
  }

  const Flow& flow_;
  // by node; constants_: names of constants, inside it or before the run
  std::vector<NodeList> lists_, constants_;
  std::vector<NodeId> readers_;  // by storage: the first reader
};

}  // namespace

std::vector<std::vector<std::string>> model_nodes(const Flow& flow, size_t most) {
  ModelNodes nodes(flow);
  nodes.collect();
  return nodes.take(most);
}

}  // namespace heddle::plan
