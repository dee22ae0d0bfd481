// The once section and the run: their nodes in order, including nodes of regions, and the memory
// blocks that they need.
#pragma once

#include <functional>
#include <vector>

#include "arena/offsets.h"
#include "plan/flow.h"
#include "plan/lifetimes.h"
#include "plan/options.h"
#include "plan/order.h"
#include "plan/ordering.h"

namespace heddle::plan {

using arena::Block;
using arena::Conflicts;
using arena::kSearchWork;
using arena::kSearchWorkUnderLimit;
using arena::Offsets;

// Temporaries of one space.
struct Arena {
  std::vector<StorageId> temporaries;  // homes in the arena; blocks[i] is temporaries[i]'s
  std::vector<Block> blocks;
  Conflicts conflicts;  // of the blocks, if the order is not sequential
  Offsets offsets;
};

// The once section, or the run, in its order.
struct Section {
  Sequence sequence;
  Lifetimes lifetimes;
  Ordering ordering;  // of the section's commands
  Arena device, host;
  std::vector<program::PoolBlock> pool_blocks;  // of the device, if memory is dynamic
};

inline int64_t align_up(int64_t bytes) {
  return (bytes + program::kAlignmentBytes - 1) / program::kAlignmentBytes *
         program::kAlignmentBytes;
}

class Orders {
 public:
  // The arguments must outlive it. `kinds` by storage; `streams` by node, or empty: the stream
  // assignment that memory is planned for, if the options ask for several streams.
  Orders(const Flow& flow, const std::vector<program::BufferKind>& kinds, const Options& options,
         const std::vector<int64_t>& streams);

  Section section(bool once) const;
  void find_blocks(Section& section, bool in_place) const;
  static void find_conflicts(Section& section);  // in both spaces
  // The nodes of a region (not the entry) in their order.
  const std::vector<NodeId>& nodes_of(RegionId region) const { return nodes_of_[region.index()]; }

 private:
  void add_reads(const Node& node, std::vector<StorageId>& reads) const;
  void add_overwrites(const Node& node, const std::function<int(StorageId)>& value,
                      std::vector<int>& overwrites) const;
  TaskGraph task_graph(const std::vector<NodeId>& nodes, RegionId region) const;
  std::vector<std::vector<int>> candidate_orders(const TaskGraph& graph) const;
  void order_regions();
  void append(NodeId id, Sequence& sequence) const;
  bool stands_alone(const Node& node) const;
  Ordering ordering_of(const Sequence& sequence) const;

  const Flow& flow_;
  const std::vector<program::BufferKind>& kinds_;
  const Options& options_;
  const std::vector<int64_t>& streams_;
  std::vector<std::vector<NodeId>> nodes_of_;  // by region
  std::vector<int64_t> region_peak_;           // by region: peak of the bytes of its own values
};

}  // namespace heddle::plan
