#include "fuse/cut_loop.h"

#include <algorithm>

#include "cost/step_cost.h"
#include "fuse/kernel_order.h"
#include "fuse/new_fusion.h"
#include "fuse/strips.h"
#include "hlo/loop_trips.h"
#include "schedule/place.h"

namespace heddle::fuse {

namespace {

constexpr size_t kMostTogether = 8, kMostKernels = 32;
constexpr int64_t kMostStateBytes = int64_t{2} << 20;  // of the whole state before a step
constexpr double kStripGain = 0.1;                     // of a step's time

bool is_view_of_all(const Instr* instr) {
  return (instr->is(Opcode::reshape) || instr->is(Opcode::bitcast) || instr->is(Opcode::copy)) &&
         instr->shape().is_array() && instr->operand(0)->shape().is_array() &&
         instr->shape().type() == instr->operand(0)->shape().type() &&
         instr->shape().elems() == instr->operand(0)->shape().elems();
}

// Whether a kernel accesses an array as one of words (packed weights, the image of groups that
// share lanes): in the loop's kernel an array has a single type.
bool sees_words(const Instr* fusion, const target::Target& target) {
  const stage::PlacedFusion placed = schedule::place(*fusion->called()[0], target);
  return std::ranges::any_of(placed.schedule.nodes, [](const stage::ScheduleNode& node) {
    const auto* row = std::get_if<stage::Row>(&node);
    if (!row) return false;
    if (row->gemm()) return row->gemm()->record.word() > 1 && row->gemm()->shape.b_panel > 0;
    return row->nest() && row->nest()->mma->is_dot();
  });
}

bool is_plain(const tensor::Shape& shape) { return shape.is_array() && shape.is_static(); }

class LoopFormer {
 public:
  LoopFormer(Instr* loop, const target::Target& target) : loop_(loop), target_(target) {
    body_ = loop->called()[1];
    state_ = body_->parameters()[0];
  }

  // Whether one kernel could run all its steps; has_room() says whether its values fit.
  Decision may_form() {
    const auto trips = hlo::known_trips(loop_);
    if (!trips)
      return Decision::no("loop-count", "the trip count of {} is not known", loop_->name());
    trips_ = *trips;
    if (!body_->root()->is(Opcode::tuple))
      return Decision::no("loop-state", "the next state is not a tuple");
    for (const tensor::Shape& shape : loop_->shape().elements())
      if (!is_plain(shape))
        return Decision::no("loop-state", "its state holds {}", tensor::to_string(shape));
    find_invariant();
    Decision decision = check_body();
    if (decision) decision = check_state();
    if (decision) decision = measure();
    return decision;
  }

  Decision has_room() const {
    if (state_bytes_ > kMostStateBytes)
      return Decision::no("loop-state", "its state has {} bytes", state_bytes_);
    if (value_bytes_ > stage::scratch_limit(target_))
      return Decision::no("loop-state", "a step makes {} bytes", value_bytes_);
    return Decision::yes();
  }

  // Adds the loop, cut into strips of its rows, to `fusion`, if that is predicted to take less than
  // a step of `now_ns`.
  Decision add_strips_to(NewFusion* fusion, double now_ns) {
    Instr* loop = add_loop(fusion);
    find_leaves();
    if (Decision cut = cut_into_strips(loop, leaves_, target_, &strips_); !cut) return cut;
    if (const double cut_ns = strips_.step_ns; cut_ns > (1 - kStripGain) * now_ns) {
      strips_ = {};
      return Decision::no("loop-work", "a step of {:.1f} us takes {:.1f} us in strips",
                          now_ns / 1000, cut_ns / 1000);
    }
    add_outputs(fusion, strips_.loop, kStripLeaves);
    return Decision::yes();
  }

  const cost::StepCost& cost() const { return cost_; }

  // Whether both take about the same time, so that two cores are busy to the end.
  bool is_like(const LoopFormer& other) const {
    const double a = static_cast<double>(trips_) * cost_.alone_ns,
                 b = static_cast<double>(other.trips_) * other.cost_.alone_ns;
    return a <= 2 * b && b <= 2 * a;
  }

  const Instr* loop() const { return loop_; }

  std::string name() const { return loop_->name(); }
  std::string body_name() const { return body_->name(); }

  // Adds the loop, its operands and its outputs to `fusion`.
  void add_to(NewFusion* fusion) {
    Instr* loop = add_loop(fusion);
    find_leaves();
    add_outputs(fusion, loop, 0);
  }

