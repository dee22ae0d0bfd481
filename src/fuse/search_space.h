// Private to fuse: a computation as the graph in which the explorer searches.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fuse/explore.h"
#include "fuse/groups.h"
#include "fuse/patterns.h"
#include "fuse/placed_facts.h"

namespace heddle::fuse {

// A vertex is an instruction that may move, or a group that stays, or an instruction without a
// kernel. Views (see is_duplicable()) whose readers are all kernels that contain a copy are no
// vertices: they are part of their readers.
class SearchSpace {
 public:
  SearchSpace(const Basic& basic, const target::Target& target, PlacedFacts* facts,
              const std::function<bool(const Group&)>& stays, const SearchOptions& options);

  // False: the basic fusion has a cycle (a bug), and nothing else here may be used.
  bool has_order() const { return has_order_; }

  // Groups that stay, including regions in which a search can gain too little, and the rest.
  std::vector<Group*> kept, free;
  Graph graph;
  std::vector<Instr*> instr_of;  // by vertex; null: a group that stays

  const Computation& computation() const { return *basic_.covered->computation; }
  bool is_view(const Instr* instr) const { return views_.count(instr) > 0; }
  int vertex(const Instr* instr) const;  // -1: none

  // The vertices of a group's members that may move, ascending; `own`: without its copies.
  Members vertices_of(const Group& group, bool own) const;
  // The members' instructions with the views that they read, in the computation's order.
  std::vector<Instr*> with_views(const Members& members) const;
  std::vector<Instr*> in_order(std::vector<Instr*> instrs) const;
  // Whether anything outside of the members reads it, directly or through views.
  bool leaves(const Instr* instr, const Members& members) const;
  // The same for a group as it is: copies are not read outside.
  std::function<bool(const Instr*)> leaves_of(const Group& group) const;

 private:
  void keep_without_gain(const target::Target& target, PlacedFacts* facts,
                         const SearchOptions& options);
  void find_views();
  void number();

  Basic basic_;
  bool has_order_ = true;
  std::unordered_map<const Instr*, size_t> index_;
  std::unordered_set<const Instr*> movable_, views_;
  std::unordered_map<const Instr*, Group*> kept_of_;
  std::unordered_map<const Instr*, int> vertex_of_;
};

}  // namespace heddle::fuse
