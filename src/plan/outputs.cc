// Correct first: an aliased output gets memory of its own and is copied over the input at the end,
// when every reader of the input has run. If its producer may write it directly (by the
// dependencies no reader of the input must run later), that copy is omitted.
#include "plan/outputs.h"

#include <algorithm>

#include "plan/sharing.h"

namespace heddle::plan {
namespace {

class OutputPlacer {
 public:
  OutputPlacer(const hlo::Module& module, Flow& flow)
      : module_(module), flow_(flow), outputs_(flow.outputs().size()) {}

  Result<std::vector<Output>> place() {
    HEDDLE_RETURN_IF_ERROR(read_aliases());
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (outputs_[i].alias >= 0) save_from_overwriting(i);
    find_readers();
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (outputs_[i].alias >= 0) place_aliased(i);
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (outputs_[i].alias < 0) place_free(i);
    return std::move(outputs_);
  }

 private:
  Status read_aliases() {
    overwritten_.assign(flow_.inputs.size(), false);
    const auto& parameters = module_.entry()->parameters();
    for (const hlo::Alias& alias : module_.input_output_alias) {
      const int64_t output = leaf_number(module_.entry()->root()->shape(), alias.output_index);
      int64_t input = 0;
      for (int64_t p = 0; p < alias.parameter; ++p) input += leaf_count(parameters[p]->shape());
      input += leaf_number(parameters[alias.parameter]->shape(), alias.parameter_index);
      const bool fits = program::stored_bytes(flow_.inputs[input].shape) ==
                        program::stored_bytes(flow_.outputs()[output].shape);
      if (overwritten_[input] || !fits) {
        if (!alias.must) continue;
        return user_error("input_output_alias: output {} must be the memory of input {}, which {}",
                          output, input, fits ? "another output takes" : "has another size");
      }
      overwritten_[input] = true;
      outputs_[output].alias = input;
    }
    return {};
  }

  // Whether it is an input that an output overwrites: a copy of it must be read before that.
  bool is_overwritten(const Leaf& leaf) const {
    const Storage& storage = flow_.storage(leaf.storage);
    return storage.kind == StorageKind::input && overwritten_[storage.number];
  }

  bool is_input(const Leaf& leaf, int64_t input) const {
    const Storage& storage = flow_.storage(leaf.storage);
    return storage.kind == StorageKind::input && storage.number == input;
  }

  Leaf add_copy(const Leaf& from, const std::string& name) {
    const bool host = flow_.own_memory;  // outputs are the caller's host memory
    return flow_.add_copy(from, name, RegionId(0),
                          host ? program::Space::host : program::Space::device);
  }

  // An output that is another overwritten input (for example in a swap) is saved in a temporary
  // first.
  void save_from_overwriting(size_t i) {
    Leaf& leaf = flow_.outputs()[i];
    if (is_overwritten(leaf) && !is_input(leaf, outputs_[i].alias))
      leaf = add_copy(leaf, flow_.storage(leaf.storage).name + ".saved");
  }

  void find_readers() {
    readers_.assign(flow_.storages.size(), {});
    for (size_t n = 0; n < flow_.nodes.size(); ++n) add_reader(NodeId(n));
    for (const Region& region : flow_.regions)
      if (region.owner.valid())
        for (const Leaf& leaf : region.results) add_reader(leaf.storage, region.owner);
  }

  void add_reader(NodeId id) {
    readers_.resize(flow_.storages.size());
    for (const Leaf& leaf : flow_.node(id).operands) add_reader(leaf.storage, id);
  }

  // Lifted to the entry: reads of a region count as reads of the node that executes it.
  void add_reader(StorageId storage, NodeId id) {
    const NodeId reader = flow_.lift(id, RegionId(0));
    std::vector<NodeId>& list = readers_[storage.index()];
    if (list.empty() || list.back() != reader) list.push_back(reader);
  }

  // Whether the leaf is a result of the run and no other output uses its memory.
  bool can_be_output(const Leaf& leaf) const {
    const Storage& storage = flow_.storage(leaf.storage);
    if (storage.kind != StorageKind::work || !storage.producer.valid() ||
        flow_.node(storage.producer).once || program::stored_bytes(leaf.shape) != storage.bytes)
      return false;
    const StorageId home = home_of(flow_, leaf.storage);
    for (size_t i = 0; i < flow_.storages.size(); ++i)
      if (flow_.storages[i].output >= 0 && home_of(flow_, StorageId(i)) == home) return false;
    return true;
  }

  void take(size_t i, StorageId storage) {
    flow_.storage(storage).output = static_cast<int64_t>(i);
    flow_.storage(storage).overwrites_input = outputs_[i].alias >= 0;
    outputs_[i].storage = storage;
  }

