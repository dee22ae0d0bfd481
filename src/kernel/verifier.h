// The implementation of verify() (verify.h): statements in verify.cc, expressions in
// verify_expr.cc.
#pragma once

#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/lanes.h"

namespace heddle::kernel {

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel);
  const std::vector<std::string>& run();  // one line each

 private:
  struct Context {
    int lanes = 0;           // of the enclosing vector or thread loop; 0: none
    bool subgroup = false;   // inside a subgroup loop
    bool all_active = true;  // no lane of it can be off
    int64_t copies = 1;      // product of the enclosing unrolled extents
  };

  template <typename... Args>
  void fail(int invariant, fmt::format_string<Args...> format, Args&&... args) {
    report(invariant, fmt::format(format, std::forward<Args>(args)...));
  }
  void report(int invariant, std::string message);

  // verify.cc
  void check_names();
  void check_buffers();
  void check_buffer(const Buffer& buffer);
  void check_group(const Group& group);
  // verify_table.cc
  void check_inner();
  void check_table(const Group& group);
  void check_row(const Kernel& inner, const Instance& row);
  void check_block(const std::vector<Stmt>& body, const Context& context);
  void check_stmt(const Stmt& stmt, const Context& context);
  void check_loop(const Stmt& stmt, const Context& context);
  void check_thread_loop(const Stmt& stmt, const Context& context);
  void check_let(const Stmt& stmt);
  void check_store(const Stmt& stmt, const Context& context);
  void check_branch(const Stmt& stmt, const Context& context);
  void check_async_copy(const Stmt& stmt, const Context& context);
  void check_mma(const Stmt& stmt, const Context& context);
  void check_fragment(const Stmt& stmt, const Context& context);
  void bind(VarId var);
  void outside_lanes(const Context& context);
  bool known(BufferId id);

  // verify_expr.cc
  void check_expressions(const Stmt& stmt, const Context& context);
  void check_nodes(const std::vector<ExprId>& roots, const Context& context);
  bool complete(const Expr& expr);
  void check_types(const Expr& expr);
  bool check_node_lanes(ExprId id, const Context& context, bool under_lane);
  void check_lane_op(const Expr& expr, const Context& context, bool under_lane);
  void check_operand_lanes(const Expr& expr);
  void check_access(BufferId buffer, const std::vector<ExprId>& indices, size_t want);
  void check_register_index(const Buffer& buffer, size_t axis, ExprId index);
  void check_grid_extent(ExprId extent);

  Type type(ExprId id) const { return kernel_.expr(id).type; }
  int width(ExprId id) const { return widths_.expr[id.index()]; }

  const Kernel& kernel_;
  LaneWidths widths_;
  std::vector<std::string> problems_;
  std::string where_;
  std::vector<bool> visible_, bound_;  // by VarId
  std::vector<int64_t> unrolled_;      // extent by VarId; -1: not the variable of an unrolled loop
  std::vector<VarId> scope_;
  int threads_ = 1;  // of the group
};

}  // namespace heddle::kernel
