#include "stitch/stitcher.h"

#include <algorithm>
#include <set>

#include "schedule/fast_forms.h"
#include "schedule/pooled.h"
#include "stitch/boxes.h"
#include "stitch/for_threads.h"
#include "stitch/in_place.h"

namespace heddle::stitch {

Stitcher::Stitcher(const stage::PlacedFusion& placed, const std::string& name,
                   const target::Target& target, const std::vector<bool>& streamed)
    : placed_(placed), target_(target), streamed_(streamed), kernel_(result_.kernel) {
  streamed_.resize(placed.graph.outputs.size(), false);
  for (size_t o = 0; o < streamed_.size(); ++o)  // slices and parts begin unaligned
    if (placed.graph.outputs[o].array >= 0 || placed.graph.is_in_parts(static_cast<int>(o)))
      streamed_[o] = false;
  kernel_.name = name;
  kernel_.target = target.name;
  kernel_.strategy = placed.strategy;
  homes_.resize(placed.graph.stages.size());
  for (size_t i = 0; i < homes_.size(); ++i) homes_[i].resize(placed.graph.stages[i].values.size());
  loop_scope_.assign(placed.schedule.nodes.size(), -1);
  for (const Stage& stage : placed.graph.stages) driven_.emplace_back(stage.out.size(), false);
  for (const stage::ScheduleNode& node : placed.schedule.nodes)
    if (const auto* loop = std::get_if<stage::Loop>(&node))
      for (const stage::Drive& drive : loop->drives)
        if (auto& digits = driven_[drive.stage.index()];
            drive.digit < static_cast<int>(digits.size()))
          digits[static_cast<size_t>(drive.digit)] = true;
}

namespace {

kernel::Buffer flat(std::string name, Type type, int64_t elems, kernel::Access access) {
  kernel::Buffer buffer;
  buffer.name = std::move(name);
  buffer.type = type;
  buffer.extents = {elems};
  buffer.access = access;
  buffer.aligned_bytes = 64;
  return buffer;
}

}  // namespace

void Stitcher::add_buffers() {
  const stage::StageGraph& graph = placed_.graph;
  const bool chain = is_chain(placed_) || is_pooled(placed_);  // allocate their own
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    kernel::Buffer buffer = flat(fmt::format("in{}", i), graph.inputs[i].shape.type(),
                                 graph.inputs[i].shape.elems(), kernel::Access::in);
    buffer.aligned_bytes = 0;  // the caller's own memory
    inputs_.push_back(kernel_.add_buffer(buffer));
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    kernel::Buffer buffer =
        flat(fmt::format("out{}", i), graph.outputs[i].shape.type(), graph.outputs[i].shape.elems(),
             graph.outputs[i].array < 0 ? kernel::Access::out : kernel::Access::inout);
    buffer.aligned_bytes = streamed_[i] ? 64 : 0;
    outputs_.push_back(kernel_.add_buffer(buffer));
  }
  // Workspaces are global too, so they come before scratch.
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t s = 0; s < graph.stages.size(); ++s) {
      const Stage& stage = graph.stages[s];
      const stage::Placed& placed = placed_.placement.stages[s];
      bool crosses = placed.space == stage::Space::global;
      if (crosses != (pass == 0)) continue;
      for (size_t v = 0; v < stage.values.size(); ++v) {
        Home& home = homes_[s][v];
        Type type = stage.values[v].type;
        std::string name =
            fmt::format("s{}{}", s, stage.values.size() > 1 ? fmt::format("_{}", v) : "");
        const bool scratch = placed.space == stage::Space::scratch;
        const bool stored = stage.values[v].output >= 0;
        const bool apart = !chain && stored && streams_whole(s, v);
        if (stored && (crosses || (scratch && !is_chain(placed_) && !apart))) {
          home = {Home::Kind::buffer, {}, outputs_[stage.values[v].output], true, true};
        } else if (crosses) {
          kernel::Buffer buffer = flat(name, type, stage.out_elems(), kernel::Access::out);
          home = {Home::Kind::buffer, {}, kernel_.add_buffer(buffer), true, false};
          result_.workspace_bytes.push_back(stage.out_elems() * tensor::type_bytes(type));
        } else if (scratch && !chain) {
          const int64_t elems = volume(placed.need) * placed.filled;
          home = {Home::Kind::buffer, {}, kernel_.add_scratch(name, type, elems), false, false};
        }
      }
    }
  }
}

