// Private to fuse: finds where the rows of a batch are in every value of a loop's step.
#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fuse/groups.h"
#include "fuse/regions.h"
#include "hlo/index_map.h"

namespace heddle::fuse {

// The rows are the major part of dimension `dim`: row r has its elements [r·unit, (r+1)·unit).
struct RowPlace {
  int64_t dim = 0, unit = 1;
  bool operator==(const RowPlace&) const = default;
};

// How a leaf of the state is treated when a loop is cut into strips of rows.
enum class LeafUse {
  shared,   // has no rows, and is loop-invariant
  counted,  // has no rows, and changes: every strip computes it again
  summed,   // has no rows; each step adds a sum over all rows, and nothing else reads it
  whole,    // has rows; only accessed by dynamic-slice and dynamic-update-slice
  sliced,   // has rows, and is loop-invariant
  carried,  // has rows and changes
};

// Follows the rows of one leaf through a covered body, its fusions and from one trip to the next.
// The fusions' computations have one caller each.
class BatchFlow {
 public:
  explicit BatchFlow(const Instr* loop);

  // Starts at dimension `dim` of leaf `leaf`. No (code `loop-rows`): a step mixes rows. Call it
  // once.
  Decision follow(int64_t leaf, int64_t dim);

  int64_t rows() const { return rows_; }
  LeafUse use_of(int64_t leaf) const { return uses_[static_cast<size_t>(leaf)]; }
  std::optional<RowPlace> leaf_place(int64_t leaf) const;
  std::optional<RowPlace> place_of(const Instr* value) const;
  // Whether only slices of the value are read or written: it keeps its extents.
  bool is_whole(const Instr* value) const;
  const std::vector<Instr*>& instrs() const { return instrs_; }  // including the fusions'

 private:
  struct Class {
    std::optional<RowPlace> place;
    bool is_sum = false, is_whole = false;
  };

  size_t class_of(const Instr* value) const;
  size_t class_of(size_t number) const;
  void collect();
  Decision set(const Instr* value, RowPlace place);
  Decision visit(const Instr* instr);
  Decision visit_sum(const Instr* instr, const hlo::DimLink& link, RowPlace place);
  Decision check_unfollowed(const Instr* instr) const;
  Decision find_sums();
  Decision find_uses();

  const Instr* loop_;
  const Instr* state_;
  std::vector<Instr*> instrs_;
  std::unordered_map<const Instr*, size_t> number_;
  mutable Regions sets_{0};     // of values; the leaves come first
  std::vector<Class> classes_;  // by representative
  std::unordered_set<const Instr*> sums_;
  std::vector<LeafUse> uses_;
  int64_t rows_ = 0;
  bool changed_ = false;
};

}  // namespace heddle::fuse
