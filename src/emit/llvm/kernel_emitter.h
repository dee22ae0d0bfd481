// Kernel to LLVM IR, in one walk. Its parts: scope.cc (where code goes), expr.cc and integer.cc
// (values), address.cc, spread.cc, memory.cc and lanes.cc (buffers), stmt.cc and loop.cc
// (statements), phase.cc (functions).
//
// The walk emits each expression once, in the outermost scope where it is computable:
// loop-invariant code is placed before the loop. Loads of `in` buffers may move up through
// straight-line code; other loads stay in their statement. A `straight` scope (a copy of an
// unrolled body) has no block of its own; loops and branches do, and end their parent's block.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "emit/llvm/arith.h"
#include "emit/llvm/isa.h"
#include "emit/llvm/value.h"
#include "kernel/kernel.h"
#include "kernel/linear.h"

namespace heddle::emit {

// The function of a phase, without a body.
llvm::Function* kernel_function(const std::string& kernel, size_t phase, const Isa& isa,
                                llvm::Module& module);

class KernelEmitter {
 public:
  // `is_inner`: its functions are called inside the module only.
  KernelEmitter(const kernel::Kernel& kernel, const Isa& isa, llvm::Module& module,
                bool is_inner = false);
  // Adds the functions <name>_p<phase>. Error: what the CPU back end cannot compile.
  Status run();

 private:
  using Expr = kernel::Expr;
  using ExprId = kernel::ExprId;
  using Stmt = kernel::Stmt;
  using Op = kernel::Op;
  using Block = std::vector<Stmt>;

  enum class ScopeKind { function, loop, straight, branch };
  struct Scope {
    ScopeKind kind;
    // loop, branch: the terminator before it; code of outer scopes goes before that.
    llvm::Instruction* entry = nullptr;
    std::unordered_map<uint32_t, Val> values;  // by ExprId
    std::map<std::tuple<llvm::Value*, int64_t, llvm::Type*>, llvm::Value*> vectors;
    std::map<std::vector<int64_t>, llvm::Value*> pointers;
    std::map<std::vector<int64_t>, llvm::Value*> loads;  // of `in` buffers, by place
  };
  // The binding of a variable: a number, a loop's value plus an offset, a pure expression that may
  // be looked through, or a value.
  struct Binding {
    enum class Kind { none, constant, loop, expression, value } kind = Kind::none;
    int64_t offset = 0;
    Val base;
    ExprId expression;
    int level = 0;
  };
  // The terms of a kernel::Linear with their values, in bytes.
  struct Term {
    std::vector<int64_t> key;  // identifies the atom, to find equal ones
    Val atom;
    int64_t coefficient;
    std::vector<int64_t> dims;  // run-time dimensions that multiply it, sorted
  };
  struct Offset {
    std::vector<Term> terms;
    int64_t constant = 0;
    std::vector<int64_t> spread;  // by lane, added to the terms; empty: none
    int level = 0;                // of all parts: copies of unrolled bodies differ in the constant
  };
  // Lane l's element is at pointer + l * lane_bytes, plus offsets[l] bytes or elements. If the
  // offsets are constants, `spread` has them in elements; then the pointer is `from` elements after
  // a multiple of `granule`, and the buffer ends at a multiple.
  struct Address {
    llvm::Value* pointer = nullptr;
    int64_t lane_bytes = 0;
    llvm::Value* offsets = nullptr;
    bool offsets_in_bytes = false;
    std::vector<int64_t> spread;
    int64_t granule = 1, from = 0;
    int64_t alignment = 1;          // of the pointer
    int64_t element_alignment = 1;  // of every lane's element
    int level = 0;                  // of the expression
    int place_level = 0;            // of the terms alone, without the constant
    bool pinned = false;
    std::vector<int64_t> place;  // equal keys are equal addresses, while the level's scope lasts
  };

  // scope.cc
  class At;      // RAII: the insertion point for code of a level
  class Inside;  // RAII: one more scope
  int top() const { return static_cast<int>(scopes_.size()) - 1; }
  int innermost(bool (*wanted)(ScopeKind)) const;
  int branch_level() const;  // of the innermost branch: pure code does not leave it
  int block_level() const;   // of the innermost scope with a block: `in` loads do not leave it
  const Val* find(ExprId id) const;
  void remember(ExprId id, const Val& value);
  Val join(std::initializer_list<const Val*> operands) const;  // level and pinned of a result
  template <typename... Args>
  void fail(fmt::format_string<Args...> format, Args&&... args) {
    if (error_.empty()) error_ = fmt::format(format, std::forward<Args>(args)...);
  }

