// Stage graph: a fusion divided into stages (stages.md §1). Read this header first.
//
// A stage is one sub-root with the elementwise and index operators that follow its schedule. Its
// digits are a box: `out` digits (its value's elements) and `red` digits (what it reduces over). A
// dimension of extent 1 has no digit; a dimension that some reshape splits has several. The body is
// a hash-consed expression DAG; its leaves are loads at index expressions over the digits (out
// digits first, then red ones), constants and index values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/decision.h"
#include "base/error.h"
#include "base/ids.h"
#include "hlo/module.h"
#include "index/map.h"
#include "stage/members.h"

namespace heddle::stage {

using StageId = Id<struct StageTag>;
using tensor::Type;

struct Digit {
  std::string name;
  int64_t extent = 1;
  bool operator==(const Digit&) const = default;
};

// What a load reads: an input by its number, or value `value` of a stage.
struct Source {
  int input = -1;  // >= 0: an input
  StageId stage;   // else
  int value = 0;
  bool operator==(const Source&) const = default;
};

struct Load {
  Source source;
  // Input: one, the row-major linear index. Stage: one an out digit. Run-time atoms are body nodes.
  std::vector<index::Expr> coordinates;
  // Read only where all hold (else the value is not used).
  std::vector<index::Guard> guards;
  bool operator==(const Load&) const = default;
};

struct Node {
  enum class Kind : uint8_t { load, constant, index, guard, op };
  Kind kind = Kind::constant;
  Type type = Type::f32;
  int load = -1;                          // load
  uint64_t bits = 0;                      // constant: in the type's own format
  index::Expr index;                      // index: the value, converted to `type`
  std::vector<index::Guard> guards;       // guard: pred, all hold
  hlo::Opcode opcode = hlo::Opcode::add;  // op
  const hlo::Instr* instr = nullptr;      // op: for its attributes (compare, reduce-precision)
  std::vector<int> operands;              // op
  bool fast = false;                      // op: the faster form that a named rewrite allows
};

// A value of a stage. `result`: the body node of one element (reduce: what is combined in).
struct Value {
  Type type = Type::f32;
  int result = -1;
  int init = -1;    // reduce, dot: body node without digits, or -1 for zero
  int output = -1;  // number of the output that this value is, or -1
};

struct Stage {
  std::string name;
  hlo::StageKind kind = hlo::StageKind::map;
  const hlo::Instr* instr = nullptr;
  std::vector<Digit> out, red;
  std::vector<Node> nodes;
  std::vector<Load> loads;
  std::vector<Value> values;
  // reduce: to_apply; its parameters are the accumulators, then the elements. dot, conv: none, the
  // body is {multiply(a, b)} and the combine is addition (fma where the types allow).
  const hlo::Computation* combine = nullptr;
  // conv: the outputs m along a side of a Winograd tile where b is a transformed filter
  // (hlo::winograd_filter), 0 where it is the filter itself. Its load is then of the first point.
  int winograd = 0;
  // scan: the out digit along which it runs. Its value is `combine` of the elements of the body up
  // to it (`down`: from it on), so all of that digit is computed in one place, in order; `exact`:
  // one element after the other, for another order would round differently.
  int scan = -1;
  bool down = false, exact = false;
  // scatter: the body node of the row that an update goes into: out digit 0, which no other node
  // uses. Updates are the red digits; `combine` puts one into what is there, or, null, it replaces
  // that. Without values[0].init, a body node over the out digits, the output holds it already.
  int scatter = -1;
  // Row-major linear index of the value's element over `out`, for the store; of a box in place, in
  // the array, without the starts.
  index::Expr position;

  std::vector<int64_t> extents() const;  // out, then red
  std::vector<int64_t> out_extents() const;
  int64_t out_elems() const;
  int64_t red_elems() const;
  int64_t points() const;  // how often the body is evaluated
  bool is_reduction() const {
    return (!red.empty() && scatter < 0) || kind == hlo::StageKind::reduce ||
           kind == hlo::StageKind::dot || kind == hlo::StageKind::conv;
  }
};

struct Input {
  tensor::Shape shape;
};
// Where the box of a dynamic-update-slice in place (hlo/in_place.h) begins in its array.
struct Start {
  const hlo::Instr* value = nullptr;  // a member: scalar arithmetic on inputs and constants
  int64_t limit = 0;                  // clamped to [0, limit]
  int64_t stride = 1;                 // elements of the array
};
struct Output {
  StageId stage;  // where it is stored by parts: of the first one, the others stand behind it
  int value = 0;
  tensor::Shape shape;
  // The output is this input with a box in it: its memory, of which the stage's elements alone are
  // stored, at the stage's position from where the starts say on. -1: all of it is stored.
  int array = -1;
  std::vector<Start> starts = {};
};

struct StageGraph {
  std::string name;
  std::vector<Stage> stages;  // readers behind what they read
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<std::string> rewrites;  // named rewrites used (mark_fast_forms), for the summary
  const Stage& stage(StageId id) const { return stages[id.index()]; }
  int64_t stored_bytes(const Output& output) const;
  bool is_in_parts(int output) const;  // several stages store it
};

// May this instruction stand in a fusion at all? (What it may stand beside is place()'s question.)
Decision can_stage(const hlo::Instr& instr);
// Takes a kernel's members apart. No: with the code of can_stage, or `unknown-map`.
struct StagedOrNot {
  StageGraph graph;
  Decision decision = Decision::yes();
};
// Which values with several readers, or read once for many elements, have no stage of their own:
// all readers compute them. all: but those of a row that hang on a reduction.
enum class Repeat : uint8_t { none, cheap, all };
struct StageForms {
  Repeat repeat = Repeat::none;
  // Cumulative windows are scans; else reductions of a window an element.
  bool scans = true;
  // A result that joins many arrays is a stage a part (parts.h); else one map, which asks of every
  // element which part it is of.
  bool parts = true;
};
StagedOrNot build_stage_graph(const Members& members, StageForms forms = {});
// Divides reduction digits of a stage into (parts, rest): partials, and a stage that combines them.
// Returns the new graph; parts divides the extent of the stage's first red digit.
StageGraph split_reduction(const StageGraph& graph, StageId stage, int64_t parts);

// Digits that are neighbours wherever they occur become one.
void merge_digits(StageGraph* graph);

// Merges neighbouring out digits of a graph of maps over one space, where every access allows it:
// 256x36 becomes 9216, full vectors instead of 256 times two and a tail (stages.md §7).
void flatten_digits(StageGraph* graph);

std::string to_string(const StageGraph& graph);

}  // namespace heddle::stage
