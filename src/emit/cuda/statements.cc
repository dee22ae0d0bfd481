// Kernels, phases and statements as CUDA C++.
#include <algorithm>
#include <cctype>
#include <utility>

#include "emit/cuda/cuda_emitter.h"
#include "emit/cuda/prelude.h"
#include "kernel/blocks.h"
#include "kernel/stmt_text.h"

namespace heddle::emit::cuda {

using kernel::LoopKind;
using kernel::Space;

namespace {

constexpr int64_t kStaticScratch = 48 << 10;
constexpr int kSubgroup = 32;
// Statements of a loop's body: longer ones have loads enough, and are not unrolled.
constexpr int64_t kShort = 24;

// Names to avoid: keywords, and names that the text uses itself.
const std::set<std::string>& reserved() {
  static const std::set<std::string> words = {
      "auto",     "bool",   "break",   "case",      "char",     "class",  "const",     "continue",
      "default",  "delete", "do",      "double",    "else",     "enum",   "extern",    "float",
      "for",      "goto",   "if",      "inline",    "int",      "long",   "namespace", "new",
      "operator", "return", "short",   "signed",    "sizeof",   "static", "struct",    "switch",
      "template", "this",   "typedef", "union",     "unsigned", "void",   "volatile",  "while",
      "lane",     "warp",   "rest_",   "scratch",   "asm",      "and",    "or",        "not",
      "xor",      "min",    "max",     "threadIdx", "blockIdx", "true",   "false",     "register"};
  return words;
}

// Temporaries are e0, e1, …
std::string c_name(const std::string& name) {
  const bool temporary =
      name.size() > 1 && name[0] == 'e' &&
      std::all_of(name.begin() + 1, name.end(), [](unsigned char c) { return std::isdigit(c); });
  std::string result = name;
  std::replace_if(
      result.begin(), result.end(), [](unsigned char c) { return !std::isalnum(c) && c != '_'; },
      '_');
  return temporary || reserved().contains(result) ? result + "_" : result;
}

}  // namespace

std::string memory_type(Type type) { return type == Type::pred ? "unsigned char" : c_type(type); }

CudaEmitter::CudaEmitter(const kernel::Kernel& kernel, const target::Target& target, bool apart)
    : kernel_(kernel), target_(target), ranges_(kernel), apart_(apart) {
  for (const kernel::Var& var : kernel.vars) var_names_.push_back(c_name(var.name));
  for (const kernel::Buffer& buffer : kernel.buffers) buffer_names_.push_back(c_name(buffer.name));
}

void CudaEmitter::refuse(std::string what) {
  if (refused_.empty()) refused_ = std::move(what);
}

void CudaEmitter::line(const std::string& text) {
  text_.append(static_cast<size_t>(depth_) * 2, ' ').append(text).append("\n");
}
void CudaEmitter::open(const std::string& head) {
  line(head.empty() ? "{" : head + " {");
  ++depth_;
}
void CudaEmitter::close() {
  --depth_;
  line("}");
}

Result<CudaText> CudaEmitter::run() {
  for (const kernel::Buffer& buffer : kernel_.buffers)
    if (c_type(buffer.type).empty())
      refuse(fmt::format("the type {}", tensor::type_name(buffer.type)));
  for (size_t phase = 0; phase < kernel_.phases.size() && refused_.empty(); ++phase)
    emit_phase(phase);
  if (!refused_.empty())
    return user_error("kernel {}: the CUDA back end has no form for {}", kernel_.name, refused_);
  std::string head = fmt::format("// {} for {}\n", kernel_.name, target_.name);
  if (!kernel_.schedule.empty()) {
    head += "//\n";
    for (size_t at = 0; at < kernel_.schedule.size();) {
      const size_t end = std::min(kernel_.schedule.find('\n', at), kernel_.schedule.size());
      head += "// " + kernel_.schedule.substr(at, end - at) + "\n";
      at = end + 1;
    }
  }
  head += "\n";
  return CudaText{head + prelude_text(helpers_) + text_, std::move(launches_), head + text_,
                  helpers_};
}

namespace {

void find_uses(const kernel::Kernel& kernel, const std::vector<Stmt>& body,
               std::set<BufferId>* loaded, std::set<BufferId>* stored) {
  for (const Stmt& stmt : body) {
    for (ExprId id : kernel::reachable(kernel, kernel::expressions(stmt)))
      if (kernel.expr(id).op == Op::load) loaded->insert(kernel.expr(id).buffer);
    if (stmt.kind == StmtKind::store || stmt.kind == StmtKind::async_copy)
      stored->insert(stmt.buffer);
    if (stmt.kind == StmtKind::async_copy) loaded->insert(stmt.source);
    find_uses(kernel, stmt.body, loaded, stored);
    find_uses(kernel, stmt.otherwise, loaded, stored);
  }
}

}  // namespace

void CudaEmitter::emit_phase(size_t number) {
  const kernel::Phase& phase = kernel_.phases[number];
  threads_ = 0;
  for (const kernel::Group& group : phase.groups) {
    if (!kernel::has_threads(group)) return refuse("a group without threads");
    if (threads_ != 0 && threads_ != group.block_threads)
      return refuse("groups of different numbers of threads in one phase");
    threads_ = group.block_threads;
  }
  if (phase.groups.size() > 1 && !kernel_.dims.empty())
    return refuse("several groups with run-time extents");
  std::set<BufferId> loaded, stored;  // in this phase
  for (const kernel::Group& group : phase.groups) find_uses(kernel_, group.body, &loaded, &stored);
  std::vector<std::string> parameters;
  for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
    const kernel::Buffer& buffer = kernel_.buffers[i];
    if (buffer.space != Space::global) continue;
    const char* constant = buffer.access == kernel::Access::in ? "const " : "";
    // Not for buffers through which threads communicate: with __restrict__ the compiler assumes
    // that only this thread's stores change them, even across a barrier.
    const BufferId id(i);
    const bool own = apart_ && !(loaded.contains(id) && stored.contains(id));
    parameters.push_back(fmt::format("{}{}* {}{}", constant, memory_type(buffer.type),
                                     own ? "__restrict__ " : "", buffer_names_[i]));
  }
  for (const std::string& dim : kernel_.dims) parameters.push_back("long long dim_" + dim);
  Launch launch;
  launch.function = fmt::format("{}_p{}", kernel_.name, number);
  launch.threads = std::max(threads_, 1);
  launch.scratch_bytes = kernel_.scratch_bytes;
  if (number > 0) text_ += "\n";
  line(fmt::format("extern \"C\" __global__ void __launch_bounds__({})", launch.threads));
  std::string head = launch.function + "(";
  for (size_t i = 0; i < parameters.size(); ++i) head += (i ? ", " : "") + parameters[i];
  open(head + ")");
  line("const int lane = (int)threadIdx.x & 31, warp = (int)threadIdx.x >> 5;");
  emit_scratch();
  int64_t first = 0;
  for (const kernel::Group& group : phase.groups) {
    int64_t blocks = 1;
    for (const kernel::GridDim& dim : group.grid)
      if (kernel_.dims.empty()) blocks *= kernel::evaluate_extent(kernel_, dim.extent, {});
    if (phase.groups.size() > 1)
      open(fmt::format("{}if (blockIdx.x < {}u)", first ? "else " : "", first + blocks));
    emit_group(group, first);
    if (phase.groups.size() > 1) close();
    first += blocks;
  }
  launch.blocks = kernel_.dims.empty() ? first : 0;
  if (launch.blocks > INT32_MAX) refuse("more than 2^31 blocks");
  launches_.push_back(launch);
  close();
}

