// Scratch of which each thread reads only elements that it wrote itself becomes registers of the
// thread: element e is register e / lanes of lane e mod lanes. Where a lane takes `width` adjacent
// elements, the same applies to groups of `width` elements. The loops that index the registers are
// unrolled.
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "kernel/lanes.h"
#include "kernel/linear.h"
#include "kernel/rewriter.h"
#include "lower/most.h"
#include "lower/passes.h"
#include "target/held_registers.h"

namespace heddle::lower {

using kernel::BufferId;
using kernel::ExprId;
using kernel::Kernel;
using kernel::LoopKind;
using kernel::Op;
using kernel::Rewriter;
using kernel::Stmt;
using kernel::StmtKind;
using kernel::VarId;
using tensor::Type;
using Block = std::vector<Stmt>;

namespace {

constexpr int64_t kUnrolled = 64;  // most iterations of a loop that is unrolled for this
constexpr int64_t kCopies = 1024;  // of nested loops together

class Holder {
 public:
  Holder(Kernel* kernel, int lanes) : k_(*kernel), lanes_(lanes) {}

  bool run() {
    for (const kernel::Phase& phase : k_.phases)
      for (const kernel::Group& group : phase.groups) look(group.body, {}, {});
    int64_t left = target::kHeldRegisters;
    for (size_t b = 0; b < k_.buffers.size(); ++b) {
      const BufferId id(b);
      if (k_.buffers[b].space != kernel::Space::scratch || !uses_.contains(id)) continue;
      const int64_t words = (tensor::type_bytes(k_.buffers[b].type) + 3) / 4;
      const int64_t slots = slots_of(id) * words;
      if (refused_.contains(id) || slots > left) continue;
      left -= slots;
      hold(id);
    }
    if (held_.empty()) return false;
    for (kernel::Phase& phase : k_.phases)
      for (kernel::Group& group : phase.groups) group.body = rewrite(group.body);
    drop_scratch();
    return true;
  }

 private:
  int64_t slots_of(BufferId id) const {
    const int64_t width = uses_.at(id).width, step = lanes_ * width;
    return (k_.buffer(id).extents[0] + step - 1) / step * width;
  }

  // The definitions of named values, by variable.
  using Values = std::unordered_map<uint32_t, ExprId>;
  static kernel::Lets read_by(const Values& values) {
    return [&values](VarId var) {
      const auto found = values.find(var.value);
      return found == values.end() ? ExprId() : found->second;
    };
  }

  struct Loops {
    std::vector<VarId> unrollable;  // serial and unrolled ones with constant extents, outside in
    VarId lane;  // of the loop over threads, of one iteration each; invalid: none
  };

  // Checks for every access to scratch whether it is the lane's own, and which loops index it.
  void look(const Block& body, Loops loops, Values values) {
    for (const Stmt& stmt : body) {
      for (ExprId id : kernel::reachable(k_, expressions(stmt))) {
        const kernel::Expr& expr = k_.expr(id);
        if (expr.op != Op::load) continue;
        if (expr.guarded) {
          refused_.insert(expr.buffer);
        } else if (!expr.operands.empty()) {
          see(expr.buffer, expr.operands[0], loops, values);
        }
      }
      if (stmt.kind == StmtKind::store && !stmt.indices.empty()) {
        see(stmt.buffer, stmt.indices[0], loops, values);
        if (stmt.mask.valid()) refused_.insert(stmt.buffer);
      }
      if (stmt.kind == StmtKind::let && k_.var(stmt.var).type == Type::s64) {
        values[stmt.var.value] = stmt.value;
        values_[stmt.var.value] = stmt.value;
      }
      Loops inside = loops;
      if (stmt.kind == StmtKind::loop && stmt.loop == LoopKind::thread) {
        const auto length = most(k_, stmt.extent);
        inside.lane = length && *length <= lanes_ ? stmt.var : VarId();
      }
      const bool counted = stmt.kind == StmtKind::loop &&
                           (stmt.loop == LoopKind::serial || stmt.loop == LoopKind::unrolled) &&
                           k_.expr(stmt.extent).op == Op::constant;
      if (counted) {
        inside.unrollable.push_back(stmt.var);
        extents_[stmt.var.value] = k_.expr(stmt.extent).imm;
        if (stmt.loop == LoopKind::unrolled) unrolled_.insert(stmt.var.value);
      }
      look(stmt.body, inside, values);
      look(stmt.otherwise, inside, values);
    }
  }

