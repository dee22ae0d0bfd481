// Flow: the entry computation as nodes that do work and storages that hold bytes.
//
// Instructions that move nothing (tuple, get-tuple-element, bitcast, reshape and copy of equal
// layout, and the like) are no nodes: their leaves are views of their operands' storages. Every
// leaf of a node's result is a storage of its own.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "hlo/module.h"
#include "plan/plan.h"

namespace heddle::plan {

using StorageId = Id<struct StorageTag>;
using NodeId = Id<struct NodeTag>;

// A leaf of a value: the array in a storage, which it fills.
struct Leaf {
  StorageId storage;
  tensor::Shape shape;
};

enum class StorageKind : uint8_t {
  input,  // a leaf of a parameter
  constant,
  work,     // a result or a workspace of a node
  nothing,  // a token that nobody makes: no bytes
};

struct Storage {
  std::string name;
  StorageKind kind = StorageKind::work;
  int64_t bytes = 0;
  int64_t number = -1;            // input: which leaf of the parameters
  tensor::Literal value;          // constant: as it lies in memory
  NodeId producer;                // work
  int64_t output = -1;            // work: it is the memory of this output
  bool overwrites_input = false;  // and that is an input's
};

struct Node {
  const hlo::Instr* instr = nullptr;  // null: a copy of operands[0] into results[0]
  const KernelUse* use = nullptr;     // null: a host call, or a copy
  bool once = false;                  // depends on constants only
  std::vector<Leaf> operands;         // leaves of all operands, in order
  std::vector<Leaf> results;
  std::vector<StorageId> workspaces;
  std::vector<NodeId> after;  // those that run before it: data, control, overwriting
};

struct Flow {
  std::vector<Storage> storages;
  std::vector<Node> nodes;    // in module order
  std::vector<Leaf> inputs;   // leaves of the parameters
  std::vector<Leaf> outputs;  // leaves of the root

  Storage& storage(StorageId id) { return storages[id.index()]; }
  const Storage& storage(StorageId id) const { return storages[id.index()]; }
  Node& node(NodeId id) { return nodes[id.index()]; }
  const Node& node(NodeId id) const { return nodes[id.index()]; }
  StorageId add_storage(Storage storage);
  NodeId add_node(Node node);  // with data dependencies; sets its results' producer
};

// Error: a shape without a bound.
Result<Flow> make_flow(const hlo::Module& module, const Kernels& kernels);

// Leaves of a shape in order, and how many there are.
void append_leaves(const tensor::Shape& shape, std::vector<const tensor::Shape*>& out);
int64_t leaf_count(const tensor::Shape& shape);
// Number of the leaf at `path` (tuple indices); the path must lead to an array or token.
int64_t leaf_number(const tensor::Shape& shape, const hlo::Ints& path);
// "", ".0", ".1.0": of every leaf, in order.
std::vector<std::string> leaf_suffixes(const tensor::Shape& shape);

}  // namespace heddle::plan
