#include "kernel/verify.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "kernel/interp_clocks.h"
#include "kernel/lexer.h"
#include "kernel/mma.h"
#include "kernel/scalar.h"
#include "kernel/stmt_text.h"
#include "kernel/verifier.h"
#include "tensor/shape.h"

namespace heddle::kernel {
namespace {

constexpr size_t kMaxProblems = 100;
constexpr int64_t kMaxCopies = 4096;
constexpr int kMaxThreads = 1024;
constexpr int64_t kMaxElems = int64_t{1} << 48;

bool is_register(const Buffer& buffer) {
  return buffer.space == Space::reg || buffer.space == Space::fragment;
}

}  // namespace

Verifier::Verifier(const Kernel& kernel) : kernel_(kernel), widths_(lane_widths(kernel)) {
  visible_.resize(kernel.vars.size());
  bound_.resize(kernel.vars.size());
  unrolled_.resize(kernel.vars.size(), -1);
}

void Verifier::report(int invariant, std::string message) {
  if (problems_.size() >= kMaxProblems) return;
  problems_.push_back(fmt::format("invariant {}: {}: {}", invariant, where_, message));
}

const std::vector<std::string>& Verifier::run() {
  where_ = "kernel " + kernel_.name;
  check_names();
  check_buffers();
  check_inner();
  for (size_t p = 0; p < kernel_.phases.size(); ++p) {
    where_ = fmt::format("phase {}", p);
    if (kernel_.phases[p].in_order && kernel_.inner.empty())
      fail(16, "it is in_order, but the kernel has no inner kernels");
    for (size_t g = 0; g < kernel_.phases[p].groups.size(); ++g) {
      where_ = fmt::format("phase {} group {}", p, g);
      check_group(kernel_.phases[p].groups[g]);
    }
  }
  return problems_;
}

void Verifier::check_names() {
  std::unordered_set<std::string> names;
  auto check = [&](const std::string& name) {
    if (!is_identifier(name)) fail(10, "'{}' is not an identifier", name);
    if (!names.insert(name).second) fail(10, "two things are called '{}'", name);
  };
  for (const std::string& name : kernel_.dims) check(name);
  for (const Buffer& buffer : kernel_.buffers) check(buffer.name);
  for (const Var& var : kernel_.vars) check(var.name);
}

void Verifier::check_buffers() {
  bool globals_over = false;
  for (const Buffer& buffer : kernel_.buffers) {
    where_ = "buffer " + buffer.name;
    if (buffer.space != Space::global)
      globals_over = true;
    else if (globals_over)
      fail(11, "a global follows a buffer that is not global");
    check_buffer(buffer);
  }
  where_ = "kernel " + kernel_.name;
  if (kernel_.scratch_bytes < 0) fail(7, "scratch_bytes is {}", kernel_.scratch_bytes);
}

void Verifier::check_buffer(const Buffer& buffer) {
  if (!is_arithmetic_type(buffer.type) && !is_storage_type(buffer.type)) {
    return fail(1, "kernels have no {}", tensor::type_name(buffer.type));
  }
  std::vector<int64_t> fixed;
  for (int64_t extent : buffer.extents) {
    if (extent >= 0) {
      fixed.push_back(extent);
    } else if (buffer.space != Space::global) {
      fail(11, "a run-time extent outside a global buffer");
    } else if (-1 - extent >= static_cast<int64_t>(kernel_.dims.size())) {
      fail(11, "there is no dimension {}", -1 - extent);
    }
  }
  auto elems = tensor::checked_product(fixed);
  if (!elems || *elems > kMaxElems) return fail(11, "too many elements");
  if (buffer.lanes < 0 || (buffer.lanes != 0 && !is_register(buffer))) {
    fail(5, "lanes {} in {}", buffer.lanes, space_text(buffer.space));
  }
  if (buffer.space != Space::scratch) return;
  int64_t size = tensor::type_bytes(buffer.type), offset = buffer.offset_bytes;
  if (offset < 0 || offset > kernel_.scratch_bytes - *elems * size) {
    fail(7, "bytes {} to {} leave the scratch of {} bytes", offset, offset + *elems * size,
         kernel_.scratch_bytes);
  }
  if (offset % size != 0)
    fail(7, "offset {} is not aligned to its {}", offset, tensor::type_name(buffer.type));
}

void Verifier::check_group(const Group& group) {
  if (group.is_table() || !kernel_.inner.empty()) return check_table(group);
  threads_ = group.block_threads;
  if (threads_ < 1) fail(12, "block_threads is {}", threads_);
  if (threads_ > 1 && (threads_ % kSubgroupLanes != 0 || threads_ > kMaxThreads))
    fail(15, "block_threads is {}, not 1 or a multiple of {} up to {}", threads_, kSubgroupLanes,
         kMaxThreads);
  for (const GridDim& dim : group.grid) {
    if (!dim.extent.valid())
      fail(12, "a grid dimension has no extent");
    else
      check_grid_extent(dim.extent);
  }
  size_t outside = scope_.size();
  for (const GridDim& dim : group.grid) bind(dim.var);
  check_block(group.body, {});
  for (; scope_.size() > outside; scope_.pop_back()) visible_[scope_.back().index()] = false;
}

void Verifier::check_block(const std::vector<Stmt>& body, const Context& context) {
  size_t outside = scope_.size();
  std::string where = where_;
  size_t base = std::min(where.find(": "), where.size());
  for (const Stmt& stmt : body) {
    where_ = where.substr(0, base) + ": " + head_text(kernel_, stmt);
    check_stmt(stmt, context);
  }
  where_ = where;
  for (; scope_.size() > outside; scope_.pop_back()) visible_[scope_.back().index()] = false;
}

void Verifier::bind(VarId var) {
  if (var.index() >= kernel_.vars.size()) return fail(12, "no variable is named");
  if (bound_[var.index()]) fail(10, "variable '{}' is bound twice", kernel_.var(var).name);
  bound_[var.index()] = visible_[var.index()] = true;
  scope_.push_back(var);
}

bool Verifier::known(BufferId id) {
  if (id.index() < kernel_.buffers.size()) return true;
  fail(12, "no buffer is named");
  return false;
}

void Verifier::outside_lanes(const Context& context) {
  if (context.lanes != 0) fail(5, "it must stand outside vector and thread loops");
}

void Verifier::check_stmt(const Stmt& stmt, const Context& context) {
  check_expressions(stmt, context);
  switch (stmt.kind) {
    case StmtKind::loop:
      return check_loop(stmt, context);
    case StmtKind::let:
      return check_let(stmt);
    case StmtKind::store:
      return check_store(stmt, context);
    case StmtKind::branch:
      return check_branch(stmt, context);
    case StmtKind::barrier:
      return outside_lanes(context);
    case StmtKind::async_wait:
      if (stmt.count < 0) fail(12, "count {}", stmt.count);
      return outside_lanes(context);
    case StmtKind::prefetch:
      if (stmt.level < 1 || stmt.level > 3) fail(12, "level {} is not 1 to 3", stmt.level);
      if (known(stmt.buffer)) {
        check_access(stmt.buffer, stmt.indices, stmt.indices.size());
        if (is_register(kernel_.buffer(stmt.buffer))) fail(12, "registers cannot be prefetched");
      }
      return;
    case StmtKind::async_copy:
      return check_async_copy(stmt, context);
    case StmtKind::mma:
      return check_mma(stmt, context);
    case StmtKind::fragment_clear:
    case StmtKind::fragment_load:
    case StmtKind::fragment_store:
      return check_fragment(stmt, context);
  }
}

void Verifier::check_loop(const Stmt& stmt, const Context& context) {
  if (!stmt.extent.valid()) return fail(12, "no extent");
  if (stmt.loop == LoopKind::parallel || stmt.loop == LoopKind::block) {
    fail(8, "{} loops stand only as a group's grid", loop_text(stmt.loop));
  }
  const Expr& extent = kernel_.expr(stmt.extent);
  if (extent.type != Type::s64)
    fail(1, "the extent is {}, not s64", tensor::type_name(extent.type));
  if (width(stmt.extent) != 0) fail(5, "the extent varies over lanes");
  if (stmt.var.index() < kernel_.vars.size() && kernel_.var(stmt.var).type != Type::s64) {
    fail(1, "a loop variable is s64");
  }
  Context inner = context;
  if (stmt.unroll < 1 || (stmt.unroll != 1 && stmt.loop != LoopKind::serial)) {
    fail(12, "unroll {} of a {} loop", stmt.unroll, loop_text(stmt.loop));
  }
  if (stmt.loop == LoopKind::unrolled) {
    int64_t trips = extent.op == Op::constant ? extent.imm : -1;
    if (trips < 0 || trips > kMaxCopies / std::max<int64_t>(1, context.copies)) {
      fail(9, "an unrolled extent is a constant, and all that nest make at most {} copies",
           kMaxCopies);
      trips = 1;
    }
    inner.copies = std::max<int64_t>(1, context.copies * trips);
    if (stmt.var.index() < kernel_.vars.size()) unrolled_[stmt.var.index()] = trips;
  }
  if (threads_ > 1 || stmt.loop == LoopKind::subgroup) check_thread_loop(stmt, context);
  inner.subgroup = context.subgroup || stmt.loop == LoopKind::subgroup;
  if (is_lane_loop(stmt.loop)) {
    if (context.lanes != 0) fail(5, "vector and thread loops do not nest");
    if (stmt.lanes < 1) fail(5, "a {} loop wants lanes", loop_text(stmt.loop));
    inner.lanes = std::max(1, stmt.lanes);
    inner.all_active = extent.op == Op::constant && extent.imm % inner.lanes == 0;
  } else if (stmt.lanes != 0) {
    fail(5, "lanes of a {} loop", loop_text(stmt.loop));
  }
  size_t outside = scope_.size();
  bind(stmt.var);
  check_block(stmt.body, inner);
  for (; scope_.size() > outside; scope_.pop_back()) visible_[scope_.back().index()] = false;
}

// The rules of blocks.h.
void Verifier::check_thread_loop(const Stmt& stmt, const Context& context) {
  if (stmt.loop == LoopKind::subgroup) {
    if (threads_ == 1) return fail(15, "a subgroup loop in a group without threads");
    if (context.subgroup || context.lanes != 0)
      fail(15, "a subgroup loop inside a {} loop", context.subgroup ? "subgroup" : "thread");
  } else if (stmt.loop == LoopKind::vector) {
    fail(15, "a vector loop in a group with threads");
  } else if (stmt.loop == LoopKind::thread) {
    const int wanted = context.subgroup ? kSubgroupLanes : threads_;
    if (stmt.lanes != wanted)
      fail(15, "a thread loop of {} lanes, wanted {} here", stmt.lanes, wanted);
  }
}

void Verifier::check_let(const Stmt& stmt) {
  if (!stmt.value.valid()) return fail(12, "no value");
  if (stmt.var.index() < kernel_.vars.size() && kernel_.var(stmt.var).type != type(stmt.value)) {
    fail(1, "the variable is {}, its value {}", tensor::type_name(kernel_.var(stmt.var).type),
         tensor::type_name(type(stmt.value)));
  }
  bind(stmt.var);
}

void Verifier::check_store(const Stmt& stmt, const Context& context) {
  if (!stmt.value.valid()) return fail(12, "no value");
  if (!known(stmt.buffer)) return;
  const Buffer& buffer = kernel_.buffer(stmt.buffer);
  check_access(stmt.buffer, stmt.indices, stmt.indices.size());
  if (type(stmt.value) != buffer.type) {
    fail(1, "{} stored in a buffer of {}", tensor::type_name(type(stmt.value)),
         tensor::type_name(buffer.type));
  }
  if (stmt.mask.valid() && type(stmt.mask) != Type::pred) fail(1, "the mask is not pred");
  if (buffer.space == Space::global && buffer.access == Access::in)
    fail(6, "'{}' is an input", buffer.name);
  if (is_register(buffer)) {
    if (buffer.lanes != context.lanes) {
      fail(5, "a register of {} lanes is stored where {} run", buffer.lanes, context.lanes);
    }
    return;
  }
  bool varies = std::any_of(stmt.indices.begin(), stmt.indices.end(),
                            [&](ExprId id) { return width(id) != 0; });
  if (context.lanes != 0 && !varies) fail(5, "a uniform store in a vector loop");
}

void Verifier::check_branch(const Stmt& stmt, const Context& context) {
  if (!stmt.value.valid()) return fail(12, "no condition");
  if (type(stmt.value) != Type::pred) fail(1, "the condition is not pred");
  Context inner = context;
  if (width(stmt.value) != 0) inner.all_active = false;
  check_block(stmt.body, inner);
  check_block(stmt.otherwise, inner);
}

void Verifier::check_async_copy(const Stmt& stmt, const Context& context) {
  if (!known(stmt.buffer) || !known(stmt.source)) return;
  const Buffer &to = kernel_.buffer(stmt.buffer), &from = kernel_.buffer(stmt.source);
  check_access(stmt.buffer, stmt.indices, stmt.indices.size());
  check_access(stmt.source, stmt.source_indices, stmt.source_indices.size());
  if (to.space != Space::scratch || from.space != Space::global)
    fail(13, "not from global to scratch");
  if (to.type != from.type)
    fail(13, "{} is copied to {}", tensor::type_name(from.type), tensor::type_name(to.type));
  if (stmt.count < 1) fail(12, "count {}", stmt.count);
  bool varies = std::any_of(stmt.indices.begin(), stmt.indices.end(),
                            [&](ExprId id) { return width(id) != 0; });
  if (context.lanes != 0 && !varies) fail(5, "a uniform copy in a vector loop");
}

void Verifier::check_mma(const Stmt& stmt, const Context& context) {
  outside_lanes(context);
  const MmaDescriptor* mma = find_mma(stmt.name);
  if (mma == nullptr) return fail(14, "no matrix instruction is called '{}'", stmt.name);
  if (mma->lanes == 1 && !mma->is_tile())
    return fail(14, "'{}' is for each lane: an operator", stmt.name);
  if (stmt.fragments.size() != 4) return fail(14, "it wants fragments d, a, b, c");
  const MmaMap* maps[] = {&mma->map_d, &mma->map_a, &mma->map_b, &mma->map_d};
  const Type types[] = {mma->d, mma->fragment_type(mma->a), mma->fragment_type(mma->b), mma->d};
  size_t at = 0;
  for (size_t i = 0; i < 4; ++i) {
    if (!known(stmt.fragments[i])) return;
    const Buffer& buffer = kernel_.buffer(stmt.fragments[i]);
    int64_t registers = maps[i]->registers();
    if (!is_register(buffer) || buffer.lanes != mma->lanes || buffer.type != types[i] ||
        buffer.extents.empty() || buffer.extents.back() != registers) {
      return fail(14, "fragment {} is {}; wanted {}[…,{}] in registers of {} lanes", "dabc"[i],
                  buffer_text(kernel_, buffer), tensor::type_name(types[i]), registers,
                  mma -> lanes);
    }
    for (size_t axis = 0; axis + 1 < buffer.extents.size(); ++axis, ++at) {
      if (at < stmt.indices.size()) check_register_index(buffer, axis, stmt.indices[at]);
    }
  }
  if (at != stmt.indices.size())
    fail(14, "its fragments want {} indices, not {}", at, stmt.indices.size());
}

void Verifier::check_fragment(const Stmt& stmt, const Context& context) {
  outside_lanes(context);
  if (stmt.fragments.size() != 1 || !known(stmt.fragments[0]))
    return fail(14, "it wants one fragment");
  const Buffer& fragment = kernel_.buffer(stmt.fragments[0]);
  if (fragment.space != Space::fragment || fragment.lanes != 1 || fragment.extents.empty() ||
      stmt.source_indices.size() + 1 != fragment.extents.size())
    return fail(14, "{} is not a fragment of 1 lane", buffer_text(kernel_, fragment));
  for (size_t axis = 0; axis < stmt.source_indices.size(); ++axis)
    check_register_index(fragment, axis, stmt.source_indices[axis]);
  if (stmt.kind == StmtKind::fragment_clear || !known(stmt.buffer)) return;
  const Buffer& memory = kernel_.buffer(stmt.buffer);
  check_access(stmt.buffer, stmt.indices, stmt.indices.size());
  if (is_register(memory)) return fail(14, "{} is not memory", buffer_text(kernel_, memory));
  const int64_t registers = fragment.extents.back();
  const int bits = tensor::type_bits(fragment.type), word = tensor::type_bits(memory.type);
  const bool fits = stmt.kind == StmtKind::fragment_load && word > bits
                        ? tensor::is_unsigned_integer(memory.type) && word % bits == 0
                        : memory.type == fragment.type;
  if (!fits)
    return fail(14, "{} does not hold elements of {}", buffer_text(kernel_, memory),
                tensor::type_name(fragment.type));
  if (stmt.count < 1 || registers % stmt.count != 0 ||
      registers / stmt.count * bits % word != 0 || stmt.stride < 0)
    fail(14, "{} registers in {} rows", registers, stmt.count);
}

Status verify(const Kernel& kernel) {
  Verifier verifier(kernel);
  const auto& problems = verifier.run();
  if (problems.empty()) return {};
  return user_error("{}", fmt::join(problems, "\n"));
}

}  // namespace heddle::kernel