  void see(BufferId buffer, ExprId index, const Loops& loops, const Values& values) {
    if (k_.buffer(buffer).space != kernel::Space::scratch) return;
    Use& use = uses_[buffer];
    const kernel::Linear form = kernel::linear(k_, index, read_by(values));
    const int64_t width = loops.lane.valid() ? form.factor(loops.lane) : 0;
    const int64_t step = lanes_ * width;
    if (!form.is_of_variables() || width < 1 || width > 16 || form.constant < 0 ||
        form.constant % step >= width || (use.width > 0 && use.width != width)) {
      refused_.insert(buffer);
      return;
    }
    use.width = width;
    int64_t copies = 1;
    for (VarId var : loops.unrollable)
      if (unrolled_.contains(var.value)) copies *= extents_.at(var.value);
    for (const kernel::Linear::Term& term : form.terms) {
      if (term.var == loops.lane) continue;
      const uint32_t var = term.var.value;
      const bool fixed = std::find(loops.unrollable.begin(), loops.unrollable.end(), term.var) !=
                         loops.unrollable.end();
      if (!fixed || term.factor % step != 0 || extents_[var] > kUnrolled) {
        refused_.insert(buffer);
        return;
      }
      if (!unrolled_.contains(var)) copies *= extents_[var];
      use.loops.insert(var);
    }
    if (copies > kCopies) refused_.insert(buffer);
  }

  void hold(BufferId id) {
    kernel::Buffer registers;
    registers.name = k_.buffer(id).name + "_held";
    registers.type = k_.buffer(id).type;
    registers.extents = {slots_of(id)};
    registers.space = kernel::Space::reg;
    registers.lanes = lanes_;
    for (uint32_t var : uses_.at(id).loops) unroll_.insert(var);
    held_.emplace(id, k_.add_buffer(registers));
  }

  // The number of the register: the index without the lane, over the lanes.
  ExprId slot(ExprId index, int64_t width) {
    const kernel::Linear form = kernel::linear(k_, index, read_by(values_));
    const int64_t step = lanes_ * width;
    ExprId sum = k_.constant(form.constant / step * width + form.constant % step);
    std::map<uint32_t, int64_t> ordered;
    for (const kernel::Linear::Term& term : form.terms) ordered[term.var.value] = term.factor;
    for (const auto& [var, factor] : ordered) {
      if (factor % step != 0) continue;  // the lane
      sum = k_.binary(Op::add, sum,
                      k_.binary(Op::mul, k_.ref(VarId(var)), k_.constant(factor / lanes_)));
    }
    return sum;
  }

  Block rewrite(const Block& body) {
    Rewriter rewriter(&k_);
    rewriter.made = [&](const kernel::Expr& load) -> std::optional<ExprId> {
      if (load.op != Op::load) return std::nullopt;
      const auto held = held_.find(load.buffer);
      if (held == held_.end()) return std::nullopt;
      return k_.load(held->second, {slot(load.operands[0], uses_.at(load.buffer).width)});
    };
    rewriter.statement = [&](const Stmt&, Stmt made, Block* to) {
      const auto held = held_.find(made.buffer);
      if (made.kind == StmtKind::store && held != held_.end()) {
        made.indices = {slot(made.indices[0], uses_.at(held->first).width)};
        made.buffer = held->second;
      }
      if (made.kind == StmtKind::loop && unroll_.contains(made.var.value)) {
        made.loop = LoopKind::unrolled;
        made.unroll = 1;
      }
      to->push_back(std::move(made));
    };
    return rewriter.block(body);
  }

  // Compacts the remaining scratch; held buffers keep no elements.
  void drop_scratch() {
    int64_t bytes = 0;
    for (size_t b = 0; b < k_.buffers.size(); ++b) {
      kernel::Buffer& buffer = k_.buffers[b];
      if (buffer.space != kernel::Space::scratch) continue;
      if (held_.contains(BufferId(b))) {
        buffer.extents = {0};
        buffer.offset_bytes = 0;
        continue;
      }
      buffer.offset_bytes = bytes;
      bytes += kernel::aligned_scratch(buffer.extents[0] * tensor::type_bytes(buffer.type));
    }
    k_.scratch_bytes = bytes;
  }

  struct Use {
    std::set<uint32_t> loops;
    int64_t width = 0;  // adjacent elements of a lane
  };
  Kernel& k_;
  int lanes_;
  std::map<BufferId, Use> uses_;
  std::set<BufferId> refused_;
  std::map<BufferId, BufferId> held_;
  std::map<uint32_t, int64_t> extents_;
  std::set<uint32_t> unrolled_, unroll_;
  Values values_;
};

}  // namespace

Result<bool> hold_in_registers(Kernel& kernel, const Context& context) {
  return Holder(&kernel, context.lanes).run();
}

}  // namespace heddle::lower
