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
  // Removes all groups, to begin again.
  void clear();
  // Adds a group of this instruction; for a convolution, with its transformed filter.
  Group* add_alone(Instr* instr);
  void add_filter(const Instr* instr, Group* group);
  // Whether it is used, may have a kernel, and is in no group.
  bool needs_group(const Instr* instr) const;

  // Whether it is a dot, or a convolution that alone is of the GEMM family (depthwise ones are
  // not).
  bool has_template(Instr* instr);
  // Whether it is a window along an image, which alone has a special schedule: lanes along
  // channels.
  bool is_window(Instr* instr);
  bool has_window(const Group& group);  // or is stored in parts: has special loop nests
  // Whether merges of memory-bound groups leave it as it is.
  bool stays(const Group& group);

  // The groups that read it, each once. `others`: an instruction without a group reads it, or the
  // caller.
  std::vector<Group*> readers(const Instr* instr, bool* others) const;
  std::vector<Instr*> in_order(std::vector<Instr*> instrs) const;  // the computation's, each once
  void refuse(const Instr* producer, const Instr* consumer, const Decision& decision);
  // The groups that become kernels, with their members in order.
  std::vector<Group*> kernels();
  Decision verify() const;
  std::string text() const;  // one comment per kernel

  const Covered covered;
  const std::unordered_map<const Instr*, size_t> index;  // place in the computation
  std::unordered_set<const Instr*> constant, once;       // as find_once() says
  PlacedFacts facts;
  std::optional<GroupOrder> order;
  GroupOrder::GroupsOf group_of;
  std::vector<std::unique_ptr<Group>> groups;  // without members: moved into another one
  std::unordered_set<const Instr*> copies;     // every reader's group has a copy
  std::vector<Group> before;                   // measure_memory: the groups as they were
  int64_t most_bytes = 0;                      // their peak memory; 0: not known
  std::optional<Explored> searched;
  // Nothing may merge any more: it would invalidate what limit_memory and search_cover did.
  bool is_settled = false;
  // By computation, so that a report does not depend on the order in which passes visit them.
  std::vector<Refusal> refusals;

 private:
  std::unordered_map<const Instr*, bool> templates_, windows_;  // of convolutions and pools
};

}  // namespace heddle::fuse