  void place_aliased(size_t i) {
    Leaf leaf = flow_.outputs()[i];
    const int64_t input = outputs_[i].alias;
    if (is_input(leaf, input)) {  // the input already holds it
      take(i, flow_.add_storage({flow_.storage(leaf.storage).name + ".out", StorageKind::work,
                                 flow_.storage(leaf.storage).bytes}));
      return;
    }
    const StorageId overwritten = flow_.inputs[input].storage;
    if (!can_be_output(leaf) || !may_write(leaf.storage, overwritten)) {
      leaf = add_copy(leaf, flow_.storage(leaf.storage).name + ".out");
      readers_.resize(flow_.storages.size());
      add_reader(flow_.storage(leaf.storage).producer);
    }
    take(i, leaf.storage);
    const NodeId writer = flow_.storage(leaf.storage).producer;
    std::vector<NodeId>& after = flow_.node(writer).after;
    for (NodeId reader : readers_[overwritten.index()])
      if (reader != writer && std::find(after.begin(), after.end(), reader) == after.end())
        after.push_back(reader);
  }

  // Whether the producer of `result` may write it over the input: it reads the input only as an
  // operand that it may overwrite, and no reader depends on the producer.
  bool may_write(StorageId result, StorageId input) const {
    const NodeId writer = flow_.storage(result).producer;
    const Node& node = flow_.node(writer);
    if (node.kind == NodeKind::loop || node.kind == NodeKind::branch) return false;
    for (size_t i = 0; i < flow_.storages.size(); ++i)
      if (StorageId(i) != result && home_of(flow_, StorageId(i)) == home_of(flow_, result))
        return false;
    int64_t reads = 0, in_place = 0;
    for (const Leaf& leaf : node.operands) reads += leaf.storage == input;
    if (const int array = array_of(node, result); array >= 0) {
      if (reads != 1 || node.operands[static_cast<size_t>(array)].storage != input) return false;
    } else if (reads > 0) {
      if (node.use == nullptr || reads > 1) return false;
      for (size_t r = 0; r < node.results.size() && r < node.use->in_place.size(); ++r) {
        const int operand = node.use->in_place[r];
        if (node.results[r].storage != result || operand < 0) continue;
        in_place += node.operands[static_cast<size_t>(operand)].storage == input;
      }
      if (in_place != 1) return false;
    }
    const std::vector<bool> later = reached_from(writer);
    return std::none_of(readers_[input.index()].begin(), readers_[input.index()].end(),
                        [&](NodeId id) { return id != writer && later[id.index()]; });
  }

  static int array_of(const Node& node, StorageId result) {
    for (size_t r = 0; r < node.results.size(); ++r)
      if (node.results[r].storage == result) return node.array_of(r);
    return -1;
  }

  // Nodes that must run after `start`, by all current edges.
  std::vector<bool> reached_from(NodeId start) const {
    std::vector<std::vector<NodeId>> next(flow_.nodes.size());
    for (size_t n = 0; n < flow_.nodes.size(); ++n)
      for (NodeId before : flow_.nodes[n].after) next[before.index()].push_back(NodeId(n));
    std::vector<bool> reached(flow_.nodes.size());
    std::vector<NodeId> stack{start};
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      for (NodeId n : next[id.index()]) {
        if (reached[n.index()]) continue;
        reached[n.index()] = true;
        stack.push_back(n);
      }
    }
    return reached;
  }

  // Nodes of the run, in the entry, that no other node waits for.
  std::vector<NodeId> last_nodes() const {
    std::vector<bool> waited_for(flow_.nodes.size());
    for (const Node& node : flow_.nodes)
      for (NodeId before : node.after) waited_for[before.index()] = true;
    std::vector<NodeId> last;
    for (size_t n = 0; n < flow_.nodes.size(); ++n)
      if (!waited_for[n] && !flow_.nodes[n].once && flow_.nodes[n].region.index() == 0)
        last.push_back(NodeId(n));
    return last;
  }

  void place_free(size_t i) {
    const Leaf leaf = flow_.outputs()[i];
    if (can_be_output(leaf)) return take(i, leaf.storage);
    const std::string name = flow_.storage(leaf.storage).name + ".out";
    if (program::stored_bytes(leaf.shape) == 0)
      return take(i, flow_.add_storage({name, StorageKind::work, 0}));
    // The leaf is another output's memory, a once result, a constant or an input.
    std::vector<NodeId> ends;
    if (flow_.own_memory && !is_overwritten(leaf)) ends = last_nodes();
    const Leaf copy = add_copy(leaf, name);
    take(i, copy.storage);
    // The host copies it when the device has finished: between device commands it would interrupt
    // them.
    std::vector<NodeId>& after = flow_.node(flow_.storage(copy.storage).producer).after;
    for (NodeId id : ends)
      if (std::find(after.begin(), after.end(), id) == after.end()) after.push_back(id);
    if (!is_overwritten(leaf)) return;
    // The node that overwrites the input must wait for this copy.
    const int64_t input = flow_.storage(leaf.storage).number;
    for (const Output& output : outputs_) {
      if (output.alias != input) continue;
      if (NodeId writer = flow_.storage(output.storage).producer; writer.valid())
        flow_.node(writer).after.push_back(flow_.storage(copy.storage).producer);
    }
  }

  const hlo::Module& module_;
  Flow& flow_;
  std::vector<Output> outputs_;
  std::vector<bool> overwritten_;             // by input leaf
  std::vector<std::vector<NodeId>> readers_;  // by storage
};

}  // namespace

Result<std::vector<Output>> place_outputs(const hlo::Module& module, Flow& flow) {
  return OutputPlacer(module, flow).place();
}

}  // namespace heddle::plan
