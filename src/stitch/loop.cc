// A while loop of kernels as one kernel: the state is in the outputs and in scratch, and a serial
// loop runs the statements of a step (stages.md §4.10).
#include "stitch/loop.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "hlo/leaves.h"
#include "hlo/loop_trips.h"
#include "stitch/stitcher.h"

namespace heddle::stitch {

using hlo::Computation;
using hlo::Instr;
using hlo::Opcode;
using kernel::Space;
using tensor::Shape;

BodyReads::BodyReads(const Instr* loop) : loop_(loop) {
  const Computation& body = *loop->called()[1];
  last_read_.assign(body.root()->operands().size(), 0);
  for (const Instr* instr : body.instrs()) {
    index_.emplace(instr, index_.size());
    const bool reads = instr->is(Opcode::fusion) || instr->is(Opcode::dynamic_update_slice) ||
                       instr == body.root();
    if (!reads) continue;
    for (size_t o = 0; o < instr->operands().size(); ++o) {
      const int64_t leaf = leaf_of(instr->operand(o));
      if (leaf < 0 || (instr == body.root() && leaf == static_cast<int64_t>(o))) continue;
      last_read_[static_cast<size_t>(leaf)] = index_.size();  // 1 + its position
    }
  }
}

int64_t BodyReads::leaf_of(const Instr* value) const {
  const hlo::Origin from = hlo::origin_of(value);
  const bool is_state = from.maker == loop_->called()[1]->parameters()[0];
  return is_state ? static_cast<int64_t>(from.leaf) : -1;
}

std::vector<int64_t> BodyReads::placed(const Instr* fusion, const Stitched& stitched) const {
  const Instr* root = loop_->called()[1]->root();
  std::vector<int64_t> result(hlo::leaves_of(fusion->shape()).size(), -1);
  const size_t here = index_.at(fusion) + 1;
  for (size_t leaf = 0; leaf < root->operands().size(); ++leaf) {
    const auto [maker, r] = hlo::origin_of(root->operand(leaf));
    if (maker != fusion || result[r] >= 0 || last_read_[leaf] > here) continue;
    if (last_read_[leaf] == here) {
      // The last reader itself: allowed if it reads the leaf once and may overwrite it.
      int64_t reads = 0, allowed = 0;
      for (size_t o = 0; o < fusion->operands().size(); ++o) {
        if (leaf_of(fusion->operand(o)) != static_cast<int64_t>(leaf)) continue;
        ++reads;
        allowed += r < stitched.in_place.size() && stitched.in_place[r] == static_cast<int>(o);
      }
      if (reads != 1 || allowed != 1) continue;
    }
    result[r] = static_cast<int64_t>(leaf);
  }
  return result;
}

namespace {

class LoopStitcher {
 public:
  LoopStitcher(const Computation& computation, const std::string& name,
               const target::Target& target, const KernelOf& kernel_of)
      : computation_(computation),
        kernel_of_(kernel_of),
        lanes_(target.lanes(Type::f32)),
        k_(result_.kernel) {
    k_.name = name;
    k_.target = target.name;
    for (const Instr* parameter : computation.parameters()) {
      values_[parameter] = {
          global(fmt::format("in{}", values_.size()), parameter->shape(), kernel::Access::in)};
      result_.min_bytes += parameter->shape().bytes();
    }
    const Instr* root = computation.root();
    const std::vector<Instr*> outputs =
        root->is(Opcode::tuple) ? root->operands() : std::vector<Instr*>{const_cast<Instr*>(root)};
    for (const Instr* output : outputs) {
      outputs_.push_back(output);
      out_.push_back(
          global(fmt::format("out{}", out_.size()), output->shape(), kernel::Access::out));
      result_.min_bytes += output->shape().bytes();
    }
    result_.in_place.assign(out_.size(), -1);
  }

