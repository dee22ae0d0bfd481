// Private to trim: the variables of a kernel, and what its statements touch with them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/decision.h"
#include "kernel/linear.h"
#include "lower/trim_request.h"

namespace heddle::lower::trimming {

using kernel::BufferId, kernel::Kernel, kernel::Linear, kernel::LoopKind;
using Terms = std::map<uint32_t, int64_t>;  // variable -> factor

// Why a kernel is not trimmed, and which group that is for; -1: for any. `with`: it could be, if
// that group were one with this one, as a loop moves over both.
struct Refusal {
  Decision why = Decision::yes();
  int group = -1, with = -1;
  explicit operator bool() const { return !why; }                  // it is refused
  bool because(const char* code, std::string what, int of = -1) {  // false
    why = Decision::no(code, "{}", std::move(what));
    group = of;
    return false;
  }
};

struct Touch {
  BufferId buffer;
  Linear index;  // of variables, in the order of their ids; empty where it is no such sum
  bool store = false;
  size_t place = 0;  // of its digits: scratch has others in each group of tasks
  // Of loads: groups of which variables of no group read all, as if it were another dimension.
  std::vector<int> whole;
  std::vector<int> over;  // of these, those that a loop moves over of which nothing is known
};

// A variable in its group: number = base + factor * variable + what inner variables add.
struct Fact {
  int group = -1;
  int64_t factor = 0;
  int64_t scale = 1;          // numbers are elements, so many to one of the group
  Terms base;                 // of variables around it
  int64_t low = 0, high = 0;  // constants that are added, the least and the most
};

// How far a loop goes whose extent is max(min(limit - factor * outer, most), 0): a tile's, of which
// the last one is cut.
struct Tail {
  uint32_t outer = 0;
  int64_t factor = 0, limit = 0, most = 0;
};

struct Variable {
  int parent = -1;      // the variable around it
  int64_t extent = -1;  // -1: not a constant
  LoopKind kind = LoopKind::serial;
  bool grid = false, bound = false;
  bool elsewhere = false;     // stores where there is no dynamic dimension, or is at odds
  bool known_static = false;  // moves in another dimension of an input or output
  std::optional<Fact> fact;
  std::optional<Tail> tail;
  // Each of its values has a result of its own, as the sums of parts that are summed later: it runs
  // to its bound, so that all of them are there; what is inside of it stops.
  bool has_results = false;
  // The most values that it has; -1: not known.
  int64_t most() const { return extent < 0 && tail ? tail->most : extent; }
};

// floor_div(v, size) (`outer`) or floor_mod(v, size) of a loop's variable.
struct PartKey {
  uint32_t whole;
  int64_t size;
  bool outer;
  auto operator<=>(const PartKey&) const = default;
};

struct Accesses {
  // By VarId. Behind those of the kernel stand parts of variables, whose parent is the whole, and
  // places that are known at run time.
  std::vector<Variable> variables;
  std::map<PartKey, uint32_t> parts;
  std::vector<Touch> touches;  // of global and scratch buffers, in order
  std::set<size_t> opaque;     // places with an index that is no sum
};

// Refused: a kind of kernel that is not looked into, or an index of reduced numbers that is no sum
// of variables.
Refusal find_accesses(const Kernel& kernel, const TrimRequest& request, Accesses* accesses);

// The most that some terms of an index are together; nothing: it is not known.
std::optional<int64_t> most_of(const Linear& index, const std::vector<Variable>& variables,
                               const std::function<bool(const Linear::Term&)>& counts);

}  // namespace heddle::lower::trimming
