// Private to fuse: the cover of one computation under construction. open_cover gives every
// operator a kernel, passes join them, make_kernels builds fusions from them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fuse/explore.h"
#include "fuse/group_order.h"
#include "fuse/groups.h"
#include "fuse/passes.h"
#include "fuse/placed_facts.h"
#include "fuse/waits.h"

namespace heddle::fuse {

struct OpenCover {
  OpenCover(Covered computation, const target::Target& target);
  OpenCover(const OpenCover&) = delete;

  Computation* computation() const { return covered.computation; }
  // No groups, to begin anew.
  void clear();
  // A group of this one; of a convolution with its transformed filter, too.
  Group* add_alone(Instr* instr);
  void add_filter(const Instr* instr, Group* group);
  // Somebody wants it, it has a kernel, and no group has it.
  bool needs_group(const Instr* instr) const;

  // Dots, and convolutions that are of the GEMM family by themselves (depthwise ones are not).
  bool has_template(Instr* instr);
  // Windows along an image: by themselves they have a schedule of their own, lanes along channels.
  bool is_window(Instr* instr);
  bool has_window(const Group& group);  // or is stored by parts: what has nests of its own
  // Merges of what waits for memory leave it alone.
  bool stays(const Group& group);

  // The groups that read it, each once. `others`: somebody without a group does, or the caller.
  std::vector<Group*> readers(const Instr* instr, bool* others) const;
  std::vector<Instr*> in_order(std::vector<Instr*> instrs) const;  // the computation's, each once
  void refuse(const Instr* producer, const Instr* consumer, const Decision& decision);
  // Those that become kernels, with their members in order.
  std::vector<Group*> kernels();
  Decision verify() const;
  std::string text() const;  // a comment a kernel

  const Covered covered;
  const std::unordered_map<const Instr*, size_t> index;  // place in the computation
  std::unordered_set<const Instr*> constant, once;       // as find_once() says
  PlacedFacts facts;
  std::optional<GroupOrder> order;
  GroupOrder::GroupsOf group_of;
  std::vector<std::unique_ptr<Group>> groups;  // without members: is part of another one
  std::unordered_set<const Instr*> copies;     // every reader's group holds one of its own
  std::vector<Group> before;                   // measure_memory: the groups as they were
  int64_t most_bytes = 0;                      // and what they needed at the most; 0: not known
  std::optional<Explored> searched;
  // Nothing merges any more: what limit_memory and search_cover did would not hold.
  bool is_settled = false;
  // By computation, so that a report does not depend on the order in which passes meet them.
  std::vector<Refusal> refusals;

 private:
  std::unordered_map<const Instr*, bool> templates_, windows_;  // of convolutions and pools
};

}  // namespace heddle::fuse
