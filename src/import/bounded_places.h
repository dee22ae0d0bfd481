// Dimensions of which what is there differs from run to run, and those that have their elements.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "hlo/module.h"
#include "tensor/extent.h"

namespace heddle::import {

using Place = std::pair<const hlo::Instr*, int64_t>;  // a dimension of a value

// The dimensions of operands whose elements a dimension has.
std::vector<Place> dimensions_behind(const Place& place);

// Elements of a dimension for one of what its bound counts.
int64_t unit_of(int64_t extent, int64_t bound);

// Those of inputs that are at a bound, and of values that follow extents. What is found in the
// entry is kept, as each is asked for from all that follows; nothing of it may be removed. Not
// thread-safe.
class BoundedPlaces {
 public:
  bool empty() const { return places_.empty(); }
  // `unit`: runs have only multiples of so many elements.
  void emplace(const hlo::Instr* instr, int64_t dimension, int64_t unit = 1);
  // The nearest one whose elements a dimension has, maybe itself; null: none.
  const Place* behind(const hlo::Instr* instr, int64_t dimension) const;
  // What a dimension is of the one that it follows (a symbol for each): through windows, and what
  // is repeated. Nothing: it follows none, or is something else.
  std::optional<tensor::Extent> extent(const hlo::Instr* instr, int64_t dimension) const;
  // How long it is if those that it may follow are as long as `root` says; nothing: as above, or
  // one is no multiple of its unit.
  std::optional<int64_t> extent_at(const hlo::Instr* instr, int64_t dimension,
                                   const std::function<int64_t(const Place&)>& root) const;

 private:
  struct Nearest {
    const Place* place = nullptr;
    int steps = 0;
  };

  std::map<Place, int64_t> places_;  // and their units
  mutable std::map<Place, Nearest> known_;
};

}  // namespace heddle::import
