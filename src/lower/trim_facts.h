// Private to trim: which variables of a kernel move over dynamic dimensions (trim.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kernel/linear.h"
#include "lower/trim.h"

namespace heddle::lower::trimming {

using kernel::BufferId, kernel::Kernel, kernel::Linear, kernel::LoopKind;
using Terms = std::map<uint32_t, int64_t>;  // variable -> factor

// A digit of a buffer, in elements: `base` and `first` are what has to be added to it for the
// number in the group. It counts to `round`; numbers of the group are below `extent`, in scratch as
// far as known variables reach: what moves further is another dimension outside of it.
struct Digit {
  int64_t stride = 1, extent = 0, round = INT64_MAX;
  int group = 0;
  Terms base;  // of variables around it
  int64_t first = 0;
  bool scratch = false;
};

struct Touch {
  BufferId buffer;
  Linear index;  // of variables, in the order of their ids
  bool store = false;
  size_t place = 0;  // of its digits: scratch has others in each group of tasks
};

// A variable in its group: number = base + factor * variable + what inner variables add.
struct Fact {
  int group = -1;
  int64_t factor = 0;
  int64_t scale = 1;          // numbers are elements, so many to one of the group
  Terms base;                 // of variables around it
  int64_t low = 0, high = 0;  // constants that are added, the least and the most
};

struct Variable {
  int parent = -1;      // the variable around it
  int64_t extent = -1;  // -1: not a constant
  LoopKind kind = LoopKind::serial;
  bool grid = false, bound = false;
  bool elsewhere = false;     // stores where there is no dynamic dimension, or is at odds
  bool known_static = false;  // moves in another dimension of an input or output
  std::optional<Fact> fact;
};

struct Facts {
  std::vector<Variable> variables;  // by VarId
  std::vector<Touch> touches;       // of global and scratch buffers, in order
};

// No: see trim().
Decision find_facts(const Kernel& kernel, const TrimRequest& request, Facts* facts);

}  // namespace heddle::lower::trimming