void CudaEmitter::emit_scratch() {
  if (kernel_.scratch_bytes == 0) return;
  if (kernel_.scratch_bytes <= kStaticScratch)
    line(fmt::format("__shared__ __align__(16) unsigned char scratch[{}];", kernel_.scratch_bytes));
  else
    line("extern __shared__ __align__(16) unsigned char scratch[];");
  for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
    const kernel::Buffer& buffer = kernel_.buffers[i];
    if (buffer.space != Space::scratch) continue;
    const std::string type = memory_type(buffer.type);
    line(fmt::format("{}* const {} = ({}*)(scratch + {});", type, buffer_names_[i], type,
                     buffer.offset_bytes));
  }
}

namespace {

void find_registers(const kernel::Kernel& kernel, const std::vector<Stmt>& body,
                    std::set<BufferId>* found) {
  const auto add = [&](BufferId id) {
    if (id.valid() && is_register(kernel.buffer(id))) found->insert(id);
  };
  for (const Stmt& stmt : body) {
    add(stmt.buffer);
    for (BufferId id : stmt.fragments) add(id);
    for (ExprId id : kernel::reachable(kernel, kernel::expressions(stmt)))
      if (kernel.expr(id).op == Op::load) add(kernel.expr(id).buffer);
    find_registers(kernel, stmt.body, found);
    find_registers(kernel, stmt.otherwise, found);
  }
}

}  // namespace

