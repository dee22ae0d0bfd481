#include "kernel/random_kernel.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernel/random_builder.h"
#include "kernel/scalar.h"
#include "kernel/stmt_text.h"
#include "tensor/compare.h"

namespace heddle::kernel {

RandomBuilder::RandomBuilder(uint64_t seed, const RandomKernelOptions& options)
    : options_(options), state_(seed * 0x9e3779b97f4a7c15 + 12345), k_(result_.kernel) {
  k_.name = fmt::format("random_{}", seed);
}

RandomKernel RandomBuilder::run() {
  for (int64_t i = options_.run_time_dims ? between(0, 2) : 0; i > 0; --i) {
    result_.dims.push_back(between(1, 37));
    k_.dims.push_back(fmt::format("n{}", k_.dims.size()));
  }
  plan_groups();
  add_globals();
  for (std::vector<Plan>& groups : plans_) {
    Phase phase;
    for (Plan& plan : groups) phase.groups.push_back(make_group(plan));
    k_.phases.push_back(std::move(phase));
    for (Plan& plan : groups) {
      for (Source* source : plan.outputs) source->own = false;  // anyone may read from now on
    }
    for (Plan& plan : groups) {
      for (Source* source : plan.outputs) source->readable = true;
    }
  }
  fill_memory();
  return std::move(result_);
}

RandomBuilder::Extent RandomBuilder::draw_extent(int64_t low, int64_t high) {
  if (!result_.dims.empty() && chance(20)) {
    int64_t which = below(static_cast<int64_t>(result_.dims.size()));
    return {result_.dims[static_cast<size_t>(which)], -1 - which};
  }
  int64_t number = between(low, high);
  return {number, number};
}

RandomBuilder::Source& RandomBuilder::add_source(std::deque<Source>& list, std::string name,
                                                 Type type, Space space,
                                                 std::vector<Extent> extents, Access access,
                                                 int lanes) {
  Buffer buffer{std::move(name), type, {}, space, access, lanes};
  for (Extent extent : extents) buffer.extents.push_back(extent.stored);
  if (space == Space::global && chance(50)) buffer.aligned_bytes = 64;
  list.push_back({k_.add_buffer(std::move(buffer)), std::move(extents)});
  return list.back();
}

void RandomBuilder::plan_groups() {
  plans_.resize(static_cast<size_t>(between(1, 2)));
  for (std::vector<Plan>& groups : plans_) {
    groups.resize(static_cast<size_t>(between(1, 2)));
    for (Plan& plan : groups) {
      plan.lanes = pick(options_.lanes);
      for (int64_t i = between(0, 2); i > 0; --i) plan.grid.push_back(draw_extent(1, 4));
    }
  }
}

void RandomBuilder::add_globals() {
  for (int i = 0; i < 6; ++i) {
    Type type = i == 0 ? Type::f32 : i == 1 ? Type::s32 : any_type();
    std::vector<Extent> extents = {draw_extent(5, 70)};
    if (chance(40)) extents.insert(extents.begin(), draw_extent(1, 6));
    add_source(globals_, fmt::format("x{}", i), type, Space::global, extents).readable = true;
  }
  for (std::vector<Plan>& groups : plans_) {
    for (Plan& plan : groups) {
      for (int64_t i = between(1, 3); i >= 0; --i) {
        std::vector<Extent> extents = plan.grid;
        extents.push_back(draw_extent(4, 50));
        bool rough = i == 0;
        if (rough && !options_.functions) continue;
        Access access = !rough && chance(25) ? Access::inout : Access::out;
        Source& source = add_source(globals_, rough ? "f" : "y", rough ? Type::f32 : any_type(),
                                    Space::global, extents, access);
        source.rough = rough;
        (rough ? plan.rough : plan.outputs).push_back(&source);
      }
    }
  }
}

// Scratch of all groups begins at the same offset; two buffers of a group may share bytes.
void RandomBuilder::add_scratch(int number) {
  int64_t end = 0;
  for (int i = 0; i < number; ++i) {
    std::vector<Extent> extents;
    for (int64_t rank = chance(25) ? 2 : 1; rank > 0; --rank) {
      int64_t size = rank == 2    ? between(1, 4)
                     : chance(50) ? lanes_ * between(1, 4)
                                  : between(3, 50);
      extents.push_back({size, size});
    }
    Source& source = add_source(locals_, "t", any_type(), Space::scratch, extents);
    Buffer& buffer = k_.buffers[source.id.index()];
    int64_t size = tensor::type_bytes(buffer.type), elems = 1;
    for (Extent extent : extents) elems *= extent.number;
    int64_t offset = chance(30) && end > 0 ? below(end) : end;
    buffer.offset_bytes = (offset + size - 1) / size * size;
    end = std::max(end, buffer.offset_bytes + elems * size);
  }
  k_.scratch_bytes = std::max(k_.scratch_bytes, (end + 63) / 64 * 64);
}

void RandomBuilder::add_locals() {
  locals_.clear();
  add_scratch(static_cast<int>(between(1, 3)));
  for (int64_t i = between(1, 3); i > 0; --i) {
    int64_t rows = between(1, 4);
    std::vector<Extent> extents = {{rows, rows}};
    if (chance(30)) extents.push_back({2, 2});
    add_source(locals_, "acc", i == 1 ? Type::f32 : arithmetic_type(), Space::reg, extents,
               Access::in, lanes_);
  }
  int64_t scalars = between(1, 3);
  add_source(locals_, "one", arithmetic_type(), Space::reg, {{scalars, scalars}});
}

void RandomBuilder::overwrite(const Source& target) {
  const Buffer& written = k_.buffer(target.id);
  if (written.space != Space::scratch) return;
  auto end = [](const Buffer& buffer) {
    int64_t bytes = tensor::type_bytes(buffer.type);
    for (int64_t extent : buffer.extents) bytes *= extent;
    return buffer.offset_bytes + bytes;
  };
  for (Source& source : locals_) {
    const Buffer& other = k_.buffer(source.id);
    if (source.id == target.id || other.space != Space::scratch) continue;
    if (other.offset_bytes < end(written) && written.offset_bytes < end(other))
      source.readable = false;
  }
}

Group RandomBuilder::make_group(Plan& plan) {
  Group group;
  Scope scope;
  lanes_ = plan.lanes;
  place_.clear();
  for (Extent extent : plan.grid) {
    Variable var{k_.add_var("p"), 0, extent.number - 1};
    group.grid.push_back({var.id, extent_expr(extent)});
    place_.push_back(k_.ref(var.id));
    scope.vars.push_back(var);
  }
  for (Source* source : plan.outputs) {
    source->own = true;
    source->readable = k_.buffer(source->id).access == Access::inout;
  }
  add_locals();
  for (int64_t i = between(2, 2 * options_.sections); i > 0; --i)
    random_section(group.body, scope, plan);
  for (Source* source : plan.outputs) {
    if (!source->readable || chance(30)) fill_section(group.body, *source, scope);
  }
  for (Source* source : plan.rough) fill_section(group.body, *source, scope, true);
  for (Source* source : plan.outputs)
    source->readable = false;  // not for other groups of the phase
  return group;
}

void RandomBuilder::random_section(std::vector<Stmt>& to, Scope& scope, Plan& plan) {
  if (chance(10)) to.push_back(Stmt{StmtKind::barrier});
  if (chance(10)) add_let(to, scope);
  if (chance(30)) return work_section(to, scope);
  if (chance(20)) return reduce_section(to, scope);
  if (chance(15)) return fill_section(to, *pick(plan.outputs), scope);
  Source& local = locals_[static_cast<size_t>(below(static_cast<int64_t>(locals_.size())))];
  if (k_.buffer(local.id).space == Space::reg)
    fill_registers(to, local, scope);
  else
    fill_section(to, local, scope);
}

// Writes every element of the target that is the task's own.
void RandomBuilder::fill_section(std::vector<Stmt>& to, Source& target, const Scope& scope,
                                 bool rough) {
  bool was_readable = target.readable;
  if (k_.buffer(target.id).access != Access::inout) target.readable = false;
  overwrite(target);
  Scope inner = scope;
  std::vector<ExprId> leading;
  if (k_.buffer(target.id).space == Space::global) leading = place_;
  std::vector<Stmt> loops;
  for (size_t axis = leading.size(); axis + 1 < target.extents.size(); ++axis) {
    Loop loop = new_loop(LoopKind::serial, target.extents[axis], inner, 20);
    leading.push_back(k_.ref(loop.var.id));
    loops.push_back(std::move(loop.stmt));
  }
  Extent last = target.extents.back();
  ExprId index;
  if (last.stored >= 0 && last.stored % lanes_ == 0 && chance(40)) {  // split
    int64_t parts = last.number / lanes_;
    bool unrolled = parts <= 4 && chance(50);
    Loop outer =
        new_loop(unrolled ? LoopKind::unrolled : LoopKind::serial, {parts, parts}, inner, 30);
    Loop lanes = new_loop(LoopKind::vector, {lanes_, lanes_}, inner);
    index = k_.binary(Op::add, k_.binary(Op::mul, k_.ref(outer.var.id), k_.constant(lanes_)),
                      k_.ref(lanes.var.id));
    loops.push_back(std::move(outer.stmt));
    loops.push_back(std::move(lanes.stmt));
  } else {
    Loop loop = new_loop(chance(75) ? LoopKind::vector : LoopKind::serial, last, inner, 30);
    index = k_.ref(loop.var.id);
    loops.push_back(std::move(loop.stmt));
  }
  std::vector<Stmt> body = element_body(target, leading, inner, index, rough);
  for (; !loops.empty(); loops.pop_back()) {
    loops.back().body = std::move(body);
    body.clear();
    body.push_back(std::move(loops.back()));
  }
  to.push_back(std::move(body[0]));
  target.readable = was_readable || !target.rough;
}

void RandomBuilder::fill_registers(std::vector<Stmt>& to, Source& target, const Scope& scope) {
  Scope inner = scope;
  std::vector<Stmt> loops;
  bool lanes = k_.buffer(target.id).lanes != 0, lanes_outside = chance(50);
  auto add_lanes = [&] {
    if (lanes) loops.push_back(new_loop(LoopKind::vector, {lanes_, lanes_}, inner).stmt);
  };
  if (lanes_outside) add_lanes();
  std::vector<ExprId> indices;
  for (Extent extent : target.extents) {
    Loop loop = new_loop(LoopKind::unrolled, extent, inner);
    indices.push_back(k_.ref(loop.var.id));
    loops.push_back(std::move(loop.stmt));
  }
  if (!lanes_outside) add_lanes();
  target.readable = false;
  std::vector<Stmt> body;
  if (chance(25)) add_let(body, inner);
  body.push_back(make_store(target.id, indices, expr(k_.buffer(target.id).type, inner, 3)));
  for (; !loops.empty(); loops.pop_back()) {
    loops.back().body = std::move(body);
    body.clear();
    body.push_back(std::move(loops.back()));
  }
  to.push_back(std::move(body[0]));
  target.readable = true;
}

void RandomBuilder::work_section(std::vector<Stmt>& to, const Scope& scope) {
  Scope inner = scope;
  std::vector<Stmt> outer;
  if (chance(40)) outer.push_back(new_loop(LoopKind::serial, draw_extent(0, 6), inner, 50).stmt);
  LoopKind kind = chance(75) ? LoopKind::vector : LoopKind::serial;
  int64_t whole = lanes_ * between(1, 3);
  Extent extent =
      kind == LoopKind::vector && chance(50) ? Extent{whole, whole} : draw_extent(1, 50);
  Loop element = new_loop(kind, extent, inner, 30);
  element.stmt.body = work_body(inner, element, 2);
  if (outer.empty()) {
    to.push_back(std::move(element.stmt));
  } else {
    outer[0].body.push_back(std::move(element.stmt));
    to.push_back(std::move(outer[0]));
  }
}

void RandomBuilder::reduce_section(std::vector<Stmt>& to, Scope& scope) {
  std::vector<Source*> registers;
  Source* one = nullptr;
  for (Source& source : locals_) {
    const Buffer& buffer = k_.buffer(source.id);
    if (buffer.space != Space::reg) continue;
    if (buffer.lanes == 0)
      one = &source;
    else if (source.readable)
      registers.push_back(&source);
  }
  if (registers.empty()) return;
  Source& source = *pick(registers);
  ExprId sum = lane_sum(source, scope);
  Type type = k_.expr(sum).type;
  if (one != nullptr && one->readable && k_.buffer(one->id).type == type && chance(60)) {
    to.push_back(make_store(one->id, {register_index(one->extents[0].number, scope)}, sum));
    return;
  }
  VarId var = k_.add_var("s", type);
  to.push_back(make_let(var, sum));
  scope.vars.push_back({var});
}

void RandomBuilder::fill_memory() {
  for (const Source& source : globals_) {
    const Buffer& buffer = k_.buffer(source.id);
    int64_t elems = 1, size = tensor::type_bytes(buffer.type);
    for (Extent extent : source.extents) elems *= extent.number;
    HostBuffer memory;
    memory.bytes = elems * size;
    memory.lines.resize(static_cast<size_t>((memory.bytes + 63) / 64));
    std::memset(memory.data(), 0xee, memory.lines.size() * 64);
    for (int64_t i = 0; i < elems && buffer.access != Access::out; ++i) {
      uint64_t bits = chance(90) ? static_cast<uint64_t>(between(-20, 20)) : next();
      if (tensor::is_float(buffer.type)) {
        constexpr double kOdd[] = {-0.0, INFINITY, -INFINITY, NAN, 1e-40, 65504, 1e30, -3e-5};
        double value =
            chance(97) ? static_cast<double>(between(-4000, 4000)) / 1024 : kOdd[below(8)];
        bits = tensor::float_to_bits(buffer.type, value);
      }
      bits = canonical_bits(buffer.type, bits);
      std::memcpy(static_cast<char*>(memory.data()) + i * size, &bits, static_cast<size_t>(size));
    }
    result_.memory.push_back(std::move(memory));
    result_.max_ulp.push_back(source.rough ? options_.function_ulp : 0);
  }
}

RandomKernel random_kernel(uint64_t seed, const RandomKernelOptions& options) {
  return RandomBuilder(seed, options).run();
}

std::vector<void*> pointers(std::vector<HostBuffer>& memory) {
  std::vector<void*> result;
  for (HostBuffer& buffer : memory) result.push_back(buffer.data());
  return result;
}

std::string difference(const RandomKernel& kernel, const std::vector<HostBuffer>& got,
                       const std::vector<HostBuffer>& want) {
  for (size_t b = 0; b < want.size(); ++b) {
    const Buffer& buffer = kernel.kernel.buffers[b];
    auto size = static_cast<size_t>(tensor::type_bytes(buffer.type));
    for (int64_t i = 0; i < want[b].bytes / static_cast<int64_t>(size); ++i) {
      uint64_t a = 0, c = 0;
      size_t at = static_cast<size_t>(i) * size;
      std::memcpy(&a, static_cast<const char*>(got[b].data()) + at, size);
      std::memcpy(&c, static_cast<const char*>(want[b].data()) + at, size);
      if (a == c) continue;
      if (!tensor::is_float(buffer.type)) {
        return fmt::format("buffer {}[{}]: got 0x{:x}, want 0x{:x}", buffer.name, i, a, c);
      }
      double x = tensor::float_from_bits(buffer.type, a),
             y = tensor::float_from_bits(buffer.type, c);
      if (std::isnan(x) && std::isnan(y)) continue;
      bool near = kernel.max_ulp[b] > 0 && !std::isnan(x) && !std::isnan(y) &&
                  tensor::ulp_distance(buffer.type, x, y) <= kernel.max_ulp[b];
      if (!near) return fmt::format("buffer {}[{}]: got {}, want {}", buffer.name, i, x, y);
    }
  }
  return "";
}

}  // namespace heddle::kernel