  Stitched run() {
    k_.phases.resize(1);
    for (const Instr* instr : computation_.instrs()) {
      if (!instr->is(Opcode::while_)) continue;
      prologue_.clear();
      constants_.clear();  // each group has its own
      kernel::Group group;
      Block steps = hlo::is_strips(instr) ? strips(instr, &group) : loop(instr);
      group.body = std::move(prologue_);
      for (Stmt& stmt : steps) group.body.push_back(std::move(stmt));
      k_.phases[0].groups.push_back(std::move(group));
    }
    return std::move(result_);
  }

 private:
  BufferId global(const std::string& name, const Shape& shape, kernel::Access access) {
    kernel::Buffer made;
    made.name = name;
    made.type = shape.type();
    made.extents = {shape.elems()};
    made.access = access;
    return k_.add_buffer(std::move(made));
  }

  // --- Values and their buffers. ---

  BufferId leaf(const Instr* value) {
    const auto [maker, number] = hlo::origin_of(value);
    if (!maker->is(Opcode::constant)) return values_.at(maker).at(number);
    Buffers& made = constants_[maker];
    if (made.empty()) {
      made.push_back(k_.add_scratch("constant", maker->shape().type(), 1));
      prologue_.push_back(make_store(made[0], {k_.constant(0)}, scalar(maker)));
    }
    return made[0];
  }

  ExprId scalar(const Instr* constant) {
    uint64_t bits = 0;
    const tensor::Literal& value = constant->literal();
    std::memcpy(&bits, value.data(), static_cast<size_t>(tensor::type_bytes(value.type())));
    return emit_constant(&k_, value.type(), bits);
  }

  void copy(BufferId from, BufferId to, Block* block) {
    const int64_t elems = k_.buffer(to).extents[0];
    if (from == to || elems == 0) return;
    const VarId i = k_.add_var("i");
    Stmt store = make_store(to, {k_.ref(i)}, k_.load(from, {k_.ref(i)}));
    const LoopKind kind = elems == 1 ? LoopKind::serial : LoopKind::vector;
    block->push_back(make_loop(kind, i, k_.constant(elems), {store}, elems == 1 ? 0 : lanes_));
  }

  // The kernels of a step use scratch from offset 0 on.
  void reserve_scratch(const Computation& body) {
    for (const Instr* instr : body.instrs())
      if (instr->is(Opcode::fusion))
        k_.scratch_bytes = std::max(k_.scratch_bytes, kernel_of_(instr).kernel.scratch_bytes);
  }

  // --- One loop. ---

  Block loop(const Instr* loop) {
    const Computation& body = *loop->called()[1];
    const int64_t trips = *hlo::known_trips(loop);
    reserve_scratch(body);
    const Buffers state = place_state(loop);
    values_[body.parameters()[0]] = values_[loop] = state;
    const BodyReads reads(loop);
    Block step;
    for (const Instr* instr : body.instrs()) {
      if (instr->is(Opcode::fusion)) {
        add_fusion(instr, trips, reads.placed(instr, kernel_of_(instr)), state, &step);
      } else if (instr->is(Opcode::dynamic_update_slice)) {
        update(instr, &step);
      }
    }
    hand_on(body, state, &step);
    Block result;
    result.push_back(
        make_loop(LoopKind::serial, k_.add_var("step"), k_.constant(trips), std::move(step)));
    return result;
  }

  // --- Strips of rows: one task per strip. ---