  // Readers of the loop read the fusion's outputs (`values`) instead.
  void redirect(const std::vector<Instr*>& values) {
    Computation* parent = loop_->parent();
    std::unordered_map<int64_t, Instr*> known;
    auto value = [&](int64_t i) {
      Instr*& made = known[i];
      if (made) return made;
      const auto at = std::find(leaves_.begin(), leaves_.end(), i);
      if (at == leaves_.end()) return made = outside(i);
      made = values[first_output_ + static_cast<size_t>(at - leaves_.begin())];
      if (strips_.loop && strips_.uses[static_cast<size_t>(i)] == LeafUse::summed)
        made = add_strips(parent, made, outside(i));
      return made;
    };
    for (Instr* user : std::vector<Instr*>(loop_->users()))
      if (user->is(Opcode::get_tuple_element))
        parent->replace_all_uses(user, value(user->tuple_index()));
    if (!read_whole_) return;
    std::vector<Instr*> all;
    for (int64_t i = 0; i < std::ssize(loop_->shape().elements()); ++i) all.push_back(value(i));
    parent->replace_all_uses(loop_, parent->add(Opcode::tuple, loop_->shape(), all));
  }

 private:
  // --- Forming it. ---

  Instr* add_loop(NewFusion* fusion) {
    hlo::Module* module = loop_->parent()->module();
    Computation* made = fusion->computation;
    std::vector<Instr*> init;
    for (int64_t i = 0; i < std::ssize(loop_->shape().elements()); ++i)
      init.push_back(fusion->inside(outside(i)));
    Computation* condition = module->clone_computation(*loop_->called()[0]);
    Computation* body = module->clone_computation(*body_);
    for (Instr* value : hoist(body)) init.push_back(fusion->parameter(value));
    std::vector<tensor::Shape> shapes;
    for (const Instr* value : init) shapes.push_back(value->shape());
    const tensor::Shape shape = tensor::Shape::make_tuple(shapes);
    condition->parameters()[0]->set_shape(shape);
    Instr* loop = made->add(Opcode::while_, shape, {made->add(Opcode::tuple, shape, init)}, {},
                            {condition, body}, loop_->name());
    loop->add_nodes(loop_->nodes());
    hlo::set_trips(loop, trips_);
    return loop;
  }

  // Adds the leaves that are read after the loop as outputs: leaf i is leaf i + `before` of `loop`.
  void add_outputs(NewFusion* fusion, Instr* loop, int64_t before) {
    first_output_ = fusion->outputs.size();
    for (int64_t i : leaves_)
      fusion->outputs.push_back(fusion->computation->add(
          Opcode::get_tuple_element, loop->shape().elements()[static_cast<size_t>(i + before)],
          {loop}, hlo::TupleIndexAttrs{i + before}));
  }

  // --- What may be one kernel. ---

  void find_invariant() {
    for (const Instr* instr : body_->instrs()) {
      if (instr->is(Opcode::get_tuple_element) && instr->operand(0) == state_) {
        if (hlo::is_invariant_leaf(loop_, instr->tuple_index())) invariant_.insert(instr);
        continue;
      }
      if (instr->is(Opcode::constant)) {
        invariant_.insert(instr);
      } else if (!instr->operands().empty() || instr->is(Opcode::fusion)) {
        if (!has_trait(instr->opcode(), hlo::pure) && !instr->is(Opcode::fusion) &&
            !instr->is(Opcode::get_tuple_element))
          continue;
        if (instr != body_->root() && !hlo::has_effect(*instr) &&
            std::all_of(instr->operands().begin(), instr->operands().end(),
                        [&](const Instr* operand) { return invariant_.count(operand) > 0; }))
          invariant_.insert(instr);
      }
    }
  }

  Decision check_body() const {
    for (const Instr* instr : body_->instrs()) {
      if (invariant_.count(instr) || instr == state_ || instr == body_->root()) continue;
      if (!instr->control_predecessors().empty())
        return Decision::no("loop-body", "{} depends on another one", instr->name());
      if (instr->is(Opcode::get_tuple_element) || is_view_of_all(instr)) continue;
      if (instr->is(Opcode::fusion)) continue;
      if (!instr->is(Opcode::dynamic_update_slice) || !is_update(instr))
        return Decision::no("loop-body", "{} ({}) is not a kernel", instr->name(),
                            hlo::opcode_text(instr->opcode()));
    }
    return Decision::yes();
  }

