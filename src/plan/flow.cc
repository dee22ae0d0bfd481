#include "plan/flow.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <unordered_map>
#include <unordered_set>

namespace heddle::plan {
namespace {

using hlo::Instr;
using hlo::Opcode;
using tensor::Literal;
using tensor::Shape;

bool same_layout(const Shape& a, const Shape& b) {
  return a.is_array() && b.is_array() && a.layout_or_default() == b.layout_or_default();
}

bool is_row_major(const Shape& shape) {
  return shape.is_array() && (!shape.layout() || shape.layout()->is_row_major());
}

// Instructions whose leaves are those of their operands.
bool moves_nothing(const Instr& instr) {
  switch (instr.opcode()) {
    case Opcode::tuple:
    case Opcode::get_tuple_element:
    case Opcode::opt_barrier:
    case Opcode::domain:
    case Opcode::add_dependency:
    case Opcode::after_all:
      return true;
    case Opcode::bitcast:
      return program::stored_bytes(instr.shape()) ==
             program::stored_bytes(instr.operand(0)->shape());
    case Opcode::reshape:
      return is_row_major(instr.shape()) && is_row_major(instr.operand(0)->shape());
    case Opcode::copy:
      // Values are immutable, so a copy is a view of its operand; outputs.cc copies where it must.
      return instr.shape().is_tuple() || same_layout(instr.shape(), instr.operand(0)->shape());
    default:
      return false;
  }
}

// The bytes of a constant in its memory layout: row-major unless its shape has a layout.
Literal laid_out(const Literal& value, const Shape& shape) {
  if (is_row_major(shape)) return value;
  const tensor::Layout& layout = *shape.layout();
  const std::vector<int64_t> extents = shape.extents();
  const int64_t bytes = tensor::type_bytes(shape.type());
  Literal result(Shape::array(tensor::Type::u8, {program::stored_bytes(shape)}));
  auto* to = static_cast<char*>(result.mutable_data());
  const auto* from = static_cast<const char*>(value.data());
  const tensor::Layout row_major = tensor::Layout::row_major(shape.rank());
  for (int64_t i = 0; i < value.elems(); ++i) {
    const std::vector<int64_t> index = tensor::multi_index(row_major, extents, i);
    std::memcpy(to + tensor::linear_index(layout, extents, index) * bytes, from + i * bytes,
                static_cast<size_t>(bytes));
  }
  return result;
}

void append_literals(const Literal& value, std::vector<const Literal*>& out) {
  if (!value.shape().is_tuple()) return out.push_back(&value);
  for (const Literal& element : value.elements()) append_literals(element, out);
}

class FlowMaker {
 public:
  FlowMaker(const hlo::Module& module, const Kernels& kernels)
      : entry_(*module.entry()), kernels_(kernels) {}

  Result<Flow> make() {
    flow_.regions.emplace_back();
    Frame frame;
    for (const Instr* parameter : entry_.parameters()) {
      HEDDLE_RETURN_IF_ERROR(check_shape(*parameter));
      add_parameter(*parameter, frame);
    }
    HEDDLE_RETURN_IF_ERROR(read(entry_, frame));
    flow_.outputs() = frame.leaves.at(entry_.root());
    return std::move(flow_);
  }

 private:
  // One computation, read into one region.
  struct Frame {
    RegionId region{0};
    int depth = 0;
    std::unordered_set<const Instr*> live;
    std::unordered_map<const Instr*, std::vector<Leaf>> leaves;
    std::unordered_map<const Instr*, std::vector<NodeId>> passed, ended;
    NodeId last_effect;
  };

  Status read(const hlo::Computation& computation, Frame& f) {
    mark_live(computation, f);
    for (const Instr* instr : computation.instrs()) {
      if (!f.live.contains(instr) || instr->is(Opcode::parameter)) continue;
      HEDDLE_RETURN_IF_ERROR(check_shape(*instr));
      if (instr->is(Opcode::constant)) {
        add_constant(*instr, f);
      } else if (!kernels_.contains(instr) && moves_nothing(*instr)) {
        add_view(*instr, f);
      } else if (instr->is(Opcode::while_) && f.depth < program::Program::kMaxNesting) {
        HEDDLE_RETURN_IF_ERROR(add_loop(*instr, f));
      } else if (instr->is(Opcode::conditional) && f.depth < program::Program::kMaxNesting) {
        HEDDLE_RETURN_IF_ERROR(add_branch(*instr, f));
      } else {
        add_work(*instr, f);
      }
    }
    return {};
  }

