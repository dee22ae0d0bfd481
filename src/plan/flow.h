// Flow: a module as nodes that do work and storages that hold bytes.
//
// Every node is in a region: region 0 is the entry; a while has two, for its condition and its
// body, a conditional has one per branch. A node in a region may read any storage made earlier in
// the enclosing regions. A loop-invariant leaf is not part of the loop's state: the loop reads the
// original storage. A node that reads only values from outside its loop is hoisted to the region
// around the loop; one that depends on constants only, to the entry.
//
// Instructions that move nothing (tuple, get-tuple-element, bitcast, reshape and copy of equal
// layout, and the like) are not nodes: their leaves are views of their operands' storages. Every
// leaf of a node's result has its own storage.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "hlo/module.h"
#include "plan/kernel_use.h"

namespace heddle::plan {

using StorageId = Id<struct StorageTag>;
using NodeId = Id<struct NodeTag>;
using RegionId = Id<struct FlowRegionTag>;

// A leaf of a value: an array that fills its storage.
struct Leaf {
  StorageId storage;
  tensor::Shape shape;
};

enum class StorageKind : uint8_t {
  input,  // a leaf of an entry parameter
  constant,
  work,     // a result or a workspace of a node
  nothing,  // a token without a producer: no bytes
};

struct Storage {
  std::string name;
  StorageKind kind = StorageKind::work;
  int64_t bytes = 0;
  int64_t number = -1;                            // input: index among the leaves of the parameters
  tensor::Literal value;                          // constant: in its memory layout
  NodeId producer;                                // work
  int64_t output = -1;                            // work: this output uses its memory
  bool overwrites_input = false;                  // the output's memory is an input's
  RegionId region;                                // where it is produced
  RegionId state_of;                              // the body of the loop whose state it is; or none
  StorageId home;                                 // it must use this storage's memory; or none
  bool alone = false;                             // shares memory with nothing (a loop swaps it)
  program::Space space = program::Space::device;  // in a partitioned flow; constants are in both
};

enum class NodeKind : uint8_t {
  work,    // a launch, or a host call if `use` is null
  copy,    // operands[0] into results[0]
  update,  // operands: array, slice, starts; result: the array with the slice updated
  concatenate,
  // regions: condition (its result is the predicate), body. operands[i] initialises state
  // results[i]; each trip replaces it by the body's results[i].
  loop,
  branch,  // one region per branch; operands[0] selects; results[i] is results[i] of that one
};

struct Node {
  NodeKind kind = NodeKind::work;
  const hlo::Instr* instr = nullptr;  // null: a copy
  const KernelUse* use = nullptr;     // null: no launch
  RegionId region{0};                 // the region that contains it
  bool once = false;                  // depends on constants only
  std::vector<Leaf> operands;         // leaves of all operands, in order
  std::vector<Leaf> results;
  std::vector<StorageId> workspaces;
  std::vector<NodeId> after;      // nodes of its region that run first: data, control, overwriting
  std::vector<RegionId> regions;  // regions that it executes
  std::vector<bool> swapped;      // loop, by result: the next state comes by swapping buffers
  std::vector<Node> packed;       // a host call made of several (pack.h): its members, in order

  // The operand that the result updates in part, so that it must use its memory. -1: none.
  int array_of(size_t result) const;
};

struct Region {
  RegionId parent;            // the node that executes it; none: the entry
  NodeId owner;               // part of a loop
  bool repeats = false;       // a loop's
  size_t first_node = 0;      // no node of it or of regions inside has a lower number
  std::vector<Leaf> results;  // its root's leaves; of the entry: the outputs
};

// An instruction without a node, but with names of model nodes: the storages of its leaves.
struct NamedView {
  const hlo::Instr* instr = nullptr;
  std::vector<StorageId> storages;
};

struct Flow {
  std::vector<Storage> storages;
  std::vector<Node> nodes;      // in module order, nodes of regions before their owners
  std::vector<Region> regions;  // 0: the entry; a parent comes before its regions
  std::vector<Leaf> inputs;     // leaves of the parameters
  std::vector<NamedView> views;
  bool own_memory = false;                                     // partitioned: storages have spaces
  std::vector<Leaf>& outputs() { return regions[0].results; }  // leaves of the root
  const std::vector<Leaf>& outputs() const { return regions[0].results; }

  Storage& storage(StorageId id) { return storages[id.index()]; }
  const Storage& storage(StorageId id) const { return storages[id.index()]; }
  Node& node(NodeId id) { return nodes[id.index()]; }
  const Node& node(NodeId id) const { return nodes[id.index()]; }
  Region& region(RegionId id) { return regions[id.index()]; }
  const Region& region(RegionId id) const { return regions[id.index()]; }
  // `from` if it is in `region`, or the node of `region` that contains it; none: it is not inside.
  NodeId lift(NodeId from, RegionId region) const;
  bool within(RegionId inner, RegionId outer) const;  // or equal
  StorageId add_storage(Storage storage);
  // A copy of `from` in `region`, stored in `space`.
  Leaf add_copy(const Leaf& from, const std::string& name, RegionId region, program::Space space);
  NodeId add_node(Node node);  // with data dependencies; sets its results' producer
};

// Error: a shape without a bound.
Result<Flow> make_flow(const hlo::Module& module, const Kernels& kernels);

// By leaf of a computation's root: the leaf of its parameters that it returns unchanged; or -1.
std::vector<int64_t> handed_on(const hlo::Computation& computation);

// Leaves of a shape in order, and their number.
void append_leaves(const tensor::Shape& shape, std::vector<const tensor::Shape*>& out);
int64_t leaf_count(const tensor::Shape& shape);
// Number of the leaf at `path` (tuple indices); the path must lead to an array or token.
int64_t leaf_number(const tensor::Shape& shape, const hlo::Ints& path);
// "", ".0", ".1.0": of every leaf, in order.
std::vector<std::string> leaf_suffixes(const tensor::Shape& shape);

}  // namespace heddle::plan
