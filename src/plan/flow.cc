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
      // Values never change, so a copy is its operand; where memory must differ, outputs.cc copies.
      return instr.shape().is_tuple() || same_layout(instr.shape(), instr.operand(0)->shape());
    default:
      return false;
  }
}

// The bytes of a constant as they lie in memory: row-major unless its shape has a layout.
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
    mark_live();
    for (const Instr* parameter : entry_.parameters()) {
      HEDDLE_RETURN_IF_ERROR(check_shape(*parameter));
      add_parameter(*parameter);
    }
    for (const Instr* instr : entry_.instrs()) {
      if (!live_.contains(instr) || instr->is(Opcode::parameter)) continue;
      HEDDLE_RETURN_IF_ERROR(check_shape(*instr));
      if (instr->is(Opcode::constant)) {
        add_constant(*instr);
      } else if (!kernels_.contains(instr) && moves_nothing(*instr)) {
        add_view(*instr);
      } else {
        add_work(*instr);
      }
    }
    flow_.outputs = leaves_.at(entry_.root());
    return std::move(flow_);
  }

 private:
  // What the root, effects and control edges need: the same as Computation::remove_dead keeps.
  void mark_live() {
    const std::vector<Instr*>& instrs = entry_.instrs();
    live_.insert(entry_.root());
    for (auto it = instrs.rbegin(); it != instrs.rend(); ++it) {
      const Instr* instr = *it;
      if (!live_.contains(instr) && !hlo::has_effect(*instr)) continue;
      live_.insert(instr);
      for (const Instr* operand : instr->operands()) live_.insert(operand);
      for (const Instr* before : instr->control_predecessors()) live_.insert(before);
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

  void add_parameter(const Instr& parameter) {
    std::vector<const Shape*> shapes;
    append_leaves(parameter.shape(), shapes);
    for (const Shape* shape : shapes) {
      const auto number = static_cast<int64_t>(flow_.inputs.size());
      const StorageId storage = flow_.add_storage(
          {parameter.name(), StorageKind::input, program::stored_bytes(*shape), number});
      flow_.inputs.push_back({storage, *shape});
      leaves_[&parameter].push_back(flow_.inputs.back());
    }
    leaves_[&parameter];  // an empty tuple has no leaf
  }

  void add_constant(const Instr& instr) {
    std::vector<const Shape*> shapes;
    std::vector<const Literal*> values;
    append_leaves(instr.shape(), shapes);
    append_literals(instr.literal(), values);
    HEDDLE_CHECK(shapes.size() == values.size(), "{}: its value has another shape", instr.name());
    std::vector<Leaf>& leaves = leaves_[&instr];
    for (size_t i = 0; i < shapes.size(); ++i) {
      Storage storage{instr.name(), StorageKind::constant, program::stored_bytes(*shapes[i])};
      storage.value = laid_out(*values[i], *shapes[i]);
      leaves.push_back({flow_.add_storage(std::move(storage)), *shapes[i]});
    }
    note_control(instr, {});
  }

  void add_view(const Instr& instr) {
    std::vector<Leaf> leaves;
    if (instr.is(Opcode::after_all)) {
      leaves.push_back({flow_.add_storage({instr.name(), StorageKind::nothing}), instr.shape()});
    } else if (instr.is(Opcode::tuple)) {
      for (const Instr* operand : instr.operands()) {
        const std::vector<Leaf>& from = leaves_.at(operand);
        leaves.insert(leaves.end(), from.begin(), from.end());
      }
    } else if (instr.is(Opcode::get_tuple_element)) {
      const std::vector<Shape>& elements = instr.operand(0)->shape().elements();
      const auto index = static_cast<size_t>(instr.tuple_index());
      int64_t begin = 0;
      for (size_t i = 0; i < index; ++i) begin += leaf_count(elements[i]);
      const std::vector<Leaf>& from = leaves_.at(instr.operand(0));
      leaves.assign(from.begin() + begin, from.begin() + begin + leaf_count(elements[index]));
    } else {
      leaves = leaves_.at(instr.operand(0));
    }
    std::vector<const Shape*> shapes;
    append_leaves(instr.shape(), shapes);
    HEDDLE_CHECK(shapes.size() == leaves.size(), "{}: {} leaves, not {}", instr.name(),
                 leaves.size(), shapes.size());
    for (size_t i = 0; i < leaves.size(); ++i) leaves[i].shape = *shapes[i];
    leaves_[&instr] = std::move(leaves);
    note_control(instr, {});
  }

  void add_work(const Instr& instr) {
    Node node;
    node.instr = &instr;
    auto kernel = kernels_.find(&instr);
    if (kernel != kernels_.end()) node.use = &kernel->second;
    for (const Instr* operand : instr.operands()) {
      const std::vector<Leaf>& from = leaves_.at(operand);
      node.operands.insert(node.operands.end(), from.begin(), from.end());
    }
    std::vector<const Shape*> shapes;
    append_leaves(instr.shape(), shapes);
    for (size_t i = 0; i < shapes.size(); ++i) {
      std::string name = instr.name();
      if (shapes.size() > 1) name += "." + std::to_string(i);
      const StorageId storage = flow_.add_storage(
          {std::move(name), StorageKind::work, program::stored_bytes(*shapes[i])});
      node.results.push_back({storage, *shapes[i]});
    }
    if (node.use != nullptr)
      for (int64_t bytes : node.use->workspace_bytes)
        node.workspaces.push_back(
            flow_.add_storage({instr.name() + ".workspace", StorageKind::work, bytes}));
    node.after = control_of(instr);
    node.once = is_once(node);
    const bool effect = hlo::has_effect(instr);
    if (effect && last_effect_.valid()) node.after.push_back(last_effect_);
    const NodeId id = flow_.add_node(std::move(node));
    if (effect) last_effect_ = id;
    leaves_[&instr] = flow_.node(id).results;
    note_control(instr, id);
  }

  bool is_once(const Node& node) const {
    if (hlo::has_effect(*node.instr) ||
        hlo::has_trait(node.instr->opcode(), hlo::Trait::collective))
      return false;
    for (const Leaf& leaf : node.operands) {
      const Storage& storage = flow_.storage(leaf.storage);
      if (storage.kind == StorageKind::input) return false;
      if (storage.kind == StorageKind::work && !flow_.node(storage.producer).once) return false;
    }
    return std::all_of(node.after.begin(), node.after.end(),
                       [&](NodeId id) { return flow_.node(id).once; });
  }

  // Control edges go through instructions that are no nodes. `passed_` has, for those, the nodes
  // that must run before whoever uses them; `ended_`, the nodes that have run where it has.
  std::vector<NodeId> control_of(const Instr& instr) const {
    std::vector<NodeId> nodes;
    auto append = [&](const auto& table, const Instr* key) {
      auto found = table.find(key);
      if (found != table.end())
        nodes.insert(nodes.end(), found->second.begin(), found->second.end());
    };
    for (const Instr* operand : instr.operands()) append(passed_, operand);
    for (const Instr* before : instr.control_predecessors()) append(ended_, before);
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    return nodes;
  }

  void note_control(const Instr& instr, NodeId node) {
    std::vector<NodeId> passed, made;
    if (!node.valid()) {
      passed = control_of(instr);
      for (const Instr* operand : instr.operands())
        for (const Leaf& leaf : leaves_.at(operand))
          if (NodeId producer = flow_.storage(leaf.storage).producer; producer.valid())
            made.push_back(producer);
      // The value of these two does not lead to all that must run before it is there.
      if (instr.is(Opcode::after_all) || instr.is(Opcode::add_dependency))
        passed.insert(passed.end(), made.begin(), made.end());
    }
    if (!passed.empty()) passed_[&instr] = passed;
    if (instr.control_successors().empty()) return;
    std::vector<NodeId>& ended = ended_[&instr];
    if (node.valid()) ended.push_back(node);
    ended.insert(ended.end(), passed.begin(), passed.end());
    ended.insert(ended.end(), made.begin(), made.end());
  }

  const hlo::Computation& entry_;
  const Kernels& kernels_;
  Flow flow_;
  std::unordered_set<const Instr*> live_;
  std::unordered_map<const Instr*, std::vector<Leaf>> leaves_;
  std::unordered_map<const Instr*, std::vector<NodeId>> passed_, ended_;
  NodeId last_effect_;
};

}  // namespace

