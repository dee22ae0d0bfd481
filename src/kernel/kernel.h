// Kernel: the loop IR between schedules and machine code. Read this header first.
//
// A kernel has buffers, and a list of phases; a phase is a list of groups {grid, body}. Groups of
// a phase are independent of each other, and so are the tasks of a group (the points of its grid);
// a phase starts when the one before it has ended. By the kernel ABI (architecture.md) a phase is
// one function
//     void <name>_p<phase>(void* const* buffers, const int64_t* dims,
//                          int64_t begin, int64_t end, void* scratch)
// that runs tasks [begin, end) of the phase: the groups' grids one after the other, each row-major
// over its extents. `buffers` holds the global buffers in order of declaration; `dims` the run-time
// extents; `scratch` points to scratch_bytes bytes, private to the worker, 64-byte aligned.
//
// Semantics
// - Values have an element type: pred, s8..s64, u8..u64, f32, f64 in arithmetic. f16, bf16 and the
//   f8 types can be loaded, stored and converted, nothing else. Indices are s64.
// - Integer arithmetic wraps; div by zero gives all ones, rem by zero the dividend; div and rem
//   truncate, floor_div and floor_mod floor (divisor > 0). Shifts by the width or more give 0 (or
//   the sign).
// - Floating point is IEEE, round to nearest even, subnormals kept. Nothing is contracted or
//   reassociated: fma is written fma. max and min give NaN if either side is NaN, and +0 > -0 is
//   not promised. Functions (exp, tanh, …) have the ulp bounds of docs/numerics.md; the _fast forms
//   have the wider ones written there.
// - A `vector` loop is run in lanes: iterations [k·W, (k+1)·W) for lane count W run in lockstep,
//   statement by statement; in a last, partial iteration the lanes beyond the extent are inactive
//   (they neither load nor store nor change registers). vector and thread loops do not nest in each
//   other's kind.
// - A `reg` buffer of lanes 0 is uniform: one copy per task. With lanes W it has one copy per lane:
//   inside a vector loop (of W lanes) loads and stores access the lane's own copy; outside it is
//   read by lane() only. Its indices must be constants once the unrolled loops are unrolled.
//   Registers live as long as the task.
// - In a vector loop a value is uniform or varying; a uniform store in a vector loop is an error.
//   lane(x, i) is the value of lane i for all; shuffle_xor(x, m) in lane l is x of lane l ^ m. Both
//   evaluate x in all lanes, so they are allowed only where all lanes are active (extent a multiple
//   of W).
// - Scratch is uninitialised at the start of a task. Lanes of one vector loop that read scratch or
//   memory another lane wrote need that store to be an earlier statement.
// - `let` names a value; each name is assigned once, at its `let`, and is visible to the end of
//   its block. Loads happen at the statement that contains them, in operand order, once per node.
//
// - A statement evaluates all its operands in all active lanes, whatever its own mask says: a load
//   that must not happen must itself be guarded (load_if) or be in a branch.
// - Two lanes may not store one element in one statement.
// - async_copy copies `count` elements along the last index and is a pending write: until an
//   async_wait has completed it, the destination may be neither read nor written and the source not
//   written. async_wait n closes the group of copies begun since the wait before it, and waits
//   until at most n closed groups are pending. All are waited for before the task ends.
// - Fragments are registers; mma.h describes their use and their moves.
//
// Invariants (verify.h): 1. operand types fit their op, values their buffers and variables.
// 2. variables are in scope. 3. index counts match buffer ranks. 4. reg and fragment indices are
// constants after unrolling, inside the extents. 5. lanes agree with the enclosing vector loop.
// 6. `in` buffers are not stored, `out` buffers not read before written (the interpreter checks).
// 7. scratch buffers lie inside scratch_bytes, aligned. 8. parallel and block loops only as a
// group's grid, its extents of constants and dims. 9. unrolled extents are constants, at most 4096
// copies in all. 10. names are identifiers and unique, and a variable is bound once. 11. globals
// come first and only they have run-time extents. 12. statements are complete, levels and counts in
// range. 13. async copies go from global to scratch, of one type. 14. mma as in mma.def. 16. a
// kernel with inner kernels has only global buffers and tables, and only its phases may be in
// order; rows fit the inner kernel, which has no inner kernel itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/check.h"
#include "base/ids.h"
#include "tensor/type.h"