  // expr.cc
  Val eval(ExprId id);
  void eval_below(ExprId id);  // subexpressions of a deep one first, so that recursion stays flat
  Val compute(const Expr& expr);
  Val constant(Type type, int64_t bits) const;
  Val variable(const Expr& expr);
  Val dimension(int64_t which);
  Val conversion(const Expr& expr);
  // Of f32 to narrow integers (narrow.cc).
  ExprId unclamped(ExprId x, Type to) const;
  std::optional<Val> rounded_conversion(ExprId x, Type to);
  Val bitcast(const Expr& expr);
  Val selection(const Expr& expr);
  Val lane(const Expr& expr);
  Val shuffle(const Expr& expr);
  Val floating(const Expr& expr);
  Val dot(const Expr& expr);
  Val poison(Type type);
  llvm::Value* vector(const Val& x, llvm::Type* element);  // <W x element>, from any form
  llvm::Value* operand(const Val& x, Type type, bool as_vector, bool narrow = false);
  int lanes_read(ExprId id) const;

  // integer.cc
  Val integer(const Expr& expr);
  Val integer_unary(const Expr& expr);
  bool linear_result(const Expr& expr, const Val& a, const Val& b, Val& result);
  bool linear_division(Op op, const Val& a, const Val& b, Val& result);
  bool known_remainders(const Val& a, int64_t d, Val& result);
  bool known_comparison(Op op, const Val& a, const Val& b, bool& result) const;
  Bounds result_bounds(Op op, Type type, const Val& a, const Val& b) const;

  // address.cc
  void add_atom(Offset& sum, const kernel::Linear::Term& term);
  void add_term(Offset& sum, std::vector<int64_t> key, const Val& atom, int64_t coefficient,
                const std::vector<int64_t>& dims);
  Offset byte_offset(const kernel::Buffer& buffer, const ExprId* indices);
  void split_by_lanes(Offset& sum, std::vector<Term>& uniform, std::vector<Term>& varying,
                      Address& address);
  Address address(kernel::BufferId id, const ExprId* indices);
  llvm::Value* base_pointer(kernel::BufferId id);
  static void append_key(const Term& term, std::vector<int64_t>& key);
  llvm::Value* uniform_pointer(kernel::BufferId id, const std::vector<Term>& terms);
  llvm::Value* product(const Term& term, bool narrow);
  void lane_offsets(const std::vector<Term>& varying, int64_t elem_bytes, Address& address);
  static int64_t element_alignment(const kernel::Buffer& buffer);
  int64_t known_alignment(const kernel::Buffer& buffer, const Offset& sum) const;

  // spread.cc
  bool spread_division(ExprId id, int64_t scale, Offset& sum);
  void spread_offsets(const kernel::Buffer& buffer, const Offset& sum, Address& address);
  llvm::Value* load_spread(Type type, const Address& address, llvm::Value* mask,
                           llvm::Value* other);
  llvm::Value* load_halves(Type type, const Address& address, llvm::Value* mask, int64_t low,
                           int64_t high);

  // memory.cc
  Val load(const Expr& expr);
  Val load_register(const Expr& expr);
  struct SplitMask {
    llvm::Value *uniform = nullptr, *pattern = nullptr;  // null: always, all lanes
  };
  std::optional<SplitMask> split_mask(ExprId id);
  llvm::Value* if_else(llvm::Value* condition, llvm::Value* other, const std::function<llvm::Value*()>& read);
  Val load_uniform(const Expr& expr, const Address& address, const Val* mask, const Val* other);
  void store(const Stmt& stmt);
  void store_register(const Stmt& stmt);
  void prefetch(const Stmt& stmt);
  void copy(const Stmt& stmt);
  llvm::AllocaInst* register_slot(kernel::BufferId id, const ExprId* indices);
  llvm::Value* to_memory(Type type, llvm::Value* value);
  llvm::Value* from_memory(Type type, llvm::Value* value);
  llvm::Value* all_lanes(llvm::Value* mask);  // mask, or all true where it is null