  static const Instr* source(const Instr* value) {
    while (is_view_of_all(value)) value = value->operand(0);
    return value;
  }

  // The leaf of the state whose memory holds `value`; -1: none.
  int64_t leaf_of(const Instr* value) const {
    value = source(value);
    while (value->is(Opcode::dynamic_update_slice)) value = source(value->operand(0));
    if (!value->is(Opcode::get_tuple_element) || value->operand(0) != state_) return -1;
    return value->tuple_index();
  }

  // Updates of the state are done in place, so every other reader of the old state must run first,
  // and the result must be the next state.
  Decision check_state() {
    const std::vector<Instr*>& next = body_->root()->operands();
    for (size_t i = 0; i < next.size(); ++i)
      if (!hlo::is_invariant_leaf(loop_, static_cast<int64_t>(i)) && !is_collected(i))
        state_bytes_ += next[i]->shape().bytes();
    for (size_t n = body_->instrs().size(); n-- > 0;) {
      const Instr* instr = body_->instrs()[n];
      if (!instr->is(Opcode::dynamic_update_slice) || invariant_.count(instr)) continue;
      const int64_t leaf = leaf_of(instr);
      if (leaf < 0 || hlo::is_invariant_leaf(loop_, leaf))
        return Decision::no("loop-state", "{} overwrites an array that is not state of the loop",
                            instr->name());
      if (!all_before(source(instr->operand(0)), instr))
        return Decision::no("loop-state", "the array that {} overwrites is read after it",
                            instr->name());
      const Instr* last = source(next[static_cast<size_t>(leaf)]);
      if (leaf_of(last) != leaf)
        return Decision::no("loop-state", "{} is not the next state", instr->name());
    }
    return Decision::yes();
  }

  // Whether leaf i is updated in slices and is only memory of the result: it costs what its
  // commands would, a copy at the start.
  bool is_collected(size_t i) const {
    const Instr* next = source(body_->root()->operands()[i]);
    return next->is(Opcode::dynamic_update_slice) && is_read(static_cast<int64_t>(i));
  }

  bool is_read(int64_t leaf) const {
    return loop_->parent()->root() == loop_ ||
           std::any_of(loop_->users().begin(), loop_->users().end(), [&](const Instr* user) {
             return !user->is(Opcode::get_tuple_element) || user->tuple_index() == leaf;
           });
  }

  // Whether all readers of `value`, or of a view of it, come before `last` or are it.
  bool all_before(const Instr* value, const Instr* last) const {
    std::vector<const Instr*> work;
    for (const Instr* instr : body_->instrs())
      if (source(instr) == value || reads_state(instr, value)) work.push_back(instr);
    std::unordered_set<const Instr*> before;
    for (const Instr* instr : body_->instrs()) {
      before.insert(instr);
      if (instr == last) break;
    }
    for (const Instr* view : work)
      for (const Instr* user : view->users())
        if (!is_view_of_all(user) && !before.count(user)) return false;
    return true;
  }
  // Whether `instr` reads the same leaf of the state as `value`.
  bool reads_state(const Instr* instr, const Instr* value) const {
    return value->is(Opcode::get_tuple_element) && value->operand(0) == state_ &&
           source(instr)->is(Opcode::get_tuple_element) && source(instr)->operand(0) == state_ &&
           source(instr)->tuple_index() == value->tuple_index();
  }

  // --- Whether it pays. ---

  Decision measure() {
    std::vector<const Instr*> kernels;
    for (const Instr* instr : body_->instrs()) {
      if (invariant_.count(instr)) continue;
      if (instr->is(Opcode::dynamic_update_slice) || instr->is(Opcode::fusion))
        kernels.push_back(instr);
      if (!instr->is(Opcode::fusion)) continue;
      if (sees_words(instr, target_))
        return Decision::no("loop-words", "{} sees an array as words", instr->name());
      if (instr->shape().is_array()) value_bytes_ += instr->shape().bytes();
      if (instr->shape().is_tuple())
        for (const tensor::Shape& shape : instr->shape().elements()) value_bytes_ += shape.bytes();
    }
    if (kernels.size() > kMostKernels)
      return Decision::no("loop-body", "a step has {} kernels", kernels.size());
    cost_ = cost::cost_of_step(kernels, target_);
    return Decision::yes();
  }

  // --- Forming it. ---