// Whether the output is stored past the caches in whole cache lines; readers then use a copy in
// scratch.
bool Stitcher::streams_whole(size_t stage, size_t value) const {
  const Stage& from = placed_.graph.stages[stage];
  if (!streamed_[static_cast<size_t>(from.values[value].output)] || from.out.empty()) return false;
  const int64_t bytes = from.out.back().extent * tensor::type_bytes(from.values[value].type);
  return bytes % 64 == 0;
}

int Stitcher::add_scope(VarId var, int64_t extent) {
  scope_.push_back(var);
  scope_extents_.push_back(extent);
  return static_cast<int>(scope_.size() - 1);
}

ExprId Stitcher::index_expr(const Expr& x, const std::function<ExprId(int)>& runtime) {
  ExprId sum = kernel_.constant(x.constant());
  for (const index::Term& term : x.terms()) {
    ExprId value;
    switch (term.atom.kind) {
      case index::Atom::Kind::digit:
        value = kernel_.ref(scope_.at(term.atom.id));
        break;
      case index::Atom::Kind::quotient:
        value = kernel_.binary(Op::floor_div, index_expr(*term.atom.inner, runtime),
                               kernel_.constant(term.atom.by));
        break;
      case index::Atom::Kind::remainder:
        value = kernel_.binary(Op::floor_mod, index_expr(*term.atom.inner, runtime),
                               kernel_.constant(term.atom.by));
        break;
      case index::Atom::Kind::runtime:
        value = runtime(term.atom.id);
        break;
    }
    sum =
        kernel_.binary(Op::add, sum, kernel_.binary(Op::mul, value, kernel_.constant(term.factor)));
  }
  return sum;
}

Stitcher::Context Stitcher::context(int stage, std::vector<Expr> digits) {
  Context result{stage, std::move(digits), {}, {}};
  const Stage& from = placed_.graph.stages[stage];
  for (size_t d = 0; d < from.out.size(); ++d) {
    if (driven_[stage][d]) continue;
    const index::Range range = bounds(result.digits[d], scope_extents_);
    if (range.low < 0 || range.high >= from.out[d].extent)
      result.inside.push_back({Expr::digit(static_cast<int>(d)), 0, from.out[d].extent});
  }
  return result;
}

Expr Stitcher::in_scope(const Context& context, const Expr& x) const {
  return substitute(x, context.digits, scope_extents_);
}

ExprId Stitcher::index_in(Context* context, const Expr& x) {
  return index_expr(in_scope(*context, x), [&](int id) { return node(context, id); });
}

ExprId Stitcher::guards(Context* context, const std::vector<index::Guard>& list) {
  ExprId all;
  auto also = [&](ExprId condition) {
    all = all.valid() ? kernel_.binary(Op::and_, all, condition) : condition;
  };
  for (const index::Guard& guard : list) {
    Expr value = in_scope(*context, guard.value);
    bool holds = std::any_of(assumed_.begin(), assumed_.end(), [&](const index::Guard& known) {
      return known.value == value && known.low >= guard.low && known.high <= guard.high;
    });
    if (holds) continue;
    index::Range range = bounds(value, scope_extents_);
    if (range.high < guard.low || range.low >= guard.high)
      return emit_constant(&kernel_, Type::pred, 0);
    ExprId x = index_in(context, guard.value);
    if (range.low < guard.low) also(kernel_.compare(Op::ge, x, kernel_.constant(guard.low)));
    if (range.high >= guard.high) also(kernel_.compare(Op::lt, x, kernel_.constant(guard.high)));
  }
  return all.valid() ? all : emit_constant(&kernel_, Type::pred, 1);
}

