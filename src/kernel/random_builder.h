// The generator behind random_kernel.h: groups and loops in random_kernel.cc, expressions in
// random_expr.cc.
#pragma once

#include <deque>
#include <initializer_list>

#include "kernel/random_kernel.h"

namespace heddle::kernel {

class RandomBuilder {
 public:
  RandomBuilder(uint64_t seed, const RandomKernelOptions& options);
  RandomKernel run();

 private:
  // An extent, and the number it stands for in this run.
  struct Extent {
    int64_t number = 1;
    int64_t stored = 1;  // as in Buffer::extents
  };
  struct Source {
    BufferId id;
    std::vector<Extent> extents;
    bool readable = false;  // every element is written
    bool own = false;       // only at the task's own leading indices
    bool rough = false;     // holds results of functions: never read
  };
  struct Variable {
    VarId id;
    int64_t low = 0, high = -1;  // s64 with a known range; none where high < low
    bool is_unrolled = false;
  };
  struct Scope {
    std::vector<Variable> vars;
    int lanes = 0;  // running lanes, of a vector loop or below lane()
    bool all_active = true;
    bool below_lane = false;  // outside vector loops, below lane()
    int64_t copies = 1;
  };

  // Drawing.
  uint64_t next();
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }
  template <typename T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<size_t>(below(static_cast<int64_t>(from.size())))];
  }
  Op pick_op(std::initializer_list<Op> ops) {
    return ops.begin()[below(static_cast<int64_t>(ops.size()))];
  }
  Type arithmetic_type();
  Type any_type();  // storage types too
  Extent draw_extent(int64_t low, int64_t high);

  // Buffers (random_kernel.cc).
  Source& add_source(std::deque<Source>& list, std::string name, Type type, Space space,
                     std::vector<Extent> extents, Access access = Access::in, int lanes = 0);
  void add_globals();
  void add_locals();
  void add_scratch(int number);
  void fill_memory();
  void overwrite(const Source& target);  // marks what shares its bytes as unreadable

  // Groups and loops (random_kernel.cc).
  struct Plan {
    std::vector<Extent> grid;
    int lanes = 0;
    std::vector<Source*> outputs, rough;  // the rough ones separately
  };
  void plan_groups();
  Group make_group(Plan& plan);
  void random_section(std::vector<Stmt>& to, Scope& scope, Plan& plan);
  void fill_section(std::vector<Stmt>& to, Source& target, const Scope& scope, bool rough = false);
  void fill_registers(std::vector<Stmt>& to, Source& target, const Scope& scope);
  void work_section(std::vector<Stmt>& to, const Scope& scope);
  void reduce_section(std::vector<Stmt>& to, Scope& scope);

  // Bodies (random_body.cc). `element` is the variable that tells iterations and lanes apart.
  struct Loop {
    Variable var;
    Extent extent;
    Stmt stmt;
  };
  Loop new_loop(LoopKind kind, Extent extent, Scope& scope, int unroll_percent = 0);
  std::vector<Stmt> element_body(Source& target, std::vector<ExprId> leading, Scope scope,
                                 ExprId last, bool rough);
  std::vector<Stmt> work_body(Scope scope, const Loop& element, int depth);
  void work_stmt(std::vector<Stmt>& to, Scope& scope, const Loop& element, int depth);
  bool work_store(std::vector<Stmt>& to, const Scope& scope, const Loop& element);
  ExprId scatter_index(const Scope& scope, const Loop& element, Extent extent);
  void add_let(std::vector<Stmt>& to, Scope& scope);
  void add_prefetch(std::vector<Stmt>& to, const Scope& scope);

  // Expressions (random_expr.cc).
  ExprId expr(Type type, const Scope& scope, int depth);
  ExprId leaf(Type type, const Scope& scope);
  ExprId integer_expr(Type type, const Scope& scope, int depth);
  ExprId float_expr(Type type, const Scope& scope, int depth);
  ExprId pred_expr(const Scope& scope, int depth);
  ExprId storage_expr(Type type, const Scope& scope, int depth);
  ExprId converted(Type type, const Scope& scope, int depth);
  ExprId bits_of(Type type, const Scope& scope, int depth);
  ExprId extent_expr(Extent extent);
  ExprId across_lanes(Type type, const Scope& scope, int depth);
  ExprId plus_zero(ExprId x);
  ExprId literal(Type type);
  ExprId load(Source& source, const Scope& scope);
  ExprId index(Extent extent, const Scope& scope, bool last);
  ExprId any_index(const Scope& scope, int depth);
  ExprId register_index(int64_t extent, const Scope& scope);
  std::vector<Source*> readable(Type type, const Scope& scope);
  ExprId lane_sum(Source& source, const Scope& scope);
  ExprId function(const Scope& scope);

  const RandomKernelOptions& options_;
  uint64_t state_;
  RandomKernel result_;
  Kernel& k_;
  std::vector<std::vector<Plan>> plans_;  // groups by phase
  std::deque<Source> globals_, locals_;   // locals: of the running group
  std::vector<ExprId> place_;             // leading indices of the task's own elements
  int index_depth_ = 0;                   // of expressions that index
  int lanes_ = 4;                         // of the running group's vector loops
};

}  // namespace heddle::kernel
