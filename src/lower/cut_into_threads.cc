// Vector loops become loops over the threads of a subgroup or block, of at most one iteration per
// thread: longer loops are cut.
#include "kernel/rewriter.h"
#include "lower/most.h"
#include "lower/passes.h"

namespace heddle::lower {

using kernel::ExprId;
using kernel::Kernel;
using kernel::LoopKind;
using kernel::Op;
using kernel::Rewriter;
using kernel::Stmt;
using kernel::StmtKind;
using kernel::VarId;
using Block = std::vector<Stmt>;

namespace {

class ThreadCutter {
 public:
  ThreadCutter(Kernel* kernel, int lanes) : k_(*kernel), lanes_(lanes) {}

  bool run() {
    Rewriter rewriter(&k_);
    rewriter.statement = [&](const Stmt&, Stmt made, Block* to) { put(std::move(made), to); };
    rewriter.run();
    return changed_;
  }

 private:
  void put(Stmt stmt, Block* to) {
    if (stmt.kind != StmtKind::loop || stmt.loop != LoopKind::vector) {
      to->push_back(std::move(stmt));
      return;
    }
    changed_ = true;
    HEDDLE_CHECK(stmt.lanes == lanes_, "a loop of {} lanes among threads", stmt.lanes);
    stmt.loop = LoopKind::thread;
    const kernel::Expr extent = k_.expr(stmt.extent);
    const int64_t length = most(k_, stmt.extent).value_or(0);
    if (length <= lanes_)
      to->push_back(std::move(stmt));
    else if (extent.op == Op::constant)
      add_cut(std::move(stmt), extent.imm, to);
    else
      add_cut_at_edge(std::move(stmt), length, to);
  }

  // An extent that an edge shortens: serial k { thread l min(extent - k·lanes, lanes) { … } }.
  void add_cut_at_edge(Stmt loop, int64_t length, Block* to) {
    const VarId k = k_.add_var("k");
    const ExprId first = k_.binary(Op::mul, k_.ref(k), k_.constant(lanes_));
    const ExprId left = k_.binary(Op::sub, loop.extent, first);
    const ExprId extent =
        k_.binary(Op::max, k_.binary(Op::min, left, k_.constant(lanes_)), k_.constant(int64_t{0}));
    add_named(&loop, first, lanes_);
    loop.extent = extent;
    Block inside;
    inside.push_back(std::move(loop));
    to->push_back(make_loop(LoopKind::serial, k, k_.constant((length + lanes_ - 1) / lanes_),
                            std::move(inside)));
  }

  // serial k { thread l { let i = k·lanes + l; … } }, and the rest.
  void add_cut(Stmt loop, int64_t extent, Block* to) {
    const int64_t whole = extent / lanes_, rest = extent % lanes_;
    Block tail;
    if (rest > 0) {
      Rewriter copy(&k_);
      copy.fresh = true;
      tail = copy.block({loop});
      add_named(&tail[0], k_.constant(whole * lanes_), rest);
    }
    VarId k = k_.add_var("k");
    add_named(&loop, k_.binary(Op::mul, k_.ref(k), k_.constant(lanes_)), lanes_);
    Block inside;
    inside.push_back(std::move(loop));
    to->push_back(make_loop(LoopKind::serial, k, k_.constant(whole), std::move(inside)));
    for (Stmt& stmt : tail) to->push_back(std::move(stmt));
  }

  void add_named(Stmt* loop, ExprId first, int64_t extent) {
    const VarId index = loop->var;
    loop->var = k_.add_var("l");
    loop->extent = k_.constant(extent);
    loop->body.insert(loop->body.begin(),
                      make_let(index, k_.binary(Op::add, first, k_.ref(loop->var))));
  }

  Kernel& k_;
  int lanes_;
  bool changed_ = false;
};

}  // namespace

Result<bool> cut_into_threads(Kernel& kernel, const Context& context) {
  return ThreadCutter(&kernel, context.lanes).run();
}

}  // namespace heddle::lower