Expr Stitcher::place_in_buffer(int stage, const Home& home, const std::vector<Expr>& digits) const {
  const Stage& from = placed_.graph.stages[stage];
  if (home.output) return substitute(from.position, digits, scope_extents_);
  Expr linear;
  if (!home.pitch.empty()) {
    for (size_t d = 0; d < home.pitch.size(); ++d)
      linear = linear + (digits[d] - home.origin[d]) * home.pitch[d];
    return linear;
  }
  const index::Region& need = placed_.placement.stages[stage].need;
  for (size_t d = 0; d < from.out.size(); ++d) {
    if (home.whole || is_filled(stage, static_cast<int>(d))) {
      linear = linear * from.out[d].extent + digits[d];
      continue;
    }
    // Offsets are over schedule loops: substitute their scope variables.
    std::vector<Expr> loops;
    for (int scope : loop_scope_) loops.push_back(scope >= 0 ? Expr::digit(scope) : Expr(0));
    Expr offset = substitute(need[d].offset, loops, scope_extents_);
    linear = linear * need[d].extent + (digits[d] - offset);
  }
  return linear;
}

// Whether serial loops fill the value along the digit, for readers after these loops.
bool Stitcher::is_filled(int stage, int digit) const {
  const stage::Placed& placed = placed_.placement.stages[stage];
  if (placed.filled == 1) return false;
  for (int number : placed.path) {
    const auto& loop = std::get<stage::Loop>(placed_.schedule.nodes[number]);
    if (loop.kind != stage::LoopKind::serial) continue;
    for (const stage::Drive& drive : loop.drives)
      if (static_cast<int>(drive.stage.index()) == stage && drive.digit == digit) return true;
  }
  return false;
}

ExprId Stitcher::load(Context* context, const stage::Load& load, Type type) {
  auto runtime = [&](int id) { return node(context, id); };
  BufferId buffer;
  Expr at;
  if (load.source.input >= 0) {
    buffer = inputs_[load.source.input];
    at = in_scope(*context, load.coordinates[0]);
  } else {
    int stage = static_cast<int>(load.source.stage.index());
    const Home& home = homes_[stage][load.source.value];
    HEDDLE_CHECK(home.kind != Home::Kind::none, "{} is read before it has a value",
                 placed_.graph.stages[stage].name);
    if (home.kind != Home::Kind::buffer) return home.value;
    std::vector<Expr> digits;
    for (const Expr& x : load.coordinates) digits.push_back(in_scope(*context, x));
    buffer = home.buffer;
    at = place_in_buffer(stage, home, digits);
  }
  ExprId index = index_expr(at, runtime);
  if (load.guards.empty() && context->inside.empty()) return kernel_.load(buffer, {index});
  ExprId other = emit_constant(&kernel_, type, 0);
  std::vector<index::Guard> all = load.guards;
  all.insert(all.end(), context->inside.begin(), context->inside.end());
  ExprId mask = guards(context, all);
  const kernel::Expr& condition = kernel_.expr(mask);
  if (condition.op == Op::constant && condition.imm) return kernel_.load(buffer, {index});
  return kernel_.load_if(buffer, {index}, mask, other);
}

ExprId Stitcher::node(Context* context, int number) {
  auto known = context->memo.find(number);
  if (known != context->memo.end()) return known->second;
  const Stage& stage = placed_.graph.stages[context->stage];
  const Node& node = stage.nodes[number];
  ExprId result;
  switch (node.kind) {
    case Node::Kind::constant:
      result = emit_constant(&kernel_, node.type, node.bits);
      break;
    case Node::Kind::index:
      result = emit_op(&kernel_, hlo::Opcode::convert, node.type, nullptr,
                       {index_in(context, node.index)});
      break;
    case Node::Kind::guard:
      result = guards(context, node.guards);
      break;
    case Node::Kind::load:
      result = load(context, stage.loads[node.load], node.type);
      break;
    case Node::Kind::op: {
      std::vector<ExprId> operands;
      if (node.opcode == hlo::Opcode::select) {
        // Only the chosen operand is emitted.
        const kernel::Expr& known = kernel_.expr(this->node(context, node.operands[0]));
        if (known.op == Op::constant) {
          result = this->node(context, node.operands[known.imm ? 1 : 2]);
          break;
        }
      }
      for (int operand : node.operands) operands.push_back(this->node(context, operand));
      if (node.fast && node.opcode == hlo::Opcode::divide &&
          !schedule::is_sum_of_exponentials(placed_.graph, stage, stage.nodes[node.operands[1]])) {
        result = emit_shared_quotient(&kernel_, operands[0], operands[1]);
        break;
      }
      result = emit_op(&kernel_, node.opcode, node.type, node.instr, operands, node.fast);
      break;
    }
  }
  context->memo.emplace(number, result);
  return result;
}