  // Leaf i of the initial state, as a value outside the loop.
  Instr* outside(int64_t i) {
    Instr* init = loop_->operand(0);
    if (init->is(Opcode::tuple)) return init->operand(static_cast<size_t>(i));
    Instr*& made = elements_[i];
    if (!made)
      made = loop_->parent()->add(Opcode::get_tuple_element, loop_->shape().elements()[i], {init},
                                  hlo::TupleIndexAttrs{i});
    return made;
  }

  // Moves loop-invariant computations out of `copy`, a copy of the body, which reads them from new
  // elements of the state. Returns their values outside of the loop, in order.
  std::vector<Instr*> hoist(Computation* copy) {
    std::unordered_map<const Instr*, Instr*> moved;  // by instruction of the body
    std::vector<Instr*> values;
    const std::vector<Instr*> from = body_->instrs(), to = copy->instrs();
    HEDDLE_CHECK(from.size() == to.size());
    Instr* state = copy->parameters()[0];
    std::vector<Instr*> wanted;
    for (size_t n = 0; n < from.size(); ++n) {
      Instr* instr = from[n];
      if (!invariant_.count(instr)) continue;
      if (instr->is(Opcode::get_tuple_element) && instr->operand(0) == state_) {
        moved[instr] = outside(instr->tuple_index());
        continue;
      }
      if (instr->is(Opcode::constant) && instr->shape().is_scalar()) {
        moved[instr] = loop_->parent()->add(Opcode::constant, instr->shape(), {}, instr->attrs());
        continue;
      }
      std::vector<Instr*> operands;
      for (const Instr* operand : instr->operands()) operands.push_back(moved.at(operand));
      std::vector<Computation*> called;
      for (const Computation* one : instr->called())
        called.push_back(body_->module()->clone_computation(*one));
      moved[instr] = loop_->parent()->add(instr->opcode(), instr->shape(), operands, instr->attrs(),
                                          called, instr->name());
      moved[instr]->add_nodes(instr->nodes());
      const bool needed = instr->shape().is_array() &&
                          std::any_of(instr->users().begin(), instr->users().end(),
                                      [&](const Instr* user) { return !invariant_.count(user); });
      if (needed) {
        values.push_back(moved[instr]);
        wanted.push_back(to[n]);
      }
    }
    std::vector<tensor::Shape> shapes = loop_->shape().elements();
    const auto first = static_cast<int64_t>(shapes.size());
    for (const Instr* value : values) shapes.push_back(value->shape());
    state->set_shape(tensor::Shape::make_tuple(shapes));
    std::vector<Instr*> next = copy->root()->operands();
    for (size_t v = 0; v < values.size(); ++v) {
      Instr* element = copy->add(Opcode::get_tuple_element, values[v]->shape(), {state},
                                 hlo::TupleIndexAttrs{first + static_cast<int64_t>(v)});
      copy->replace_all_uses(wanted[v], element);
      next.push_back(element);
    }
    for (size_t i = 0; i < static_cast<size_t>(first); ++i) next[i] = copy->root()->operand(i);
    Instr* root = copy->add(Opcode::tuple, state->shape(), next);
    copy->set_root(root);
    copy->remove_dead();
    copy->sort();
    return values;
  }

  // Finds the leaves that change and are read after the loop.
  void find_leaves() {
    leaves_.clear();
    read_whole_ = loop_->parent()->root() == loop_;
    for (const Instr* user : loop_->users()) read_whole_ |= !user->is(Opcode::get_tuple_element);
    for (int64_t i = 0; i < std::ssize(loop_->shape().elements()); ++i) {
      const bool read =
          read_whole_ || std::any_of(loop_->users().begin(), loop_->users().end(),
                                     [&](const Instr* u) { return u->tuple_index() == i; });
      if (read && !hlo::is_invariant_leaf(loop_, i)) leaves_.push_back(i);
    }
  }