void CudaEmitter::emit_registers(const kernel::Group& group) {
  std::set<BufferId> found;
  find_registers(kernel_, group.body, &found);
  for (BufferId id : found) {
    const kernel::Buffer& buffer = kernel_.buffer(id);
    int64_t elems = 1;
    for (int64_t extent : buffer.extents) elems *= extent;
    line(fmt::format("{} {}[{}];", c_type(buffer.type), buffer_names_[id.index()], elems));
  }
}

// The point of the grid, from the block's number.
void CudaEmitter::emit_group(const kernel::Group& group, int64_t first_block) {
  std::string block = "(int)blockIdx.x";
  if (first_block > 0) block = fmt::format("({} - {})", block, first_block);
  if (kernel_.dims.empty()) {
    int64_t inside = 1;
    for (size_t i = group.grid.size(); i-- > 0;) {
      const int64_t extent = kernel::evaluate_extent(kernel_, group.grid[i].extent, {});
      line(fmt::format("const int {} = {}{}{};", name(group.grid[i].var), block,
                       inside > 1 ? fmt::format(" / {}", inside) : "",
                       i > 0 ? fmt::format(" % {}", extent) : ""));
      inside *= extent;
    }
  } else {
    line(fmt::format("int rest_ = {};", block));
    for (size_t i = group.grid.size(); i-- > 0;) {
      Stmt extent;
      extent.kind = StmtKind::loop;
      extent.extent = group.grid[i].extent;
      prepare(extent);
      const std::string trips = value(extent.extent);
      line(fmt::format("const int {} = rest_{};", name(group.grid[i].var),
                       i > 0 ? " % " + trips : ""));
      if (i > 0) line(fmt::format("rest_ /= {};", trips));
    }
  }
  emit_registers(group);
  in_subgroup_ = in_lanes_ = false;
  emit_block(group.body);
}

void CudaEmitter::emit_block(const std::vector<Stmt>& body) {
  if (!in_lanes_) {
    for (const Stmt& stmt : body) emit_stmt(stmt);
    return;
  }
  const WidePlan plan = plan_wide(body);
  const auto outside = std::exchange(wide_, {});
  for (size_t s = 0; s < body.size(); ++s) {
    if (const auto loads = plan.loads.find(s); loads != plan.loads.end())
      for (const WideLoad& wide : loads->second) emit_wide_load(wide);
    if (const auto store = plan.stores.find(s); store != plan.stores.end())
      emit_wide_store(body[s], store->second);
    else
      emit_stmt(body[s]);
  }
  wide_ = outside;
}

void CudaEmitter::emit_stmt(const Stmt& stmt) {
  switch (stmt.kind) {
    case StmtKind::loop:
      return emit_loop(stmt);
    case StmtKind::let:
      prepare(stmt);
      return line(fmt::format("const {} {} = {};", type_of(stmt.value), name(stmt.var),
                              bare(value(stmt.value))));
    case StmtKind::store:
      return emit_store(stmt);
    case StmtKind::branch: {
      prepare(stmt);
      open(fmt::format("if ({})", bare(value(stmt.value))));
      emit_block(stmt.body);
      close();
      if (stmt.otherwise.empty()) return;
      open("else");
      emit_block(stmt.otherwise);
      return close();
    }
    case StmtKind::barrier:
      return line(in_subgroup_ ? "__syncwarp();" : "__syncthreads();");
    case StmtKind::prefetch:
      return;  // the hardware's many threads hide what a prefetch would
    case StmtKind::async_copy:
      return emit_async_copy(stmt);
    case StmtKind::async_wait:
      return line(fmt::format("{}<{}>();", helper("wait_async"), stmt.count));
    case StmtKind::mma:
      return emit_mma(stmt);
    case StmtKind::fragment_clear:
    case StmtKind::fragment_load:
    case StmtKind::fragment_store:
      return refuse("fragments of one lane");
  }
}

