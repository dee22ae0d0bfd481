// Vector loops become loops over the threads of a subgroup or block, at most one iteration a
// thread: longer ones are cut.
#include "lower/passes.h"
#include "lower/rewriter.h"

namespace heddle::lower {

using kernel::ExprId;
using kernel::Kernel;
using kernel::LoopKind;
using kernel::Op;
using kernel::Stmt;
using kernel::StmtKind;
using kernel::VarId;
using Block = std::vector<Stmt>;

namespace {

class ThreadCutter {
 public:
  ThreadCutter(Kernel* kernel, int lanes) : k_(*kernel), lanes_(lanes) {}

  Block cut(const Block& body) {
    Block result;
    for (const Stmt& stmt : body) {
      Stmt made = stmt;
      made.body = cut(stmt.body);
      made.otherwise = cut(stmt.otherwise);
      if (stmt.kind != StmtKind::loop || stmt.loop != LoopKind::vector) {
        result.push_back(std::move(made));
        continue;
      }
      changed_ = true;
      HEDDLE_CHECK(stmt.lanes == lanes_, "a loop of {} lanes among threads", stmt.lanes);
      made.loop = LoopKind::thread;
      const kernel::Expr& extent = k_.expr(stmt.extent);
      if (extent.op != Op::constant || extent.imm <= lanes_)
        result.push_back(std::move(made));
      else
        add_cut(std::move(made), extent.imm, &result);
    }
    return result;
  }

  bool changed() const { return changed_; }

 private:
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
  ThreadCutter cutter(&kernel, context.lanes);
  for (kernel::Phase& phase : kernel.phases)
    for (kernel::Group& group : phase.groups) group.body = cutter.cut(group.body);
  return cutter.changed();
}

}  // namespace heddle::lower