  // fragments.cc
  int tile_number(kernel::BufferId id, const ExprId* indices);
  void mma(const Stmt& stmt);
  void move_fragment(const Stmt& stmt);
  void configure_tiles();

  // lanes.cc
  llvm::Value* lane_pointers(const Address& address, Type type);
  llvm::Value* lane_pointer(const Address& address, Type type, int lane);
  bool has_gather(Type type) const;
  llvm::Value* load_lanes(Type type, const Address& address, llvm::Value* mask, llvm::Value* other);
  llvm::Value* load_consecutive(Type type, const Address& address, llvm::Value* mask,
                                llvm::Value* other);
  llvm::Value* load_strided(Type type, const Address& address, int stride);
  llvm::Value* load_each(Type type, const Address& address, llvm::Value* mask, llvm::Value* other);
  void store_lanes(const Stmt& stmt, Type type, const Address& address, llvm::Value* value,
                   llvm::Value* mask);

  // stmt.cc
  void block(const Block& body);
  void statement(const Stmt& stmt);
  void let(const Stmt& stmt);
  void branch(const Stmt& stmt);
  void masked(const Block& body, llvm::Value* mask);
  void guarded(llvm::Value* condition, const std::function<void()>& body);

  // loop.cc
  struct Range {  // of a loop that is emitted: start, start + step, … below end
    llvm::Value *start, *end;
    int64_t step = 1;
    Bounds bounds;  // of the variable
    bool may_be_empty = false;
  };
  void emit_loop(const Range& range, const std::function<void(const Val&)>& body);
  void serial_loop(const Stmt& stmt);
  void unrolled_loop(const Stmt& stmt);
  bool mixes_copies(const Stmt& stmt) const;
  void vector_loop(const Stmt& stmt);
  int64_t vectors_a_step(const Stmt& stmt, std::optional<int64_t> full) const;
  void vector_main(const Stmt& stmt, const Val& extent, llvm::Value* full);
  void vector_body(const Stmt& stmt, const Val& base, int64_t offset, llvm::Value* mask);
  void copy_of_body(const Stmt& stmt, Binding binding);

  // phase.cc
  // Per function: LLVM's time grows with the square of a block's size.
  static constexpr unsigned kMaxInstructions = 1 << 15;
  void phase(size_t index);
  void phase_that_fits(size_t index);  // with fewer interleaved copies if it is too long
  bool check_length();                 // false: it has failed
  void group(const kernel::Group& group, llvm::Value* first, llvm::Value* last);
  void task(const kernel::Group& group, const Val& number, const std::vector<Val>& extents);
  void promote_registers();

  const kernel::Kernel& kernel_;
  const Isa& isa_;
  const bool is_inner_;
  llvm::Module& module_;
  llvm::IRBuilder<> b_;
  MathContext math_;
  std::string error_;

  std::vector<int> heights_;  // of expressions, by ExprId
  std::vector<Scope> scopes_;
  std::vector<Binding> bindings_;  // by VarId
  std::unordered_map<uint32_t, Val> statement_values_;
  std::vector<std::vector<llvm::AllocaInst*>> registers_;  // by BufferId, element
  std::vector<Val> dims_;                                  // of the current function
  llvm::Function* function_ = nullptr;
  int lanes_ = 0;                // of the enclosing vector loop; 0: none
  llvm::Value* mask_ = nullptr;  // active lanes; null: all
  int depth_ = 0;
  int64_t statements_ = 0;
  int64_t side_by_side_ = 1;  // most long chains that are interleaved
  bool is_too_long_ = false;
  bool uses_tiles_ = false;
  std::map<uint32_t, int64_t> first_tiles_;  // by fragment, of the current group
  int64_t next_tile_ = 0;
  bool streams_ = false;  // stores past the caches: a fence at the end
};

// RAII: builder positions.
class KernelEmitter::At {
 public:
  At(KernelEmitter& emitter, int level);

 private:
  llvm::IRBuilder<>::InsertPointGuard guard_;
};

class KernelEmitter::Inside {
 public:
  Inside(KernelEmitter& emitter, ScopeKind kind, llvm::Instruction* entry = nullptr);
  ~Inside();
  Inside(const Inside&) = delete;

 private:
  KernelEmitter& emitter_;
};

}  // namespace heddle::emit