  // Instructions that the root, effects and control edges need, as in Computation::remove_dead.
  static void mark_live(const hlo::Computation& computation, Frame& f) {
    const std::vector<Instr*>& instrs = computation.instrs();
    f.live.insert(computation.root());
    for (auto it = instrs.rbegin(); it != instrs.rend(); ++it) {
      const Instr* instr = *it;
      if (!f.live.contains(instr) && !hlo::has_effect(*instr)) continue;
      f.live.insert(instr);
      for (const Instr* operand : instr->operands()) f.live.insert(operand);
      for (const Instr* before : instr->control_predecessors()) f.live.insert(before);
    }
  }

  Status check_shape(const Instr& instr) {
    std::vector<const Shape*> shapes;
    append_leaves(instr.shape(), shapes);
    for (const Shape* shape : shapes)
      if (program::stored_bytes(*shape) == std::numeric_limits<int64_t>::max())
        return user_error("{}: {} has no bound or is too large; bind its dimensions (--dim)",
                          instr.name(), tensor::to_string(*shape));
    return {};
  }

  StorageId add_storage(Storage storage, RegionId region) {
    storage.region = region;
    return flow_.add_storage(std::move(storage));
  }

  void add_parameter(const Instr& parameter, Frame& f) {
    std::vector<const Shape*> shapes;
    append_leaves(parameter.shape(), shapes);
    for (const Shape* shape : shapes) {
      const auto number = static_cast<int64_t>(flow_.inputs.size());
      const StorageId storage =
          add_storage({parameter.name(), StorageKind::input, program::stored_bytes(*shape), number},
                      RegionId(0));
      flow_.inputs.push_back({storage, *shape});
      f.leaves[&parameter].push_back(flow_.inputs.back());
    }
    f.leaves[&parameter];  // an empty tuple has no leaf
  }

  void add_constant(const Instr& instr, Frame& f) {
    std::vector<const Shape*> shapes;
    std::vector<const Literal*> values;
    append_leaves(instr.shape(), shapes);
    append_literals(instr.literal(), values);
    HEDDLE_CHECK(shapes.size() == values.size(), "{}: its value has another shape", instr.name());
    std::vector<Leaf>& leaves = f.leaves[&instr];
    for (size_t i = 0; i < shapes.size(); ++i) {
      Storage storage{instr.name(), StorageKind::constant, program::stored_bytes(*shapes[i])};
      storage.value = laid_out(*values[i], *shapes[i]);
      leaves.push_back({add_storage(std::move(storage), RegionId(0)), *shapes[i]});
    }
    note_control(instr, {}, f);
  }

  void add_view(const Instr& instr, Frame& f) {
    std::vector<Leaf> leaves;
    if (instr.is(Opcode::after_all)) {
      leaves.push_back(token(instr.name(), instr.shape()));
    } else if (instr.is(Opcode::tuple)) {
      for (const Instr* operand : instr.operands()) {
        const std::vector<Leaf>& from = f.leaves.at(operand);
        leaves.insert(leaves.end(), from.begin(), from.end());
      }
    } else if (instr.is(Opcode::get_tuple_element)) {
      const std::vector<Shape>& elements = instr.operand(0)->shape().elements();
      const auto index = static_cast<size_t>(instr.tuple_index());
      int64_t begin = 0;
      for (size_t i = 0; i < index; ++i) begin += leaf_count(elements[i]);
      const std::vector<Leaf>& from = f.leaves.at(instr.operand(0));
      leaves.assign(from.begin() + begin, from.begin() + begin + leaf_count(elements[index]));
    } else {
      leaves = f.leaves.at(instr.operand(0));
    }
    if (!instr.nodes().empty()) {
      NamedView& view = flow_.views.emplace_back(NamedView{&instr, {}});
      for (const Leaf& leaf : leaves) view.storages.push_back(leaf.storage);
    }
    f.leaves[&instr] = shaped(std::move(leaves), instr);
    note_control(instr, {}, f);
  }

