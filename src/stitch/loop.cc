// A while whose step is kernels as one kernel: the state in the outputs and in scratch, the steps a
// serial loop around the step's statements (stages.md §4.10).
#include "stitch/loop.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "hlo/loop_trips.h"
#include "stitch/stitcher.h"

namespace heddle::stitch {

using hlo::Computation;
using hlo::Instr;
using hlo::Opcode;
using kernel::Space;
using tensor::Shape;

const Instr* behind_views(const Instr* value) {
  while (value->is(Opcode::reshape) || value->is(Opcode::bitcast) || value->is(Opcode::copy))
    value = value->operand(0);
  return value;
}

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
      last_read_[static_cast<size_t>(leaf)] = index_.size();  // behind it
    }
  }
}

int64_t BodyReads::leaf_of(const Instr* value) const {
  value = behind_views(value);
  return value->is(Opcode::get_tuple_element) &&
                 value->operand(0) == loop_->called()[1]->parameters()[0]
             ? value->tuple_index()
             : -1;
}

std::vector<int64_t> BodyReads::placed(const Instr* fusion, const Stitched& stitched) const {
  const Instr* root = loop_->called()[1]->root();
  const bool tuple = fusion->shape().is_tuple();
  std::vector<int64_t> result(tuple ? fusion->shape().elements().size() : 1, -1);
  const size_t here = index_.at(fusion) + 1;
  for (size_t leaf = 0; leaf < root->operands().size(); ++leaf) {
    const Instr* next = behind_views(root->operand(leaf));
    size_t r = 0;
    if (tuple) {
      if (!next->is(Opcode::get_tuple_element) || next->operand(0) != fusion) continue;
      r = static_cast<size_t>(next->tuple_index());
    } else if (next != fusion) {
      continue;
    }
    if (result[r] >= 0 || last_read_[leaf] > here) continue;
    if (last_read_[leaf] == here) {
      // It reads the state itself: once, where it may overwrite it.
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
      Block steps = loop(instr);
      kernel::Group group;
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

  BufferId scratch(const std::string& name, Type type, int64_t elems) {
    kernel::Buffer made;
    made.name = name;
    made.type = type;
    made.extents = {elems};
    made.space = Space::scratch;
    made.offset_bytes = k_.scratch_bytes;
    k_.scratch_bytes += (elems * tensor::type_bytes(type) + 63) / 64 * 64;
    return k_.add_buffer(std::move(made));
  }

  // --- Values and where they lie. ---

  BufferId leaf(const Instr* value) {
    if (value->is(Opcode::get_tuple_element))
      return values_.at(value->operand(0)).at(static_cast<size_t>(value->tuple_index()));
    value = behind_views(value);
    if (value->is(Opcode::get_tuple_element)) return leaf(value);
    if (!value->is(Opcode::constant)) return values_.at(value).at(0);
    Buffers& made = constants_[value];
    if (made.empty()) {
      made.push_back(scratch("constant", value->shape().type(), 1));
      prologue_.push_back(make_store(made[0], {k_.constant(0)}, scalar(value)));
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

  // --- One loop. ---

  Block loop(const Instr* loop) {
    const Computation& body = *loop->called()[1];
    const int64_t trips = *hlo::known_trips(loop);
    for (const Instr* instr : body.instrs())
      if (instr->is(Opcode::fusion))
        k_.scratch_bytes = std::max(k_.scratch_bytes, kernel_of_(instr).kernel.scratch_bytes);
    k_.scratch_bytes = (k_.scratch_bytes + 63) / 64 * 64;
    const Buffers state = place_state(loop);
    values_[body.parameters()[0]] = state;
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

  // What changes has its place in the output that it is in the end, or in scratch.
  Buffers place_state(const Instr* loop) {
    const Instr* init = loop->operand(0);
    Buffers state;
    for (size_t i = 0; i < init->operands().size(); ++i) {
      const BufferId from = leaf(init->operand(i));
      if (hlo::goes_round(loop, static_cast<int64_t>(i))) {
        state.push_back(from);
        continue;
      }
      const Shape& shape = init->operand(i)->shape();
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
      if (!place.valid()) place = scratch("state", shape.type(), shape.elems());
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
    for (size_t r = 0; r < placed.size(); ++r) {
      const Shape& shape =
          fusion->shape().is_tuple() ? fusion->shape().elements()[r] : fusion->shape();
      results.push_back(placed[r] >= 0 ? state[static_cast<size_t>(placed[r])]
                                       : scratch("value", shape.type(), shape.elems()));
      globals.push_back(results.back());
    }
    const int64_t global_count = inner.kernel.global_count();
    for (int64_t b = std::ssize(globals); b < global_count; ++b) {
      const kernel::Buffer& workspace = inner.kernel.buffers[static_cast<size_t>(b)];
      globals.push_back(scratch("workspace", workspace.type, workspace.extents.at(0)));
    }
    for (Stmt& stmt : inline_kernel(inner.kernel, globals, &k_)) step->push_back(std::move(stmt));
    result_.flops += trips * inner.flops;
  }

  // The box into the array where it lies.
  void update(const Instr* instr, Block* step) {
    const BufferId array = leaf(instr->operand(0)), box = leaf(instr->operand(1));
    values_[instr] = {array};
    const std::vector<int64_t> all = instr->shape().extents();
    const std::vector<int64_t> extents = instr->operand(1)->shape().extents();
    ExprId to = k_.constant(0), from = k_.constant(0);
    int64_t stride = instr->shape().elems(), box_stride = instr->operand(1)->shape().elems();
    if (box_stride == 0) return;
    std::vector<std::pair<VarId, int64_t>> loops;
    for (size_t d = 0; d < all.size(); ++d) {
      stride /= all[d];
      box_stride /= extents[d];
      if (all[d] > extents[d])
        to = k_.binary(Op::add, to, start(instr->operand(2 + d), all[d] - extents[d], stride));
      if (extents[d] == 1) continue;
      const VarId i = k_.add_var("i");
      loops.emplace_back(i, extents[d]);
      to = k_.binary(Op::add, to, k_.binary(Op::mul, k_.ref(i), k_.constant(stride)));
      from = k_.binary(Op::add, from, k_.binary(Op::mul, k_.ref(i), k_.constant(box_stride)));
    }
    Block body;
    body.push_back(make_store(array, {to}, k_.load(box, {from})));
    for (size_t l = loops.size(); l-- > 0;) {
      const bool vector = l + 1 == loops.size();
      Block around;
      around.push_back(make_loop(vector ? LoopKind::vector : LoopKind::serial, loops[l].first,
                                 k_.constant(loops[l].second), std::move(body),
                                 vector ? lanes_ : 0));
      body = std::move(around);
    }
    for (Stmt& stmt : body) step->push_back(std::move(stmt));
  }

  // Where a box begins in one dimension, in elements of the array.
  ExprId start(const Instr* value, int64_t limit, int64_t stride) {
    ExprId at;
    if (behind_views(value)->is(Opcode::constant)) {
      at = k_.constant(std::clamp<int64_t>(behind_views(value)->literal().get_s64(0), 0, limit));
    } else {
      at = k_.convert(k_.load(leaf(value), {k_.constant(0)}), Type::s64);
      at = k_.binary(Op::min, k_.binary(Op::max, at, k_.constant(0)), k_.constant(limit));
    }
    return k_.binary(Op::mul, at, k_.constant(stride));
  }

  // The next state becomes the state. What lies where another one will be put is read before.
  void hand_on(const Computation& body, const Buffers& state, Block* step) {
    const std::vector<Instr*>& next = body.root()->operands();
    Buffers from;
    for (size_t i = 0; i < next.size(); ++i) {
      from.push_back(leaf(next[i]));
      if (from[i] == state[i] || std::find(state.begin(), state.end(), from[i]) == state.end())
        continue;
      const kernel::Buffer& buffer = k_.buffer(from[i]);
      const BufferId saved = scratch("saved", buffer.type, buffer.extents[0]);
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
};

}  // namespace

Stitched stitch_loop(const Computation& computation, const std::string& name,
                     const target::Target& target, const KernelOf& kernel_of) {
  return LoopStitcher(computation, name, target, kernel_of).run();
}

}  // namespace heddle::stitch
