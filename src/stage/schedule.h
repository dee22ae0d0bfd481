// Schedule: where every stage of a graph is computed and kept (stages.md §2). Read with
// stage_graph.h; footprint.h infers regions and spaces from it, place.h makes one.
//
//   schedule = phases of groups; a group = loops around rows; a row = joined stage instances.
//
// An outer loop drives digits of stages: `{stage, digit, by}` means that iteration i handles
// elements [i·by, (i+1)·by) of that digit (the last one may be shorter). Stages that are not driven
// follow by need. Inside these loops, a row has loops over the rest of its region.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "kernel/mma.h"
#include "stage/gemm_shape.h"
#include "stage/stage_graph.h"
#include "stage/winograd_shape.h"

namespace heddle::stage {

// serial: in order. unrolled: fully, so that register names are static. vector: SIMD lanes.
// parallel: tasks of the workers (CPU). thread, subgroup, block: the GPU's.
enum class LoopKind : uint8_t { serial, unrolled, vector, thread, subgroup, block, parallel };
// reg: registers; fragment: registers of a matrix instruction; scratch: memory of the task; global:
// memory. Derived, narrowest first.
enum class Space : uint8_t { reg, fragment, scratch, global };

struct Drive {
  StageId stage;
  int digit = 0;  // out digits, then red ones
  int64_t by = 1;
};

// A loop of a row: over digit digits[i] of joined instance i, in steps of `by`; -1: the instance
// comes after the loop, which drives a reduced digit of the first instance.
struct Own {
  LoopKind kind = LoopKind::serial;
  std::vector<int> digits;
  int64_t by = 1;
};

// A row of plain loops. `mma`: of a window with words of k (window_shape.h), the instruction that
// multiplies them; the innermost unrolled digit of a group's inputs then counts words.
struct Nest {
  const kernel::MmaDescriptor* mma = kernel::plain_mma();
};

// A map whose squares of lanes by lanes are read along one digit, transposed in registers and
// written along another (turn.h).
struct Turn {
  int across = -1;  // the out digit along which the output is contiguous: the lanes of the store
  int along = -1;   // the out digit along which the load is contiguous
  int load = -1;    // the load that is transposed
};

using RowKind = std::variant<Nest, Turn, GemmTile, WinogradTile>;

struct Row {
  std::vector<StageId> joined;
  std::vector<Own> own;  // outermost first; none for a tile
  RowKind kind;
  // On a GPU: adjacent elements of the innermost loop that a thread computes, so that one access
  // may move them. It divides that loop; reductions keep `width` sums.
  int width = 1;

  const GemmTile* gemm() const { return std::get_if<GemmTile>(&kind); }
  const WinogradTile* winograd() const { return std::get_if<WinogradTile>(&kind); }
  const Turn* turn() const { return std::get_if<Turn>(&kind); }
  const Nest* nest() const { return std::get_if<Nest>(&kind); }
  bool is_tile() const { return gemm() || winograd(); }
};

struct Loop {
  std::string var;
  LoopKind kind = LoopKind::serial;
  int64_t trips = 1;
  std::vector<Drive> drives;
  std::vector<int> body;  // numbers of nodes
};

using ScheduleNode = std::variant<Loop, Row>;

struct Group {
  std::vector<int> body;
  int lanes = 1;  // in vector loops
};

struct Schedule {
  std::string name, target;
  std::vector<ScheduleNode> nodes;
  std::vector<std::vector<Group>> phases;
  int64_t count_tasks() const;  // of parallel loops, all phases together
};

std::string_view loop_kind_name(LoopKind kind);
std::string_view space_name(Space space);
// The grammar of stages.md §6; spaces are not part of it here (they are derived).
std::string to_string(const Schedule& schedule, const StageGraph& graph);
// Stages and digits are named as in `graph`. For a tile the text has the record only, not the
// shape, which is matched when a fusion is placed. Errors: "schedule, line N: got, wanted".
Result<Schedule> parse_schedule(std::string_view text, const StageGraph& graph);

}  // namespace heddle::stage