  Leaf token(const std::string& name, const Shape& shape) {
    return {add_storage({name, StorageKind::nothing}, RegionId(0)), shape};
  }

  // The leaves with the shapes of `instr`'s leaves.
  static std::vector<Leaf> shaped(std::vector<Leaf> leaves, const Instr& instr) {
    std::vector<const Shape*> shapes;
    append_leaves(instr.shape(), shapes);
    HEDDLE_CHECK(shapes.size() == leaves.size(), "{}: {} leaves, not {}", instr.name(),
                 leaves.size(), shapes.size());
    for (size_t i = 0; i < leaves.size(); ++i) leaves[i].shape = *shapes[i];
    return leaves;
  }

  // An in-place update needs no kernel: neither the update nor the array has a layout.
  static bool is_update(const Instr& instr) {
    return instr.is(Opcode::dynamic_update_slice) && is_row_major(instr.shape()) &&
           instr.shape().is_static() && is_row_major(instr.operand(0)->shape()) &&
           is_row_major(instr.operand(1)->shape()) && instr.operand(1)->shape().is_static() &&
           static_cast<int64_t>(instr.operands().size()) == 2 + instr.shape().rank();
  }

  static bool is_concatenate(const Instr& instr) {
    return instr.is(Opcode::concatenate) && is_row_major(instr.shape()) &&
           instr.shape().is_static() &&
           std::all_of(instr.operands().begin(), instr.operands().end(), [](const Instr* piece) {
             return is_row_major(piece->shape()) && piece->shape().is_static();
           });
  }

  void add_work(const Instr& instr, Frame& f) {
    Node node;
    node.instr = &instr;
    auto kernel = kernels_.find(&instr);
    if (kernel != kernels_.end()) {
      node.use = &kernel->second;
    } else if (is_update(instr)) {
      node.kind = NodeKind::update;
    } else if (is_concatenate(instr)) {
      node.kind = NodeKind::concatenate;
    }
    for (const Instr* operand : instr.operands()) {
      const std::vector<Leaf>& from = f.leaves.at(operand);
      node.operands.insert(node.operands.end(), from.begin(), from.end());
    }
    node.after = control_of(instr, f);
    std::vector<const Shape*> shapes;
    append_leaves(instr.shape(), shapes);
    const bool stays = node.kind == NodeKind::update || puts_boxes(node);
    node.once = !stays && is_once(node);
    node.region = place_of(node, stays, f);
    for (size_t i = 0; i < shapes.size(); ++i) {
      std::string name = instr.name();
      if (shapes.size() > 1) name += "." + std::to_string(i);
      const StorageId storage = add_storage(
          {std::move(name), StorageKind::work, program::stored_bytes(*shapes[i])}, node.region);
      node.results.push_back({storage, *shapes[i]});
    }
    if (node.use != nullptr)
      for (int64_t bytes : node.use->workspace_bytes)
        node.workspaces.push_back(
            add_storage({instr.name() + ".workspace", StorageKind::work, bytes}, node.region));
    add_node(std::move(node), instr, f);
  }

  // Nodes with effects keep their order.
  NodeId add_node(Node node, const Instr& instr, Frame& f) {
    const bool effect = hlo::has_effect(instr);
    if (effect && f.last_effect.valid()) node.after.push_back(f.last_effect);
    const NodeId id = flow_.add_node(std::move(node));
    if (effect) f.last_effect = id;
    if (!f.leaves.contains(&instr)) f.leaves[&instr] = flow_.node(id).results;
    note_control(instr, id, f);
    return id;
  }

  static bool puts_boxes(const Node& node) {
    return node.use != nullptr &&
           std::count(node.use->in_part.begin(), node.use->in_part.end(), true) > 0;
  }