namespace heddle::kernel {

using tensor::Type;
using ExprId = Id<struct ExprTag>;
using VarId = Id<struct VarTag>;
using BufferId = Id<struct BufferTag>;

// One per row of ops.def, which also drives text, parser, verifier, interpreter and emitters.
enum class Op : uint8_t {
#define HEDDLE_KERNEL_OP(name, ...) name,
#include "kernel/ops.def"
};

struct Expr {
  Op op;
  Type type;                     // of the value
  std::vector<ExprId> operands;  // load: indices, then mask and other where guarded
  int64_t imm = 0;               // const: the bits (floats too, in the type's own format);
                                 // dim: which; lane, shuffle_xor: lane number or mask; dot: row
                                 // of mma_table()
  VarId var;                     // var
  BufferId buffer;               // load
  bool guarded = false;          // load: reads only where mask is true, else yields `other`
  bool operator==(const Expr&) const = default;
};

enum class Space : uint8_t { reg, fragment, scratch, global };
enum class Access : uint8_t { in, out, inout };  // global buffers

struct Buffer {
  std::string name;
  Type type;
  // Row-major extents. An extent is a constant, or -1-k for run-time dimension k.
  std::vector<int64_t> extents;
  Space space = Space::global;
  Access access = Access::in;  // global
  int lanes = 0;               // reg: copies, 0 uniform
  int64_t offset_bytes = 0;    // scratch: its offset; buffers may share bytes
  int64_t aligned_bytes = 0;   // global: alignment that the caller promises; 0: the element's
};

struct Var {
  std::string name;
  Type type = Type::s64;
};

enum class LoopKind : uint8_t { serial, unrolled, vector, thread, subgroup, block, parallel };

enum class StmtKind : uint8_t {
  loop,        // loop_kind var extent [lanes] [unroll] { body }
  let,         // var = value
  store,       // buffer[indices] = value [if mask] [streaming]
  branch,      // if value { body } else { otherwise }: value uniform, or varying in a vector loop
  barrier,     // of the block; a no-op where a task has one subgroup
  prefetch,    // buffer[indices], level 1..3 (the cache that should hold it)
  async_copy,  // buffer[indices] (scratch) <- source[source_indices], `count` elements
  async_wait,  // until at most `count` groups of async copies are pending
  mma,         // matrix instruction `name` (mma.def): fragments d, a, b, c in `fragments`
  fragment_clear,  // fragments[0] at source_indices = 0
  fragment_load,   // fragments[0] at source_indices <- buffer[indices], in `count` rows
  fragment_store,  // buffer[indices] <- fragments[0] at source_indices, in `count` rows
};

struct Stmt {
  StmtKind kind;
  LoopKind loop = LoopKind::serial;
  VarId var;       // loop, let
  ExprId extent;   // loop: trips; variable runs 0..extent-1
  int lanes = 0;   // vector, thread: W
  int unroll = 1;  // serial: bodies per emitted iteration (a hint; same results)
  std::vector<Stmt> body, otherwise;
  BufferId buffer, source;
  std::vector<ExprId> indices, source_indices;
  ExprId value, mask;      // mask invalid: always
  bool streaming = false;  // store past the caches
  int level = 2;           // prefetch
  bool for_write = false;  // prefetch
  int64_t count = 0;       // async; fragments: rows
  int64_t stride = 0;      // fragments: elements of `buffer` between the starts of rows
  std::string name;        // mma
  std::vector<BufferId> fragments;
};

struct GridDim {
  VarId var;
  ExprId extent;  // constants and dims only
};

// A row of a table: the arguments of an inner kernel.
struct Instance {
  std::vector<BufferId> buffers;  // of this kernel, for the inner kernel's globals in ABI order
  std::vector<int64_t> dims;      // the inner kernel's run-time dimensions
  bool operator==(const Instance&) const = default;
};

struct Group {
  std::vector<GridDim> grid;  // parallel (CPU) or block (GPU) loops, outermost first
  int block_threads = 1;      // GPU: threads per block
  std::vector<Stmt> body;
  // Instead of a grid and a body, a table: a phase of an inner kernel (Kernel::inner) is run once
  // for each row; the tasks of all rows are numbered in order (stages.md §2, instances table).
  int inner = -1, inner_phase = 0;
  std::vector<Instance> table;
  bool is_table() const { return inner >= 0; }
};

struct Phase {
  std::vector<Group> groups;
  // The phase is one task: the groups' tasks run in order, each sees the stores of those before.
  bool in_order = false;
};

class Kernel {
 public:
  std::string name;
  std::string target;             // name of the target it was made for
  std::string strategy;           // that placed it (schedule/strategies.def); may be empty
  std::string schedule;           // text of the schedule it came from; may be empty
  std::vector<std::string> dims;  // names of the run-time dimensions, in ABI order
  std::vector<Buffer> buffers;    // globals first, in ABI order
  std::vector<Var> vars;
  // Kernels whose phases the groups run, on this kernel's buffers. If any, all groups are tables.
  std::vector<Kernel> inner;
  std::vector<Phase> phases;
  int64_t scratch_bytes = 0;