  Block strips(const Instr* loop, kernel::Group* group) {
    const Computation& body = *loop->called()[1];
    strip_ = k_.add_var("strip");
    group->grid.push_back({strip_, k_.constant(*hlo::known_trips(loop))});
    rows_ = body.root()->operand(1)->operand(1)->literal().get_s64(0);
    const Instr *init = loop->operand(0), *state = body.parameters()[0];
    for (const Instr* instr : body.instrs())
      if (instr->is(Opcode::while_)) reserve_scratch(*instr->called()[1]);
    Buffers leaves;
    for (int64_t i = 0; i < std::ssize(init->operands()); ++i) {
      const Instr* value = init->operand(static_cast<size_t>(i));
      if (i < 2) {  // the strip, its first row
        const Type type = value->shape().type();
        leaves.push_back(k_.add_scratch("strip", type, 1));
        const ExprId number = k_.binary(Op::mul, k_.ref(strip_), k_.constant(i == 0 ? 1 : rows_));
        prologue_.push_back(make_store(leaves.back(), {k_.constant(0)}, k_.convert(number, type)));
      } else if (hlo::is_invariant_leaf(loop, i)) {
        leaves.push_back(leaf(value));
      } else {
        leaves.push_back(result_of_strips(loop, i));
      }
    }
    values_[state] = leaves;
    Block result;
    for (const Instr* instr : body.instrs()) {
      if (instr->is(Opcode::dynamic_slice)) {
        values_[instr] = {k_.add_scratch("rows", instr->shape().type(), instr->shape().elems())};
        move_box({leaf(instr->operand(0)), values_[instr][0], instr, 1, instr->operand(0)->shape(),
                  instr->shape()},
                 /*into_box=*/true, &result);
      } else if (instr->is(Opcode::while_)) {
        Block before = std::exchange(prologue_, {});
        Block steps = this->loop(instr);
        for (Stmt& stmt : prologue_) result.push_back(std::move(stmt));
        for (Stmt& stmt : steps) result.push_back(std::move(stmt));
        prologue_ = std::move(before);
      } else if (instr->is(Opcode::dynamic_update_slice)) {
        update(instr, &result);
      }
    }
    return result;
  }

  // The output that holds leaf i of a loop over strips; the strip's part of it is initialised with
  // the leaf's value before the loop.
  BufferId result_of_strips(const Instr* loop, int64_t i) {
    size_t o = 0;
    while (o < outputs_.size() &&
           !(outputs_[o]->is(Opcode::get_tuple_element) && outputs_[o]->operand(0) == loop &&
             outputs_[o]->tuple_index() == i))
      ++o;
    HEDDLE_CHECK(o < outputs_.size(), "leaf {} of {} is no output", i, loop->name());
    const Instr* value = loop->operand(0)->operand(static_cast<size_t>(i));
    if (hlo::is_unread(value)) return out_[o];
    if (value->is(Opcode::parameter) && is_read_once(value))
      result_.in_place[o] = static_cast<int>(value->parameter_number());
    const Shape& shape = value->shape();
    const int64_t dim = rows_dim(loop, i);
    int64_t before = 1, run = 1;
    for (int64_t d = 0; d < shape.rank(); ++d) (d < dim ? before : run) *= shape.dim(d);
    const int64_t part = run / *hlo::known_trips(loop);
    const VarId outer = k_.add_var("i"), inner = k_.add_var("i");
    ExprId at = k_.binary(Op::mul, k_.ref(outer), k_.constant(run));
    at = k_.binary(Op::add, at, k_.binary(Op::mul, k_.ref(strip_), k_.constant(part)));
    at = k_.binary(Op::add, at, k_.ref(inner));
    const ExprId x =
        value->is(Opcode::broadcast) ? scalar(value->operand(0)) : k_.load(leaf(value), {at});
    Block body;
    body.push_back(make_loop(LoopKind::vector, inner, k_.constant(part),
                             {make_store(out_[o], {at}, x)}, lanes_));
    prologue_.push_back(make_loop(LoopKind::serial, outer, k_.constant(before), std::move(body)));
    return out_[o];
  }

  // The dimension of leaf i that is cut into strips: its updates start there at the strip's row.
  static int64_t rows_dim(const Instr* loop, int64_t i) {
    const Computation* body = loop->called()[1];
    const Instr* next = body->root()->operand(static_cast<size_t>(i));
    int64_t last = 2;  // leaves with the row: the first two, or the last one of a step
    if (next->is(Opcode::get_tuple_element)) {
      body = next->operand(0)->called()[1];
      next = body->root()->operand(static_cast<size_t>(next->tuple_index()));
      last = 0;
    }
    const auto count = std::ssize(body->root()->operands());
    for (int64_t d = 0; d < next->shape().rank(); ++d) {
      const Instr* start = next->operand(static_cast<size_t>(2 + d));
      if (start->is(Opcode::get_tuple_element) && start->operand(0) == body->parameters()[0] &&
          (last > 0 ? start->tuple_index() < last : start->tuple_index() == count - 1))
        return d;
    }
    HEDDLE_UNREACHABLE("{} has no rows", next->name());
  }