  static bool is_pure(const Node& node) {
    return !hlo::has_effect(*node.instr) &&
           hlo::has_trait(node.instr->opcode(), hlo::Trait::pure) &&
           !hlo::has_trait(node.instr->opcode(), hlo::Trait::collective);
  }

  bool is_once(const Node& node) const {
    if ((node.kind != NodeKind::work && node.kind != NodeKind::concatenate) ||
        hlo::has_effect(*node.instr) ||
        hlo::has_trait(node.instr->opcode(), hlo::Trait::collective))
      return false;
    for (const Leaf& leaf : node.operands) {
      const Storage& storage = flow_.storage(leaf.storage);
      if (storage.kind == StorageKind::input) return false;
      if (storage.kind == StorageKind::work &&
          !(storage.producer.valid() && flow_.node(storage.producer).once))
        return false;
    }
    return std::all_of(node.after.begin(), node.after.end(),
                       [&](NodeId id) { return flow_.node(id).once; });
  }

  // The region of a node: outside of all loops in which its operands are invariant.
  RegionId place_of(Node& node, bool stays, const Frame& f) const {
    if (f.region.index() == 0) return f.region;
    const bool moves = !stays && node.after.empty() && is_pure(node);
    if (node.once && moves) return RegionId(0);
    node.once = false;
    RegionId place = f.region;
    while (moves && flow_.region(place).repeats) {
      const RegionId outside = flow_.region(place).parent;
      const bool invariant =
          std::all_of(node.operands.begin(), node.operands.end(), [&](const Leaf& leaf) {
            return flow_.within(outside, flow_.storage(leaf.storage).region);
          });
      if (!invariant) break;
      place = outside;
    }
    return place;
  }

  RegionId add_region(RegionId parent, bool repeats) {
    flow_.regions.push_back({parent, {}, repeats, flow_.nodes.size(), {}});
    return RegionId(flow_.regions.size() - 1);
  }

  Status read_region(const hlo::Computation& computation, RegionId region,
                     const std::vector<Leaf>& arguments, const Frame& around, Frame& f) {
    f.region = region;
    f.depth = around.depth + 1;
    const Instr& parameter = *computation.parameters().at(0);
    HEDDLE_RETURN_IF_ERROR(check_shape(parameter));
    f.leaves[&parameter] = shaped(arguments, parameter);
    return read(computation, f);
  }

  Status add_loop(const Instr& instr, Frame& f) {
    const hlo::Computation &condition = *instr.called()[0], &body = *instr.called()[1];
    Node node;
    node.kind = NodeKind::loop;
    node.instr = &instr;
    node.region = f.region;
    node.after = control_of(instr, f);
    node.regions = {add_region(f.region, true), add_region(f.region, true)};
    std::vector<Leaf> state = shaped(f.leaves.at(instr.operand(0)), instr);
    const std::vector<int64_t> same = handed_on(body);
    std::vector<size_t> varying;
    for (size_t i = 0; i < state.size(); ++i) {
      if (same[i] == static_cast<int64_t>(i) || !state[i].shape.is_array()) continue;
      varying.push_back(i);
      node.operands.push_back(state[i]);
      std::string name = instr.name();
      if (state.size() > 1) name += "." + std::to_string(i);
      state[i].storage = add_storage(
          {std::move(name), StorageKind::work, program::stored_bytes(state[i].shape)}, {});
      node.results.push_back(state[i]);
    }
    auto move_state = [&](RegionId region) {
      for (size_t i : varying) flow_.storage(state[i].storage).region = region;
    };
    Frame condition_frame, body_frame;
    move_state(node.regions[0]);
    HEDDLE_RETURN_IF_ERROR(read_region(condition, node.regions[0], state, f, condition_frame));
    flow_.region(node.regions[0]).results = condition_frame.leaves.at(condition.root());
    move_state(node.regions[1]);
    HEDDLE_RETURN_IF_ERROR(read_region(body, node.regions[1], state, f, body_frame));
    const std::vector<Leaf>& next = body_frame.leaves.at(body.root());
    for (size_t i : varying) flow_.region(node.regions[1]).results.push_back(next[i]);
    move_state(f.region);
    node.swapped.resize(varying.size());
    f.leaves[&instr] = std::move(state);
    const NodeId id = add_node(std::move(node), instr, f);
    for (const Leaf& leaf : flow_.node(id).results)
      flow_.storage(leaf.storage).state_of = flow_.node(id).regions[1];
    return {};
  }