namespace {

int64_t count_plain(const std::vector<Stmt>& body) {
  int64_t count = 0;
  for (const Stmt& stmt : body)
    count += stmt.kind == StmtKind::let || stmt.kind == StmtKind::store
                 ? 1
                 : count_plain(stmt.body) + count_plain(stmt.otherwise);
  return count;
}

bool exchanges(const kernel::Kernel& kernel, const std::vector<Stmt>& body) {
  return std::any_of(body.begin(), body.end(), [&](const Stmt& stmt) {
    const std::vector<ExprId> nodes = kernel::reachable(kernel, kernel::expressions(stmt));
    return std::any_of(nodes.begin(), nodes.end(),
                       [&](ExprId id) {
                         const Op op = kernel.expr(id).op;
                         return op == Op::shuffle_xor || op == Op::lane;
                       }) ||
           exchanges(kernel, stmt.body) || exchanges(kernel, stmt.otherwise);
  });
}

}  // namespace

void CudaEmitter::emit_loop(const Stmt& stmt) {
  prepare(stmt);
  if (stmt.loop == LoopKind::thread) return emit_thread_loop(stmt);
  const std::string var = name(stmt.var), trips = value(stmt.extent);
  const char* type = ranges_.of(stmt.var).narrow() ? "int" : "long long";
  if (stmt.loop == LoopKind::subgroup) {
    in_subgroup_ = true;
    const Expr& extent = kernel_.expr(stmt.extent);
    const int64_t subgroups = threads_ / kSubgroup;
    if (extent.op == Op::constant && extent.imm <= subgroups) {
      open(extent.imm == subgroups ? "" : fmt::format("if (warp < {})", extent.imm));
      line(fmt::format("const int {} = warp;", var));
    } else {
      open(fmt::format("for ({} {} = warp; {} < {}; {} += {})", type, var, var, trips, var,
                       subgroups));
    }
    emit_block(stmt.body);
    close();
    in_subgroup_ = false;
    return;
  }
  if (stmt.loop != LoopKind::serial && stmt.loop != LoopKind::unrolled)
    return refuse(fmt::format("a {} loop", kernel::loop_text(stmt.loop)));
  if (!in_lanes_)
    if (const Stmt* threads = threads_of(stmt)) return emit_loop_of_threads(stmt, *threads);
  if (stmt.loop == LoopKind::unrolled) line("#pragma unroll");
  open(fmt::format("for ({} {} = 0; {} < {}; ++{})", type, var, var, trips, var));
  emit_block(stmt.body);
  close();
}

// The loop over some of the threads that is the only statement in the serial loops around it, if
// threads exchange no values in it; null: there is none.
const Stmt* CudaEmitter::threads_of(const Stmt& stmt) const {
  const Stmt* inner = &stmt;
  while (inner->kind == StmtKind::loop &&
         (inner->loop == LoopKind::serial || inner->loop == LoopKind::unrolled)) {
    if (inner->body.size() != 1) return nullptr;
    inner = &inner->body[0];
  }
  if (inner->kind != StmtKind::loop || inner->loop != LoopKind::thread) return nullptr;
  const Expr& extent = kernel_.expr(inner->extent);
  const bool some = extent.op == Op::constant && extent.imm < inner->lanes;
  const bool plain = std::all_of(inner->body.begin(), inner->body.end(), [](const Stmt& one) {
    return one.kind == StmtKind::let || one.kind == StmtKind::store;
  });
  return some && plain && count_plain(inner->body) <= kShort && !exchanges(kernel_, inner->body)
             ? inner
             : nullptr;
}