StorageId Flow::add_storage(Storage storage) {
  storages.push_back(std::move(storage));
  return StorageId(storages.size() - 1);
}

NodeId Flow::add_node(Node node) {
  const NodeId id(nodes.size());
  for (const Leaf& leaf : node.operands)
    if (NodeId producer = storage(leaf.storage).producer; producer.valid())
      node.after.push_back(producer);
  std::sort(node.after.begin(), node.after.end());
  node.after.erase(std::unique(node.after.begin(), node.after.end()), node.after.end());
  for (const Leaf& leaf : node.results) storage(leaf.storage).producer = id;
  for (StorageId workspace : node.workspaces) storage(workspace).producer = id;
  nodes.push_back(std::move(node));
  return id;
}

Result<Flow> make_flow(const hlo::Module& module, const Kernels& kernels) {
  return FlowMaker(module, kernels).make();
}

void append_leaves(const Shape& shape, std::vector<const Shape*>& out) {
  if (!shape.is_tuple()) return out.push_back(&shape);
  for (const Shape& element : shape.elements()) append_leaves(element, out);
}

int64_t leaf_count(const Shape& shape) {
  if (!shape.is_tuple()) return 1;
  int64_t count = 0;
  for (const Shape& element : shape.elements()) count += leaf_count(element);
  return count;
}

int64_t leaf_number(const Shape& shape, const hlo::Ints& path) {
  int64_t number = 0;
  const Shape* at = &shape;
  for (int64_t index : path) {
    HEDDLE_CHECK(at->is_tuple() && index < static_cast<int64_t>(at->elements().size()));
    for (int64_t i = 0; i < index; ++i) number += leaf_count(at->elements()[i]);
    at = &at->elements()[index];
  }
  HEDDLE_CHECK(!at->is_tuple(), "the path ends at a tuple");
  return number;
}

std::vector<std::string> leaf_suffixes(const Shape& shape) {
  if (!shape.is_tuple()) return {""};
  std::vector<std::string> suffixes;
  for (size_t i = 0; i < shape.elements().size(); ++i)
    for (const std::string& rest : leaf_suffixes(shape.elements()[i]))
      suffixes.push_back("." + std::to_string(i) + rest);
  return suffixes;
}

}  // namespace heddle::plan