// Writes a value to wherever it is kept: its output, and scratch or a workspace.
void Stitcher::store_value(int stage, int value, const std::vector<Expr>& digits, ExprId x,
                           Block* block) {
  const Stage& from = placed_.graph.stages[stage];
  const Home& home = homes_[stage][value];
  x = emit_op(&kernel_, hlo::Opcode::convert, from.values[value].type, nullptr, {x});
  if (from.values[value].output >= 0) {
    Expr at = substitute(from.position, digits, scope_extents_);
    block->push_back(make_store(outputs_[from.values[value].output], {index_expr(at)}, x));
    block->back().streaming = streamed_[from.values[value].output] && !home.output;
  }
  if (home.kind == Home::Kind::buffer && !home.output)
    block->push_back(
        make_store(home.buffer, {index_expr(place_in_buffer(stage, home, digits))}, x));
}

void Stitcher::emit_node(int number, Block* block) {
  const stage::ScheduleNode& node = placed_.schedule.nodes[number];
  if (const stage::Loop* loop = std::get_if<stage::Loop>(&node)) {
    const int lanes = placed_.schedule.phases[0][0].lanes;
    if (loop->kind == stage::LoopKind::serial)
      for (int child : loop->body)
        if (std::holds_alternative<Row>(placed_.schedule.nodes[child]))
          emit_row_start(this, child, lanes, block);
    const ExprId trips = loop_trips(number);
    VarId var = kernel_.add_var(loop->var);
    loop_scope_[number] = add_scope(var, loop->trips);
    Block body;
    for (int child : loop->body) emit_node(child, &body);
    block->push_back(make_loop(static_cast<LoopKind>(loop->kind), var, trips, std::move(body)));
    return;
  }
  emit_row(this, number, placed_.schedule.phases[0][0].lanes, block);
}

// The trip count: smaller in the last task, if the driven digit's extent is no multiple of the
// tasks'.
ExprId Stitcher::loop_trips(int number) {
  const auto& loop = std::get<stage::Loop>(placed_.schedule.nodes[number]);
  ExprId trips = kernel_.constant(loop.trips);
  if (loop.kind != stage::LoopKind::serial) return trips;
  for (const stage::Drive& drive : loop.drives) {
    const Stage& stage = placed_.graph.stage(drive.stage);
    if (drive.digit >= static_cast<int>(stage.out.size())) continue;
    Expr first(0);
    for (int outer : placed_.placement.stages[drive.stage.index()].path) {
      if (outer == number) break;
      const auto& around = std::get<stage::Loop>(placed_.schedule.nodes[outer]);
      for (const stage::Drive& same : around.drives)
        if (same.stage == drive.stage && same.digit == drive.digit)
          first = first + Expr::digit(loop_scope_[outer]) * same.by;
    }
    const int64_t total = stage.out[static_cast<size_t>(drive.digit)].extent;
    if (bounds(first, scope_extents_).high + loop.trips * drive.by <= total) continue;
    const ExprId left = index_expr(Expr(total + drive.by - 1) - first);
    return kernel_.binary(Op::min, trips,
                          kernel_.binary(Op::floor_div, left, kernel_.constant(drive.by)));
  }
  return trips;
}