  // Whether this task may keep its state in the buffer: part of an output, or the copy of a slice.
  bool is_own(BufferId buffer) const {
    const kernel::Buffer& what = k_.buffer(buffer);
    return (what.space == Space::global && what.access == kernel::Access::out) ||
           what.name == "rows";
  }

  // Leaves of the state that change are stored in the output that they become, or in scratch.
  Buffers place_state(const Instr* loop) {
    const Instr* init = loop->operand(0);
    Buffers state;
    for (size_t i = 0; i < init->operands().size(); ++i) {
      const BufferId from = leaf(init->operand(i));
      if (hlo::is_invariant_leaf(loop, static_cast<int64_t>(i))) {
        state.push_back(from);
        continue;
      }
      const Shape& shape = init->operand(i)->shape();
      if (is_own(from)) {
        state.push_back(from);
        continue;
      }
      BufferId place;
      for (size_t o = 0; o < outputs_.size() && !place.valid(); ++o) {
        const Instr* output = outputs_[o];
        if (!output->is(Opcode::get_tuple_element) || output->operand(0) != loop ||
            output->tuple_index() != static_cast<int64_t>(i))
          continue;
        place = out_[o];
        if (init->operand(i)->is(Opcode::parameter) && is_read_once(init->operand(i)))
          result_.in_place[o] = static_cast<int>(init->operand(i)->parameter_number());
      }
      if (!place.valid()) place = k_.add_scratch("state", shape.type(), shape.elems());
      copy(from, place, &prologue_);
      state.push_back(place);
    }
    return state;
  }

  static bool is_read_once(const Instr* parameter) {
    if (parameter->users().size() != 1) return false;
    const std::vector<Instr*>& operands = parameter->users()[0]->operands();
    return std::count(operands.begin(), operands.end(), parameter) == 1;
  }

  void add_fusion(const Instr* fusion, int64_t trips, const std::vector<int64_t>& placed,
                  const Buffers& state, Block* step) {
    const Stitched& inner = kernel_of_(fusion);
    Buffers globals;
    for (const Instr* operand : fusion->operands()) globals.push_back(leaf(operand));
    Buffers& results = values_[fusion];
    results.clear();
    const std::vector<Shape> shapes = hlo::leaves_of(fusion->shape());
    for (size_t r = 0; r < placed.size(); ++r) {
      const Shape& shape = shapes[r];
      results.push_back(placed[r] >= 0 ? state[static_cast<size_t>(placed[r])]
                                       : k_.add_scratch("value", shape.type(), shape.elems()));
      globals.push_back(results.back());
    }
    const int64_t global_count = inner.kernel.global_count();
    for (int64_t b = std::ssize(globals); b < global_count; ++b) {
      const kernel::Buffer& workspace = inner.kernel.buffers[static_cast<size_t>(b)];
      globals.push_back(k_.add_scratch("workspace", workspace.type, workspace.extents.at(0)));
    }
    for (Stmt& stmt : inline_kernel(inner.kernel, globals, &k_)) step->push_back(std::move(stmt));
    result_.flops += trips * inner.flops;
  }

  // Stores the update into its array, in place.
  void update(const Instr* instr, Block* step) {
    const BufferId array = leaf(instr->operand(0));
    values_[instr] = {array};
    move_box({array, leaf(instr->operand(1)), instr, 2, instr->shape(), instr->operand(1)->shape()},
             /*into_box=*/false, step);
  }

  // A slice of an array; operand `first` of `instr` is its start index in the first dimension.
  struct Box {
    BufferId array, box;
    const Instr* instr;
    size_t first;
    const Shape& all_shape;
    const Shape& box_shape;
  };

