// Dimensions of which what is there differs from run to run, and those that have their elements.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "hlo/module.h"

namespace heddle::import {

using Place = std::pair<const hlo::Instr*, int64_t>;  // a dimension of a value

// The dimensions of operands whose elements a dimension has.
std::vector<Place> dimensions_behind(const Place& place);

// Those of inputs that are at a bound, and of values that follow extents. What is found in the
// entry is kept, as each is asked for from all that follows; nothing of it may be removed. Not
// thread-safe.
class BoundedPlaces {
 public:
  bool empty() const { return places_.empty(); }
  void emplace(const hlo::Instr* instr, int64_t dimension);
  // The nearest one whose elements a dimension has, maybe itself; null: none.
  const Place* behind(const hlo::Instr* instr, int64_t dimension) const;

 private:
  struct Nearest {
    const Place* place = nullptr;
    int steps = 0;
  };

  std::set<Place> places_;
  mutable std::map<Place, Nearest> known_;
};

}  // namespace heddle::import
