// Flow: a module as nodes that do work and storages that hold bytes.
//
// Nodes stand in regions: region 0 is the entry; a while has two, for its condition and its body, a
// conditional one a branch. Storages know no regions: a node in a region may read any value made
// before in the regions around it. A loop-invariant leaf is no state: it is read where
// it lies. A node in a loop's region that reads only what is made outside the loop stands in the
// region around the loop instead; what depends on constants only, in the entry.
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
#include "plan/kernel_use.h"

namespace heddle::plan {

using StorageId = Id<struct StorageTag>;
using NodeId = Id<struct NodeTag>;
using RegionId = Id<struct FlowRegionTag>;

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
  RegionId region;                // where it is made
  RegionId state_of;              // it is a state of the loop with this body; or none
  StorageId home;                 // it must lie on this storage's memory; or none
  bool alone = false;             // shares memory with nothing (a loop swaps it)
  program::Space space = program::Space::device;  // of a partitioned flow; constants: both
};

enum class NodeKind : uint8_t {
  work,    // a launch, or a host call where `use` is null
  copy,    // operands[0] into results[0]
  update,  // operands: array, box, starts; the array with the box put in
  concatenate,
  // regions: condition (its result is the predicate), body. operands[i] becomes results[i], the
  // state; after a trip the body's results[i] does.
  loop,
  branch,  // a region a branch; operands[0] selects; results[i] is results[i] of the one that ran
};

struct Node {
  NodeKind kind = NodeKind::work;
  const hlo::Instr* instr = nullptr;  // null: of a copy
  const KernelUse* use = nullptr;     // null: no launch
  RegionId region{0};                 // where it stands
  bool once = false;                  // depends on constants only
  std::vector<Leaf> operands;         // leaves of all operands, in order
  std::vector<Leaf> results;
  std::vector<StorageId> workspaces;
  std::vector<NodeId> after;  // those of its region that run before it: data, control, overwriting
  std::vector<RegionId> regions;  // that it runs
  std::vector<bool> swapped;      // loop, by result: the next state is swapped in
  std::vector<Node> packed;       // a host call of several (pack.h): these, in order

  // The operand that the result is but for a part: it must lie there. -1: none.
  int array_of(size_t result) const;
};

struct Region {
  RegionId parent;            // none: the entry
  NodeId owner;               // whose region it is; none: the entry
  bool repeats = false;       // a loop's
  size_t first_node = 0;      // its nodes, and those of regions inside, have no lower number
  std::vector<Leaf> results;  // what it hands on; of the entry: the outputs
};

// An instruction without a node that stands for model's nodes: where its leaves lie.
struct NamedView {
  const hlo::Instr* instr = nullptr;
  std::vector<StorageId> storages;
};

struct Flow {
  std::vector<Storage> storages;
  std::vector<Node> nodes;      // in module order, those of regions before their owners
  std::vector<Region> regions;  // 0: the entry; a region's parent stands before it
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
  // `from`, or the node around it, that stands in `region`; none: it is not within it.
  NodeId lift(NodeId from, RegionId region) const;
  bool within(RegionId inner, RegionId outer) const;  // or equal
  StorageId add_storage(Storage storage);
  // A copy of `from` in `region`, that lies in `space`.
  Leaf add_copy(const Leaf& from, const std::string& name, RegionId region, program::Space space);
  NodeId add_node(Node node);  // with data dependencies; sets its results' producer
};

// Error: a shape without a bound.
Result<Flow> make_flow(const hlo::Module& module, const Kernels& kernels);

// By leaf of a computation's root: which leaf of its parameters it is, handed on unchanged; or -1.
std::vector<int64_t> handed_on(const hlo::Computation& computation);

// Leaves of a shape in order, and how many there are.
void append_leaves(const tensor::Shape& shape, std::vector<const tensor::Shape*>& out);
int64_t leaf_count(const tensor::Shape& shape);
// Number of the leaf at `path` (tuple indices); the path must lead to an array or token.
int64_t leaf_number(const tensor::Shape& shape, const hlo::Ints& path);
// "", ".0", ".1.0": of every leaf, in order.
std::vector<std::string> leaf_suffixes(const tensor::Shape& shape);

}  // namespace heddle::plan