  const Expr& expr(ExprId id) const { return exprs_[id.index()]; }
  const std::vector<Expr>& exprs() const { return exprs_; }
  const Buffer& buffer(BufferId id) const { return buffers[id.index()]; }
  const Var& var(VarId id) const { return vars[id.index()]; }
  int64_t global_count() const;

  // Hash-consed: an equal node gives the same id. Integer operations on constants fold, and
  // x + 0, x * 1, x * 0, x / 1, nested constant adds simplify; floating point is left alone.
  ExprId add(Expr expr);
  BufferId add_buffer(Buffer buffer);  // name made an identifier, and unique
  // Scratch after all existing scratch, aligned (lower's share_scratch lets buffers share bytes).
  BufferId add_scratch(std::string name, Type type, int64_t elems);
  VarId add_var(std::string_view name, Type type = Type::s64);  // name made unique

  // Shorthands.
  ExprId constant(int64_t value) { return add({Op::constant, Type::s64, {}, value}); }
  ExprId constant(Type type, double value);  // rounded to the type
  ExprId ref(VarId var) { return add({Op::var, vars[var.index()].type, {}, 0, var}); }
  ExprId dim(int64_t which) { return add({Op::dim, Type::s64, {}, which}); }
  ExprId unary(Op op, ExprId x) { return add({op, expr(x).type, {x}}); }
  ExprId binary(Op op, ExprId a, ExprId b) { return add({op, expr(a).type, {a, b}}); }
  ExprId compare(Op op, ExprId a, ExprId b) { return add({op, Type::pred, {a, b}}); }
  ExprId select(ExprId c, ExprId a, ExprId b) { return add({Op::select, expr(a).type, {c, a, b}}); }
  ExprId fma(ExprId a, ExprId b, ExprId c) { return add({Op::fma, expr(a).type, {a, b, c}}); }
  ExprId convert(ExprId x, Type type);  // x itself where the type is equal
  ExprId load(BufferId buffer, std::vector<ExprId> indices);
  ExprId load_if(BufferId buffer, std::vector<ExprId> indices, ExprId mask, ExprId other);

 private:
  std::string unique_name(std::string_view wanted);

  std::vector<Expr> exprs_;  // operands before their users
  std::unordered_map<uint64_t, std::vector<uint32_t>> interned_;
  // Names taken so far; the counts: how many of dims, buffers and vars are in it.
  std::unordered_set<std::string> names_;
  size_t named_dims_ = 0, named_buffers_ = 0, named_vars_ = 0;
  std::unordered_map<std::string, int64_t> suffixes_;
};

// Bytes rounded up to the alignment of scratch.
constexpr int64_t aligned_scratch(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// Whether they are one buffer, or scratch buffers with common bytes.
bool share_bytes(const Kernel& kernel, BufferId a, BufferId b);

// Statements.
Stmt make_loop(LoopKind kind, VarId var, ExprId extent, std::vector<Stmt> body, int lanes = 0,
               int unroll = 1);
Stmt make_let(VarId var, ExprId value);
Stmt make_store(BufferId buffer, std::vector<ExprId> indices, ExprId value, ExprId mask = {});
Stmt make_if(ExprId condition, std::vector<Stmt> then, std::vector<Stmt> otherwise = {});

// The valid expressions of the statement itself, without its body.
std::vector<ExprId> expressions(const Stmt& stmt);

// Tasks of a phase (the sum over its groups), with the run-time dimensions bound.
int64_t task_count(const Kernel& kernel, const Phase& phase, const std::vector<int64_t>& dims);

// The value of an expression of constants, dims and integer operations on them.
int64_t evaluate_extent(const Kernel& kernel, ExprId extent, const std::vector<int64_t>& dims);

std::string_view op_text(Op op);  // the name, without the underscore of not_, and_, or_, xor_
int op_operands(Op op);

}  // namespace heddle::kernel
