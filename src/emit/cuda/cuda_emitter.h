// Private to emit/cuda: the walk over a kernel. statements.cc writes statements, expressions.cc
// their expressions, operators.cc single operators.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "emit/cuda/cuda_text.h"
#include "emit/cuda/ranges.h"
#include "kernel/kernel.h"
#include "kernel/lanes.h"

namespace heddle::emit::cuda {

using kernel::BufferId;
using kernel::Expr;
using kernel::ExprId;
using kernel::Op;
using kernel::Stmt;
using kernel::StmtKind;
using kernel::VarId;
using tensor::Type;

class CudaEmitter {
 public:
  // `apart`: no two global buffers share memory.
  CudaEmitter(const kernel::Kernel& kernel, const target::Target& target, bool apart);
  Result<CudaText> run();

 private:
  friend class WidePlanner;
  // wide.cc: accesses of several elements at once: loads by the statement before which they are
  // placed, stores by statement.
  struct WideLoad {
    BufferId buffer;
    ExprId index;  // of the first element
    std::vector<ExprId> loads;
  };
  struct WideStore {
    ExprId index;  // of the first element
    int count = 0, place = 0;
    bool first = false, last = false;  // in the order of statements
    int key = 0;                       // the same for all elements of one wide store
  };
  struct WidePlan {
    std::map<size_t, std::vector<WideLoad>> loads;
    std::map<size_t, WideStore> stores;
    int groups = 0;  // of stores
  };
  WidePlan plan_wide(const std::vector<Stmt>& body) const;
  void emit_wide_load(const WideLoad& wide);
  void emit_wide_store(const Stmt& stmt, const WideStore& wide);
  std::string pack_type(const kernel::Buffer& buffer, size_t count);

  // statements.cc
  void emit_phase(size_t number);
  void emit_group(const kernel::Group& group, int64_t first_block);
  void emit_scratch();
  void emit_registers(const kernel::Group& group);
  void emit_block(const std::vector<Stmt>& body);
  void emit_stmt(const Stmt& stmt);
  void emit_loop(const Stmt& stmt);
  void emit_thread_loop(const Stmt& stmt);
  const Stmt* threads_of(const Stmt& stmt) const;
  void emit_loop_of_threads(const Stmt& stmt, const Stmt& threads);
  void emit_store(const Stmt& stmt);
  void emit_async_copy(const Stmt& stmt);
  void emit_mma(const Stmt& stmt);  // mma.cc
  void open(const std::string& head);
  void close();
  void line(const std::string& text);
  void refuse(std::string what);  // the first one counts

  // expressions.cc: statements' expressions, each node once. `prepare` emits the loads and nodes
  // that are used twice.
  void prepare(const Stmt& stmt) { prepare(kernel::expressions(stmt)); }
  void prepare(const std::vector<ExprId>& roots);
  std::string value(ExprId id);  // as written in an expression; prepared before
  std::string make(ExprId id);   // the node itself
  std::string load_text(const Expr& expr);
  std::string element(BufferId buffer, const std::vector<ExprId>& indices);
  std::string stored(const kernel::Buffer& buffer, const std::string& value) const;
  std::string literal(const Expr& expr, bool narrow) const;
  std::string name(VarId var) const { return var_names_[var.index()]; }
  std::string type_of(ExprId id) const;  // int for narrow indices
  bool is_narrow(ExprId id) const;

  // operators.cc
  std::string apply(const Expr& expr, const std::vector<std::string>& operands, bool narrow);
  std::string apply_integer(const Expr& expr, const std::vector<std::string>& operands);
  std::string apply_function(const Expr& expr, const std::string& x, bool wide);
  std::string convert(Type from, Type to, const std::string& x);
  std::string bitcast(Type from, Type to, const std::string& x);
  std::string shuffle(Type type, const std::string& call, const std::string& x, int64_t n);
  std::string helper(const std::string& name) {
    helpers_.insert(name);
    return name;
  }

  const kernel::Kernel& kernel_;
  const target::Target& target_;
  Ranges ranges_;
  std::vector<std::string> var_names_, buffer_names_;
  std::set<std::string> helpers_;
  std::string text_, refused_;
  std::vector<Launch> launches_;
  int depth_ = 0, temporaries_ = 0;
  int threads_ = 0;
  const bool apart_;
  bool in_subgroup_ = false, in_lanes_ = false;
  std::unordered_map<uint32_t, std::string> ready_;  // of the running statement, by ExprId
  std::unordered_map<uint32_t, std::string> wide_;  // loads that are part of a wide load, by ExprId
  std::map<int, std::string> packs_;                // the values of wide stores, by key
};

std::string memory_type(Type type);
std::string c_type(Type type);  // of a value; small floats are held as their bits
// Private to a lane.
inline bool is_register(const kernel::Buffer& buffer) {
  return buffer.space == kernel::Space::reg || buffer.space == kernel::Space::fragment;
}
std::string bare(std::string text);  // without outer parentheses

}  // namespace heddle::emit::cuda
