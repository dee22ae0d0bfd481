// Stage graph: a fusion divided into stages (stages.md §1). Read this header first.
//
// A stage is one sub-root with the elementwise and index operators that follow its schedule. It has
// `out` digits (its value's elements) and `red` digits (the elements that it reduces). A dimension
// of extent 1 has no digit; a dimension that some reshape splits has several. The body is a
// hash-consed expression DAG; its leaves are loads at index expressions over the digits (out digits
// first, then red ones), constants and index values.
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

// The source of a load: an input by its number, or value `value` of a stage.
struct Source {
  int input = -1;  // >= 0: an input
  StageId stage;   // else
  int value = 0;
  bool operator==(const Source&) const = default;
};

struct Load {
  Source source;
  // Of an input: one, the row-major linear index. Of a stage: one per out digit. Run-time atoms are
  // body nodes.
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
  uint64_t bits = 0;                      // constant: in the format of `type`
  index::Expr index;                      // index: the value, converted to `type`
  std::vector<index::Guard> guards;       // guard: pred, all hold
  hlo::Opcode opcode = hlo::Opcode::add;  // op
  const hlo::Instr* instr = nullptr;      // op: for its attributes (compare, reduce-precision)
  std::vector<int> operands;              // op
  bool fast = false;                      // op: in the faster form that a named rewrite allows
};

// A value of a stage. `result`: the body node of one element (reduce: the element to combine).
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
  // conv: the outputs m along a side of a Winograd tile if b is a transformed filter
  // (hlo::winograd_filter), whose load then reads the first point; 0 if b is the filter itself.
  int winograd = 0;
  // scan: the out digit along which it runs. Each element is the `combine` of the body's elements
  // up to it (`down`: from it on), so all of that digit is computed in one place, in order;
  // `exact`: one element after the other, because another order would round differently.
  int scan = -1;
  bool down = false, exact = false;
  // scatter: the body node with the row that an update goes into: out digit 0, which no other node
  // uses. Updates are the red digits; `combine` combines one with the row, null: it replaces the
  // row. values[0].init, a body node over the out digits, is the table; without it the output
  // already holds the table.
  int scatter = -1;
  // Row-major linear index of the value's element over `out`, for the store; of an in-place update:
  // in the array, without the starts.
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
// A start index of an in-place dynamic-update-slice (hlo/in_place.h) in its array.
struct Start {
  const hlo::Instr* value = nullptr;  // a member: scalar arithmetic on inputs and constants
  int64_t limit = 0;                  // clamped to [0, limit]
  int64_t stride = 1;                 // elements of the array
};
struct Output {
  StageId stage;  // if stored in parts: the first one; the others follow it
  int value = 0;
  tensor::Shape shape;
  // The input that the output updates in place: only the stage's elements are stored, at the
  // stage's position plus the starts. -1: all of the output is stored.
  int array = -1;
  std::vector<Start> starts = {};
};

struct StageGraph {
  std::string name;
  std::vector<Stage> stages;  // producers before their readers
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<std::string> rewrites;  // named rewrites used (mark_fast_forms), for the summary
  const Stage& stage(StageId id) const { return stages[id.index()]; }
  int64_t stored_bytes(const Output& output) const;
  bool is_in_parts(int output) const;  // several stages store it
};

// Whether this instruction may be in a fusion at all (place() decides which may be combined).
Decision can_stage(const hlo::Instr& instr);
// The stages of a kernel's members. Refusals have a code of can_stage, or `unknown-map`.
struct StagedOrNot {
  StageGraph graph;
  Decision decision = Decision::yes();
};
// Which values with several readers, or broadcast to many elements, get no separate stage: every
// reader computes them. all: except values of a row that depend on a reduction.
enum class Repeat : uint8_t { none, cheap, all };
struct StageForms {
  Repeat repeat = Repeat::none;
  // Cumulative windows are scans; else each element is a reduction of its window.
  bool scans = true;
  // A result that joins many arrays is one stage per part (parts.h); else one map, which selects
  // the part for every element.
  bool parts = true;
};
StagedOrNot build_stage_graph(const Members& members, StageForms forms = {});
// Splits the first red digit of a stage into (parts, rest): a stage of partial results, and one
// that combines them. Returns the new graph; `parts` divides the digit's extent.
StageGraph split_reduction(const StageGraph& graph, StageId stage, int64_t parts);

// Merges digits that are adjacent wherever they occur.
void merge_digits(StageGraph* graph);

// Merges neighbouring out digits of a graph of maps over one space, where every access allows it:
// 256x36 becomes 9216, full vectors instead of 256 times two and a tail (stages.md §7).
void flatten_digits(StageGraph* graph);

std::string to_string(const StageGraph& graph);

}  // namespace heddle::stage