namespace {

int64_t stage_flops(const Stage& stage) {
  if (stage.kind == hlo::StageKind::dot || stage.kind == hlo::StageKind::conv)
    return 2 * stage.points();
  int64_t operators = stage.is_reduction() ? static_cast<int64_t>(stage.values.size()) : 0;
  for (const Node& node : stage.nodes) operators += node.kind == Node::Kind::op;
  return operators * stage.points();
}

}  // namespace

void Stitcher::count_phases() {
  const stage::StageGraph& graph = placed_.graph;
  result_.phase_flops.assign(kernel_.phases.size(), 0);
  result_.phase_bytes.assign(kernel_.phases.size(), 0);
  for (size_t i = 0; i < graph.stages.size(); ++i) {
    const Stage& stage = graph.stages[i];
    const auto phase = static_cast<size_t>(placed_.placement.stages[i].phase);
    result_.phase_flops[phase] += stage_flops(stage);
    const int64_t arrays = static_cast<int64_t>(stage.loads.size()) + 1;
    result_.phase_bytes[phase] += 4 * arrays * stage.out_elems() * stage.red_elems();
  }
}

Stitched Stitcher::run() {
  const stage::StageGraph& graph = placed_.graph;
  add_buffers();
  for (const auto& phase : placed_.schedule.phases) {
    kernel::Phase made;
    std::vector<bool> nests;
    for (const stage::Group& group : phase) {
      nests.resize(made.groups.size());
      if (is_chain(placed_)) {
        made.groups = emit_chain(this);
        continue;
      }
      if (is_pooled(placed_)) {
        made.groups.push_back(emit_pooled(this));
        continue;
      }
      const Row* row = std::get_if<Row>(&placed_.schedule.nodes[group.body.at(0)]);
      if (row && row->gemm()) {
        made.groups = emit_gemm(this, group.body[0]);
        continue;
      }
      if (row && row->winograd()) {
        made.groups.push_back(emit_winograd(this, group.body[0]));
        continue;
      }
      Block body;
      for (int number : group.body) emit_node(number, &body);
      kernel::Group out;
      while (body.size() == 1 && body[0].kind == kernel::StmtKind::loop &&
             body[0].loop == LoopKind::parallel) {
        out.grid.push_back({body[0].var, body[0].extent});
        Block inner = std::move(body[0].body);
        body = std::move(inner);
      }
      out.body = std::move(body);
      made.groups.push_back(std::move(out));
      nests.resize(made.groups.size(), true);
    }
    nests.resize(made.groups.size());
    result_.nests.push_back(std::move(nests));
    kernel_.phases.push_back(std::move(made));
  }
  for (const Stage& stage : graph.stages) result_.flops += stage_flops(stage);
  if (kernel_.phases.size() > 1) count_phases();
  for (const stage::Input& input : graph.inputs) result_.min_bytes += input.shape.bytes();
  for (const stage::Output& output : graph.outputs) {
    result_.min_bytes += graph.stored_bytes(output);
    result_.in_part.push_back(output.array >= 0);
    if (output.array >= 0)
      result_.min_bytes -= graph.inputs[static_cast<size_t>(output.array)].shape.bytes();
  }
  OverwrittenInputs overwritten = overwritten_inputs(placed_);
  result_.in_place = std::move(overwritten.chosen);
  result_.may_overwrite = std::move(overwritten.allowed);
  kernel_.schedule = stage::to_string(placed_.schedule, graph);
  return std::move(result_);
}

Stitched stitch(const stage::PlacedFusion& placed, const std::string& name,
                const target::Target& target, const std::vector<bool>& streamed) {
  HEDDLE_CHECK(static_cast<bool>(placed.decision), "stitch of a refused fusion: {}",
               placed.decision.reason());
  Stitched result = target.kind == target::DeviceKind::gpu
                        ? stitch_for_threads(placed, name, target)
                        : Stitcher(placed, name, target, streamed).run();
  put_boxes(placed.graph, &result.kernel);
  return result;
}

}  // namespace heddle::stitch
