// Private to stitch: the state of one kernel under construction.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernel/kernel.h"
#include "schedule/place.h"
#include "stitch/stitch.h"

namespace heddle::stitch {

using index::Expr;
using kernel::BufferId;
using kernel::ExprId;
using kernel::LoopKind;
using kernel::Op;
using kernel::Stmt;
using kernel::VarId;
using stage::Node;
using stage::Row;
using stage::Stage;
using stage::StageId;
using tensor::Type;
using Block = std::vector<Stmt>;

// Scalar arithmetic of HLO in kernel expressions (arithmetic.cc). f16 and bf16 are computed in f32
// and rounded after each operator, unless `type` is f32.
ExprId emit_op(kernel::Kernel* kernel, hlo::Opcode opcode, Type type, const hlo::Instr* instr,
               const std::vector<ExprId>& operands, bool fast = false);
ExprId emit_constant(kernel::Kernel* kernel, Type type, uint64_t bits);
// The elements of a word of this type (kernel/mma.h), the first in its lowest bits.
ExprId emit_word(kernel::Kernel* kernel, Type type, const std::vector<ExprId>& parts);
// x / y in f32, correctly rounded except ties within 2^-20 ulp and subnormal results. Terms that
// depend on y alone are computed once where lanes share y.
ExprId emit_shared_quotient(kernel::Kernel* kernel, ExprId x, ExprId y);
// The type that a value of `type` accumulates in: f32 for f16 and bf16.
Type accumulation_type(Type type);
// A combine of a reduction applied to (accumulators, elements), both in accumulation types.
std::vector<ExprId> emit_combine(kernel::Kernel* kernel, const hlo::Computation& combine,
                                 const std::vector<ExprId>& arguments);
// The neutral start of a combine of one operator; nullopt: start from the initial value.
std::optional<ExprId> neutral_start(kernel::Kernel* kernel, const hlo::Computation& combine,
                                    Type type);

// Transposes a square: vector i's lane j becomes vector j's lane i; as many vectors as lanes, a
// power of two. `lane_number`: the lane (turns.cc).
void turn(kernel::Kernel* kernel, std::vector<ExprId>* square, ExprId lane_number, Type type,
          std::vector<Stmt>* block);

// Where the readers of a stage find its value.
struct Home {
  enum class Kind { none, current, uniform, buffer } kind = Kind::none;
  ExprId value;         // current (this row's iteration), uniform
  BufferId buffer;      // scratch, workspace or output
  bool whole = false;   // buffer: holds the whole value (else the need at its place)
  bool output = false;  // buffer: addressed by the stage's position
  // buffer, where not empty: element `digits` lies at Σ (digits − origin)·pitch.
  std::vector<Expr> origin = {};
  std::vector<int64_t> pitch = {};
};

class Stitcher {
 public:
  Stitcher(const stage::PlacedFusion& placed, const std::string& name, const target::Target& target,
           const std::vector<bool>& streamed);
  Stitched run();

 private:
  friend class RowEmitter;
  friend class GemmEmitter;
  friend class ChainEmitter;
  friend class PooledEmitter;
  friend class WinogradEmitter;

  void add_buffers();
  bool streams_whole(size_t stage, size_t value) const;
  void emit_node(int number, Block* block);
  ExprId loop_trips(int number);
  void count_phases();

  // Variables: index::Expr digit i of scope expressions is kernel variable scope_[i].
  int add_scope(VarId var, int64_t extent);
  ExprId index_expr(const Expr& x, const std::function<ExprId(int)>& runtime = {});

  // A stage's digits as scope expressions (out, then red), valid while its body is emitted.
  struct Context {
    int stage = 0;
    std::vector<Expr> digits;
    // A stage that no loop drives is evaluated at points of its reader: its loads are guarded where
    // these may be outside the stage (the edge of a pad).
    std::vector<index::Guard> inside;
    std::unordered_map<int, ExprId> memo;
  };
  Context context(int stage, std::vector<Expr> digits);
  ExprId node(Context* context, int number);
  ExprId load(Context* context, const stage::Load& load, Type type);
  ExprId guards(Context* context, const std::vector<index::Guard>& guards);
  ExprId index_in(Context* context, const Expr& x);  // x over the stage's digits
  Expr in_scope(const Context& context, const Expr& x) const;
  // Linear place of a stage's element in the buffer that holds it.
  Expr place_in_buffer(int stage, const Home& home, const std::vector<Expr>& digits) const;
  bool is_filled(int stage, int digit) const;
  void store_value(int stage, int value, const std::vector<Expr>& digits, ExprId x, Block* block);

  const stage::PlacedFusion& placed_;
  const target::Target& target_;
  std::vector<bool> streamed_;  // by output
  Stitched result_;
  kernel::Kernel& kernel_;
  std::vector<BufferId> inputs_, outputs_;
  std::vector<std::vector<Home>> homes_;  // by stage and value
  std::vector<VarId> scope_;
  std::vector<int64_t> scope_extents_;
  std::vector<std::vector<bool>> driven_;  // by stage and out digit: by a loop of the schedule
  std::vector<int> loop_scope_;            // scope number of each schedule loop
  std::vector<index::Guard> assumed_;      // over scope variables: loops run only where they hold
};

// Rows of joined stages (rows.cc).
void emit_row(Stitcher* stitcher, int row, int lanes, Block* block);
// Initialises the accumulators of a loop around a row (sweep.cc).
void emit_row_start(Stitcher* stitcher, int row, int lanes, Block* block);
// A dot by its family; makes groups of its own (gemm.cc).
std::vector<kernel::Group> emit_gemm(Stitcher* stitcher, int row);
// A chain of products and rows, each link a node of the schedule (chain.cc).
std::vector<kernel::Group> emit_chain(Stitcher* stitcher);
// A convolution and the pool after it (pooled.cc).
kernel::Group emit_pooled(Stitcher* stitcher);
// A convolution by Winograd's algorithm (winograd.cc).
kernel::Group emit_winograd(Stitcher* stitcher, int row);

}  // namespace heddle::stitch