  void move_box(const Box& box, bool into_box, Block* block) {
    const std::vector<int64_t> all = box.all_shape.extents(), extents = box.box_shape.extents();
    if (box.box_shape.elems() == 0) return;
    struct Run {
      int64_t extent, stride, box_stride;
    };
    std::vector<Run> runs;  // innermost first; contiguous ones are merged
    ExprId to = k_.constant(0), from = k_.constant(0);
    int64_t stride = 1, box_stride = 1;
    for (size_t d = all.size(); d-- > 0;) {
      if (all[d] > extents[d])
        to = k_.binary(Op::add, to,
                       start(box.instr->operand(box.first + d), all[d] - extents[d], stride));
      const bool runs_on = !runs.empty() && runs.back().stride * runs.back().extent == stride &&
                           runs.back().box_stride * runs.back().extent == box_stride;
      if (runs_on)
        runs.back().extent *= extents[d];
      else if (extents[d] > 1)
        runs.push_back({extents[d], stride, box_stride});
      stride *= all[d];
      box_stride *= extents[d];
    }
    std::vector<VarId> vars;
    for (const Run& run : runs) {
      vars.push_back(k_.add_var("i"));
      const ExprId i = k_.ref(vars.back());
      to = k_.binary(Op::add, to, k_.binary(Op::mul, i, k_.constant(run.stride)));
      from = k_.binary(Op::add, from, k_.binary(Op::mul, i, k_.constant(run.box_stride)));
    }
    Block body;
    body.push_back(into_box ? make_store(box.box, {from}, k_.load(box.array, {to}))
                            : make_store(box.array, {to}, k_.load(box.box, {from})));
    for (size_t l = 0; l < runs.size(); ++l) {
      Block around;
      around.push_back(make_loop(l == 0 ? LoopKind::vector : LoopKind::serial, vars[l],
                                 k_.constant(runs[l].extent), std::move(body),
                                 l == 0 ? lanes_ : 0));
      body = std::move(around);
    }
    for (Stmt& stmt : body) block->push_back(std::move(stmt));
  }

  // Offset of a slice's start in one dimension, in elements of the array.
  ExprId start(const Instr* value, int64_t limit, int64_t stride) {
    ExprId at;
    if (const Instr* maker = hlo::origin_of(value).maker; maker->is(Opcode::constant)) {
      at = k_.constant(std::clamp<int64_t>(maker->literal().get_s64(0), 0, limit));
    } else {
      at = k_.convert(k_.load(leaf(value), {k_.constant(0)}), Type::s64);
      at = k_.binary(Op::min, k_.binary(Op::max, at, k_.constant(0)), k_.constant(limit));
    }
    return k_.binary(Op::mul, at, k_.constant(stride));
  }

  // Copies the next state to the state. Values in memory that another copy overwrites are saved
  // first.
  void hand_on(const Computation& body, const Buffers& state, Block* step) {
    const std::vector<Instr*>& next = body.root()->operands();
    Buffers from;
    for (size_t i = 0; i < next.size(); ++i) {
      from.push_back(leaf(next[i]));
      if (from[i] == state[i] || std::find(state.begin(), state.end(), from[i]) == state.end())
        continue;
      const kernel::Buffer& buffer = k_.buffer(from[i]);
      const BufferId saved = k_.add_scratch("saved", buffer.type, buffer.extents[0]);
      copy(from[i], saved, step);
      from[i] = saved;
    }
    for (size_t i = 0; i < next.size(); ++i) copy(from[i], state[i], step);
  }

  const Computation& computation_;
  const KernelOf& kernel_of_;
  const int lanes_;
  Stitched result_;
  kernel::Kernel& k_;
  std::vector<const Instr*> outputs_;
  Buffers out_;
  std::unordered_map<const Instr*, Buffers> values_, constants_;
  Block prologue_;
  VarId strip_;       // number of the task, where the loop is one over strips
  int64_t rows_ = 0;  // of a strip
};

}  // namespace

Stitched stitch_loop(const Computation& computation, const std::string& name,
                     const target::Target& target, const KernelOf& kernel_of) {
  return LoopStitcher(computation, name, target, kernel_of).run();
}

}  // namespace heddle::stitch