// Each of these threads runs the loops on its own: a condition inside them would keep the compiler
// from issuing several iterations' loads at once.
void CudaEmitter::emit_loop_of_threads(const Stmt& stmt, const Stmt& threads) {
  const std::string thread = in_subgroup_ ? "lane" : "(int)threadIdx.x";
  open(fmt::format("if ({} < {})", thread, kernel_.expr(threads.extent).imm));
  line(fmt::format("const int {} = {};", name(threads.var), thread));
  in_lanes_ = true;
  const Stmt* loop = &stmt;
  int opened = 0;
  for (; loop != &threads; loop = &loop->body[0], ++opened) {
    prepare(*loop);
    if (loop->loop == LoopKind::unrolled) line("#pragma unroll");
    const std::string var = name(loop->var);
    open(fmt::format("for ({} {} = 0; {} < {}; ++{})",
                     ranges_.of(loop->var).narrow() ? "int" : "long long", var, var,
                     value(loop->extent), var));
  }
  emit_block(threads.body);
  for (; opened > 0; --opened) close();
  in_lanes_ = false;
  close();
}

// One thread's iterations of the loop.
void CudaEmitter::emit_thread_loop(const Stmt& stmt) {
  const std::string var = name(stmt.var), trips = value(stmt.extent);
  const std::string thread = in_subgroup_ ? "lane" : "(int)threadIdx.x";
  const Expr& extent = kernel_.expr(stmt.extent);
  in_lanes_ = true;
  if (extent.op == Op::constant && extent.imm <= stmt.lanes) {
    open(extent.imm == stmt.lanes ? "" : fmt::format("if ({} < {})", thread, extent.imm));
    line(fmt::format("const int {} = {};", var, thread));
  } else {
    open(fmt::format("for ({} {} = {}; {} < {}; {} += {})",
                     ranges_.of(stmt.var).narrow() ? "int" : "long long", var, thread, var, trips,
                     var, stmt.lanes));
  }
  emit_block(stmt.body);
  close();
  in_lanes_ = false;
}

void CudaEmitter::emit_store(const Stmt& stmt) {
  const kernel::Buffer& buffer = kernel_.buffer(stmt.buffer);
  prepare(stmt);
  const std::string to = element(stmt.buffer, stmt.indices);
  std::string condition = stmt.mask.valid() ? value(stmt.mask) : "";
  const bool memory = !is_register(buffer);
  // A uniform store is done by one lane.
  if (memory && !in_lanes_)
    condition = condition.empty() ? "lane == 0" : "lane == 0 && " + condition;
  std::string what = value(stmt.value);
  if (memory && buffer.type == Type::pred) what = "(unsigned char)" + what;
  std::string text = fmt::format("{} = {};", to, bare(what));
  const bool plain =
      buffer.type == Type::f32 || buffer.type == Type::s32 || buffer.type == Type::f64;
  if (stmt.streaming && plain) text = fmt::format("__stcs(&{}, {});", to, what);
  line(condition.empty() ? text : fmt::format("if ({}) {}", condition, text));
}

// Element by element; elements of fewer than 4 bytes are plain copies.
void CudaEmitter::emit_async_copy(const Stmt& stmt) {
  prepare(stmt);
  const kernel::Buffer& to = kernel_.buffer(stmt.buffer);
  const int64_t size = tensor::type_bytes(to.type), bytes = size * stmt.count;
  const std::string target = element(stmt.buffer, stmt.indices);
  const std::string source = element(stmt.source, stmt.source_indices);
  if (!in_lanes_) open("if (lane == 0)");
  // Only the element's alignment is known of both sides.
  if (size >= 4) {
    for (int64_t at = 0; at < bytes; at += size)
      line(fmt::format("{}<{}>(&{} + {}, &{} + {});", helper("copy_async"), size, target, at / size,
                       source, at / size));
  } else {
    for (int64_t i = 0; i < stmt.count; ++i)
      line(fmt::format("(&{})[{}] = (&{})[{}];", target, i, source, i));
  }
  if (!in_lanes_) close();
}

Result<CudaText> to_cuda(const kernel::Kernel& kernel, const target::Target& target, bool apart) {
  return CudaEmitter(kernel, target, apart).run();
}

std::string join_kernels(const std::vector<const CudaText*>& kernels) {
  std::set<std::string> helpers;
  for (const CudaText* one : kernels) helpers.insert(one->helpers.begin(), one->helpers.end());
  std::string text = prelude_text(helpers);
  for (const CudaText* one : kernels) text += one->kernel + "\n";
  return text;
}

std::string architecture(const target::Target& target) { return target.name; }

}  // namespace heddle::emit::cuda