  Status add_branch(const Instr& instr, Frame& f) {
    Node node;
    node.kind = NodeKind::branch;
    node.instr = &instr;
    node.region = f.region;
    node.after = control_of(instr, f);
    node.operands = f.leaves.at(instr.operand(0));
    std::vector<std::vector<Leaf>> made;
    for (size_t b = 0; b < instr.called().size(); ++b) {
      node.regions.push_back(add_region(f.region, false));
      Frame frame;
      const hlo::Computation& branch = *instr.called()[b];
      HEDDLE_RETURN_IF_ERROR(
          read_region(branch, node.regions[b], f.leaves.at(instr.operand(b + 1)), f, frame));
      made.push_back(shaped(frame.leaves.at(branch.root()), instr));
    }
    std::vector<Leaf> leaves = made[0];
    for (size_t i = 0; i < leaves.size(); ++i) {
      // A value that every branch returns unchanged needs no result.
      const bool same = std::all_of(made.begin(), made.end(), [&](const auto& branch) {
        return branch[i].storage == leaves[i].storage;
      });
      std::string name = instr.name();
      if (leaves.size() > 1) name += "." + std::to_string(i);
      if (!leaves[i].shape.is_array()) {
        leaves[i] = token(name, leaves[i].shape);
        continue;
      }
      if (same && flow_.within(f.region, flow_.storage(leaves[i].storage).region)) continue;
      for (size_t b = 0; b < made.size(); ++b)
        flow_.region(node.regions[b]).results.push_back(made[b][i]);
      leaves[i].storage = add_storage(
          {std::move(name), StorageKind::work, program::stored_bytes(leaves[i].shape)}, f.region);
      node.results.push_back(leaves[i]);
    }
    f.leaves[&instr] = std::move(leaves);
    add_node(std::move(node), instr, f);
    return {};
  }

  // Control edges may pass through instructions without a node. For these, `passed` has the nodes
  // that must run before any user of the instruction; `ended` has, for any instruction, the nodes
  // that must have run for a control edge from it.
  static std::vector<NodeId> control_of(const Instr& instr, const Frame& f) {
    std::vector<NodeId> nodes;
    auto append = [&](const auto& table, const Instr* key) {
      auto found = table.find(key);
      if (found != table.end())
        nodes.insert(nodes.end(), found->second.begin(), found->second.end());
    };
    for (const Instr* operand : instr.operands()) append(f.passed, operand);
    for (const Instr* before : instr.control_predecessors()) append(f.ended, before);
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    return nodes;
  }

  void note_control(const Instr& instr, NodeId node, Frame& f) {
    std::vector<NodeId> passed, made;
    if (!node.valid()) {
      passed = control_of(instr, f);
      for (const Instr* operand : instr.operands())
        for (const Leaf& leaf : f.leaves.at(operand))
          if (NodeId producer = flow_.storage(leaf.storage).producer; producer.valid())
            made.push_back(producer);
      // The value of these two does not depend on everything that must run before it.
      if (instr.is(Opcode::after_all) || instr.is(Opcode::add_dependency))
        passed.insert(passed.end(), made.begin(), made.end());
    }
    if (!passed.empty()) f.passed[&instr] = passed;
    if (instr.control_successors().empty()) return;
    std::vector<NodeId>& ended = f.ended[&instr];
    if (node.valid()) ended.push_back(node);
    ended.insert(ended.end(), passed.begin(), passed.end());
    ended.insert(ended.end(), made.begin(), made.end());
  }

  const hlo::Computation& entry_;
  const Kernels& kernels_;
  Flow flow_;
};

}  // namespace

Result<Flow> make_flow(const hlo::Module& module, const Kernels& kernels) {
  return FlowMaker(module, kernels).make();
}

}  // namespace heddle::plan