  Instr* loop_;
  const target::Target& target_;
  Computation* body_;
  Instr* state_;
  int64_t trips_ = 0;
  std::unordered_set<const Instr*> invariant_;
  std::unordered_map<int64_t, Instr*> elements_;
  cost::StepCost cost_;
  Strips strips_;                              // without a loop: none
  int64_t state_bytes_ = 0, value_bytes_ = 0;  // of the state; of a step's values
  std::vector<int64_t> leaves_;  // leaves that are the fusion's outputs, from number first_output_
  size_t first_output_ = 0;
  bool read_whole_ = false;
};

// Whether these loops, one task each, take less time than their commands one after the other.
Decision pays(const std::vector<LoopFormer*>& loops, const target::Target& target) {
  double longest = 0, sum = 0, spread = 0;
  for (const LoopFormer* loop : loops) {
    longest = std::max(longest, loop->cost().alone_ns);
    sum += loop->cost().alone_ns;
    spread += loop->cost().spread_ns;
  }
  const double time = std::max(longest, sum / std::max(1, target.cores));
  if (time <= spread) return Decision::yes();
  return Decision::no("loop-work", "a step of {:.1f} us takes {:.1f} us as commands", time / 1000,
                      spread / 1000);
}

// Takes the loops that become one fusion with the first of `loops`; the others stay in the list.
std::vector<LoopFormer*> take_together(std::vector<LoopFormer*>* loops,
                                       const target::Target& target) {
  const InstrGraph instrs(*loops->front()->loop()->parent());
  const KernelOrder order(instrs.graph);
  const auto is_independent = [&](const LoopFormer& one, const LoopFormer& other) {
    const int a = instrs.vertex(one.loop()), b = instrs.vertex(other.loop());
    return !order.leads_to(a, b) && !order.leads_to(b, a);
  };
  std::vector<LoopFormer*> together{loops->front()}, rest;
  for (size_t i = 1; i < loops->size(); ++i) {
    LoopFormer* candidate = (*loops)[i];
    const bool joins =
        together.size() < kMostTogether && std::all_of(
                                               together.begin(), together.end(),
                                               [&](const LoopFormer* member) {
                                                 return candidate->is_like(*member) &&
                                                        is_independent(*candidate, *member);
                                               });
    (joins ? together : rest).push_back(candidate);
  }
  if (together.size() > 1 && !pays(together, target)) {
    together.resize(1);
    loops->erase(loops->begin());
  } else {
    *loops = std::move(rest);
  }
  return together;
}

// Completes the fusion `made` of `loops`.
void form(Computation* parent, const NewFusion& made, const std::vector<LoopFormer*>& loops) {
  const std::vector<Instr*> values = made.add_to(parent, loops[0]->name());
  for (LoopFormer* loop : loops) loop->redirect(values);
  parent->sort();
}

// One kernel with a task for each strip of rows, if that is the fastest form.
Decision form_strips(Computation* parent, LoopFormer* loop, const target::Target& target) {
  const bool alone = loop->has_room() && pays({loop}, target);
  const double now = alone ? loop->cost().alone_ns : loop->cost().spread_ns;
  NewFusion made(parent->module(), "loop", hlo::Join::loop);
  if (Decision decision = loop->add_strips_to(&made, now); !decision) return decision;
  form(parent, made, {loop});
  return Decision::yes();
}

}  // namespace

bool may_be_kernel(Instr* loop, const target::Target& target) {
  return static_cast<bool>(LoopFormer(loop, target).may_form());
}

bool form_loops_in(Computation* computation, const target::Target& target,
                   std::vector<Refusal>* refusals) {
  bool changed = false;
  std::vector<std::unique_ptr<LoopFormer>> found;
  std::vector<LoopFormer*> loops;
  auto refuse = [&](const LoopFormer& loop, const Decision& decision) {
    if (refusals)
      refusals->push_back({loop.body_name(), loop.name(), decision.code(), decision.reason()});
  };
  for (Instr* instr : std::vector<Instr*>(computation->instrs())) {
    if (!instr->is(Opcode::while_)) continue;
    found.push_back(std::make_unique<LoopFormer>(instr, target));
    LoopFormer* loop = found.back().get();
    Decision decision = loop->may_form();
    if (decision) {
      decision = form_strips(computation, loop, target);
      changed |= static_cast<bool>(decision);
      if (decision) continue;
      refuse(*loop, decision);
      decision = loop->has_room();
    }
    if (decision)
      loops.push_back(loop);
    else
      refuse(*loop, decision);
  }
  while (!loops.empty()) {
    const std::vector<LoopFormer*> together = take_together(&loops, target);
    if (const Decision decision = pays(together, target); !decision) {
      refuse(*together[0], decision);
      continue;
    }
    NewFusion made(computation->module(), "loop", hlo::Join::loop);
    for (LoopFormer* loop : together) loop->add_to(&made);
    form(computation, made, together);
    changed = true;
  }
  if (!found.empty()) computation->remove_dead();  // loops made to try strips, too
  return changed;
}

}  // namespace heddle::fuse
