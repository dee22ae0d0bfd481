// After the cover: a dynamic-update-slice (is_update()) whose slice a fusion computes becomes an
// output of that fusion, which stores the slice into the array (hlo/in_place.h): no separate
// command, and no slice in memory. Its start is computed inside if it is scalar arithmetic. An
// update whose slice comes from elsewhere becomes a fusion if a kernel computes its start.
// Refusals: `once`, `in-place`, `in-place-read` (the kernel, or an instruction after it, reads the
// array), `cycle`, `update-cost`, and the codes of place().
#include "fuse/boxes.h"

#include <algorithm>
#include <optional>

#include "cost/delta.h"
#include "cost/latency.h"
#include "cost/strides.h"
#include "fuse/kernel_order.h"
#include "fuse/passes.h"
#include "hlo/in_place.h"
#include "hlo/join.h"
#include "hlo/loop_trips.h"
#include "hlo/views.h"
#include "schedule/place.h"
#include "schedule/windows.h"

namespace heddle::fuse {

namespace {

constexpr size_t kMostScalars = 24;  // instructions that compute the starts of an update

bool is_row_major(const tensor::Shape& shape) {
  return shape.is_array() && shape.is_static() &&
         (!shape.layout() || shape.layout()->is_row_major());
}

// Whether both are the same leaf of one value.
bool is_same(const Instr* a, const Instr* b) {
  return a == b || (a->is(Opcode::get_tuple_element) && b->is(Opcode::get_tuple_element) &&
                    a->operand(0) == b->operand(0) && a->tuple_index() == b->tuple_index());
}

// A result of a fusion, as read outside of it.
struct Made {
  Instr* fusion = nullptr;
  size_t leaf = 0;
  // The same value inside the fusion.
  Instr* inside() const {
    Instr* root = fusion->called()[0]->root();
    return root->is(Opcode::tuple) ? root->operand(leaf) : root;
  }
};

std::optional<Made> made_by(Instr* value) {
  const bool element = value->is(Opcode::get_tuple_element);
  Instr* maker = element ? value->operand(0) : value;
  if (!maker->is(Opcode::fusion) || maker->shape().is_tuple() != element) return std::nullopt;
  const Computation& fused = *maker->called()[0];
  if (hlo::join_of(*maker) != hlo::Join::none) return std::nullopt;
  if (element && !fused.root()->is(Opcode::tuple)) return std::nullopt;
  return Made{maker, element ? static_cast<size_t>(value->tuple_index()) : 0};
}

// The number of instructions, if it is scalar arithmetic on parameters and constants; none: it is
// more.
std::optional<size_t> count_scalars(const Instr* value) {
  if (!value->shape().is_scalar()) return std::nullopt;
  if (value->is(Opcode::parameter) || value->is(Opcode::constant)) return 0;
  if (!has_trait(value->opcode(), hlo::elementwise) && !value->is(Opcode::reshape))
    return std::nullopt;
  size_t sum = 1;
  for (const Instr* operand : value->operands()) {
    const std::optional<size_t> count = count_scalars(operand);
    if (!count || sum + *count > kMostScalars) return std::nullopt;
    sum += *count;
  }
  return sum;
}

// A fusion under construction that gets an update: with the instructions of another one, or none.
class BoxFusion {
 public:
  BoxFusion(Computation* parent, const Instr* from) : parent_(parent) {
    if (from) {
      computation = parent->module()->clone_computation(*from->called()[0]);
      operands = from->operands();
      const Instr* root = computation->root();
      outputs =
          root->is(Opcode::tuple) ? root->operands() : std::vector<Instr*>{computation->root()};
    } else {
      computation = parent->module()->add_computation("box");
    }
  }

  // The parameter for a value outside the fusion; scalar constants are copied.
  Instr* value_of(Instr* around) {
    if (around->is(Opcode::constant) && around->shape().is_scalar())
      return computation->add(Opcode::constant, around->shape(), {}, around->attrs());
    for (size_t o = 0; o < operands.size(); ++o)
      if (operands[o] == around) return computation->parameters()[o];
    hlo::ParameterAttrs attrs{static_cast<int64_t>(operands.size())};
    operands.push_back(around);
    return computation->add(Opcode::parameter, around->shape().without_layout(), {}, attrs, {},
                            fmt::format("p{}", attrs.number));
  }

  // A scalar, computed here once more if that takes few instructions.
  Instr* scalar_of(Instr* around) {
    const std::optional<Made> made = made_by(behind_views(around));
    if (!made || !count_scalars(made->inside())) return value_of(around);
    std::unordered_map<const Instr*, Instr*> copies;
    return copy_of(made->inside(), made->fusion, &copies);
  }

  // The value of `around` inside, through the views that lead from `box` to it.
  Instr* viewed(const Instr* around, Instr* box) {
    if (!is_view(around)) return box;
    Instr* inner = viewed(around->operand(0), box);
    return computation->add(Opcode::reshape, around->shape().without_layout(), {inner});
  }

  Instr* put(const Instr* update, Instr* box) {
    std::vector<Instr*> inside{value_of(update->operand(0)), box};
    for (size_t i = 2; i < update->operands().size(); ++i)
      inside.push_back(scalar_of(update->operand(i)));
    Instr* made = computation->add(Opcode::dynamic_update_slice, update->shape().without_layout(),
                                   inside, update->attrs(), {}, update->name());
    made->add_nodes(update->nodes());
    hlo::set_in_place(made);
    return made;
  }

  void finish() {
    std::vector<tensor::Shape> shapes;
    for (const Instr* output : outputs) shapes.push_back(output->shape());
    computation->set_root(
        outputs.size() == 1
            ? outputs[0]
            : computation->add(Opcode::tuple, tensor::Shape::make_tuple(shapes), outputs));
    computation->remove_dead();
  }

  Computation* computation = nullptr;
  std::vector<Instr*> operands, outputs;

 private:
  Instr* copy_of(const Instr* inside, Instr* fusion,
                 std::unordered_map<const Instr*, Instr*>* copies) {
    Instr*& made = (*copies)[inside];
    if (made) return made;
    if (inside->is(Opcode::parameter))
      return made = value_of(fusion->operand(static_cast<size_t>(inside->parameter_number())));
    std::vector<Instr*> read;
    for (const Instr* operand : inside->operands())
      read.push_back(copy_of(operand, fusion, copies));
    return (*copies)[inside] =
               computation->add(inside->opcode(), inside->shape(), read, inside->attrs());
  }

  Computation* parent_;
};

class BoxJoiner {
 public:
  BoxJoiner(const Covered& covered, const target::Target& target, std::vector<Refusal>* refusals)
      : computation_(covered.computation), target_(target), refusals_(refusals), delta_(target) {
    for (Instr* instr : computation_->instrs())
      if (is_update(instr) && is_plain(instr) &&
          (!instr->users().empty() || instr == computation_->root()))
        updates_.push_back(instr);
    if (!updates_.empty()) find_once(covered, &constant_);
  }

  bool run() {
    bool changed = false;
    for (Instr* update : updates_) {
      const std::optional<Made> made = made_by(behind_views(update->operand(1)));
      Decision decision =
          made ? join(update, *made)
               : Decision::no("no-kernel", "no kernel computes the box of {}", update->name());
      if (!decision && refusals_)
        refusals_->push_back({made ? made->inside()->name() : update->operand(1)->name(),
                              update->name(), decision.code(), decision.reason()});
      if (!decision && is_begun_by_kernel(update)) decision = join(update, {});
      changed |= static_cast<bool>(decision);
    }
    if (changed) {
      computation_->remove_dead();
      computation_->sort();
    }
    return changed;
  }

 private:
  static bool is_plain(const Instr* update) {
    return is_row_major(update->shape()) && is_row_major(update->operand(0)->shape()) &&
           is_row_major(update->operand(1)->shape()) && update->operand(1)->shape().elems() > 0 &&
           std::ssize(update->operands()) == 2 + update->shape().rank() &&
           update->control_predecessors().empty() && update->control_successors().empty();
  }

  // Whether a kernel computes a start by scalar arithmetic alone.
  static bool is_begun_by_kernel(Instr* update) {
    return std::any_of(update->operands().begin() + 2, update->operands().end(), [](Instr* start) {
      const std::optional<Made> made = made_by(behind_views(start));
      return made && count_scalars(made->inside());
    });
  }

  // Joins the update to the fusion that computes its slice or, if `box.fusion` is null, to a new
  // one.
  Decision join(Instr* update, const Made& box) {
    if (Decision free = may_join(update, box.fusion); !free) return free;
    BoxFusion made(computation_, box.fusion);
    Instr* around = update->operand(1);
    const bool replaces = box.fusion && is_read_once(around);
    Instr* inside = made.put(
        update, box.fusion ? made.viewed(around, made.outputs[box.leaf]) : made.value_of(around));
    size_t place = made.outputs.size();
    if (replaces)
      made.outputs[place = box.leaf] = inside;
    else
      made.outputs.push_back(inside);
    made.finish();
    Decision decision = pays(update, box.fusion, *made.computation);
    if (decision) replace(update, box, made, place);
    return decision;
  }

  // Whether the value has a single reader, through views that have no other.
  static bool is_read_once(const Instr* value) {
    for (;; value = value->operand(0)) {
      if (value->users().size() != 1 || value == value->parent()->root()) return false;
      if (!is_view(value)) break;
    }
    return !value->is(Opcode::get_tuple_element) ||
           std::all_of(value->operand(0)->users().begin(), value->operand(0)->users().end(),
                       [&](const Instr* other) {
                         return other == value || other->users().empty() || !is_same(other, value);
                       });
  }

  Decision may_join(Instr* update, Instr* fusion) {
    if (!fusion) return Decision::yes();
    if (constant_.count(fusion))
      return Decision::no("once", "{} depends only on constants and is computed once",
                          fusion->name());
    if (!fusion->control_predecessors().empty() || !fusion->control_successors().empty() ||
        !are_elements_read(fusion))
      return Decision::no("in-place", "{} is read or ordered as a whole", fusion->name());
    const Instr* array = behind_views(update->operand(0));
    for (Instr* operand : fusion->operands())
      if (is_same(behind_views(operand), array))
        return Decision::no("in-place-read", "the kernel of {} reads what {} changes",
                            fusion->name(), update->name());
    const InstrGraph instrs = graph_with_waits();
    const std::optional<KernelOrder> order = KernelOrder::of(instrs.graph, {});
    const auto waits = [&](const Instr* value) {
      return !order || value == fusion ||
             order->leads_to(instrs.vertex(fusion), instrs.vertex(value));
    };
    if (waits(array)) return Decision::no("cycle", "the array depends on its box");
    for (size_t i = 2; i < update->operands().size(); ++i) {
      const std::optional<Made> start = made_by(behind_views(update->operand(i)));
      const bool own = start && start->fusion == fusion && count_scalars(start->inside());
      if (!own && waits(update->operand(i)))
        return Decision::no("cycle", "the start of {} depends on its box", update->name());
    }
    for (const Instr* reader : readers_of(array))
      if (reader != update && waits(reader))
        return Decision::no("in-place-read", "{} reads what {} changes, after {}", reader->name(),
                            update->name(), fusion->name());
    return Decision::yes();
  }

  bool are_elements_read(const Instr* fusion) const {
    if (!fusion->shape().is_tuple()) return true;
    return fusion != computation_->root() &&
           std::all_of(fusion->users().begin(), fusion->users().end(),
                       [](const Instr* user) { return user->is(Opcode::get_tuple_element); });
  }

  // The readers of the array itself, and of its views.
  std::vector<const Instr*> readers_of(const Instr* array) const {
    std::vector<const Instr*> result, work;
    for (const Instr* instr : computation_->instrs())
      if (is_same(instr, array)) work.push_back(instr);
    while (!work.empty()) {
      const Instr* value = work.back();
      work.pop_back();
      for (const Instr* user : value->users()) (is_view(user) ? work : result).push_back(user);
    }
    return result;
  }

  // With edges to each fusion that overwrites an array from the readers of its old value.
  InstrGraph graph_with_waits() const {
    InstrGraph instrs(*computation_);
    for (const auto& [reader, writers] : waiting_)
      for (const Instr* writer : writers)
        instrs.graph.add_edge(instrs.vertex(reader), instrs.vertex(writer));
    return instrs;
  }

  Decision pays(const Instr* update, const Instr* fusion, const Computation& made) {
    const stage::PlacedFusion now = schedule::place(made, target_);
    if (!now.decision || !fusion) return now.decision;
    const stage::PlacedFusion before = schedule::place(*fusion->called()[0], target_);
    const bool alike = stage::is_template(before) == stage::is_template(now) &&
                       stage::is_chain(before) == stage::is_chain(now) &&
                       schedule::count_windows(before) <= schedule::count_windows(now);
    if (!before.decision || !alike)
      return Decision::no("in-place", "{} would lose its schedule", fusion->name());
    const auto bytes = static_cast<double>(update->operand(1)->shape().bytes());
    const double saved = cost::call_ns(/*serial=*/true, 1, target_) + 2 * delta_.array_ns(bytes);
    const double lost = cost::latency(now, target_).ns - cost::latency(before, target_).ns;
    if (lost > saved)
      return Decision::no("update-cost", "{:.1f} us more in the kernel than {:.1f} us of {}",
                          lost / 1000, saved / 1000, update->name());
    return Decision::yes();
  }

  void replace(Instr* update, const Made& box, const BoxFusion& made, size_t place) {
    const std::vector<const Instr*> readers = readers_of(behind_views(update->operand(0)));
    const Computation& inside = *made.computation;
    Instr* fusion =
        computation_->add(Opcode::fusion, inside.root()->shape(), made.operands,
                          box.fusion ? box.fusion->attrs() : hlo::Attrs(hlo::FusionAttrs{}),
                          {made.computation}, box.fusion ? box.fusion->name() : update->name());
    const bool single = made.outputs.size() == 1;
    auto value = [&](size_t leaf) {
      return single ? fusion
                    : computation_->add(Opcode::get_tuple_element, made.outputs[leaf]->shape(),
                                        {fusion}, hlo::TupleIndexAttrs{static_cast<int64_t>(leaf)});
    };
    computation_->replace_all_uses(update, value(place));
    if (box.fusion) redirect(box.fusion, place, value);
    for (auto& [reader, writers] : waiting_)
      std::replace(writers.begin(), writers.end(), static_cast<const Instr*>(box.fusion),
                   static_cast<const Instr*>(fusion));
    if (box.fusion && waiting_.count(box.fusion)) waiting_[fusion] = waiting_.at(box.fusion);
    for (const Instr* reader : readers)
      if (reader != update) waiting_[reader].push_back(fusion);
  }

  // Readers of the old fusion's results read the new one's instead.
  template <typename Value>
  void redirect(Instr* old, size_t place, const Value& value) {
    if (!old->shape().is_tuple()) {
      if (!old->users().empty() && place != 0) computation_->replace_all_uses(old, value(0));
      return;
    }
    for (Instr* user : std::vector<Instr*>(old->users()))
      if (const auto leaf = static_cast<size_t>(user->tuple_index()); leaf != place)
        computation_->replace_all_uses(user, value(leaf));
  }

  Computation* computation_;
  const target::Target& target_;
  std::vector<Refusal>* refusals_;  // may be null
  cost::DeltaEvaluator delta_;
  std::vector<Instr*> updates_;
  std::unordered_set<const Instr*> constant_;
  // By reader of an array: the fusions that update it in place, and wait for the reader.
  std::unordered_map<const Instr*, std::vector<const Instr*>> waiting_;
};

}  // namespace

bool has_own_arrays(const Instr* fusion) {
  const std::vector<int64_t> parameters = hlo::updated_parameters(*fusion->called()[0]);
  return std::all_of(parameters.begin(), parameters.end(), [&](int64_t parameter) {
    if (parameter < 0) return true;
    const Instr* array = fusion->operand(static_cast<size_t>(parameter));
    for (; is_view(array); array = array->operand(0))
      if (array->users().size() != 1) return false;
    if (array->users().size() != 1) return false;
    if (!array->is(Opcode::get_tuple_element)) return array->is(Opcode::parameter);
    const Instr* tuple = array->operand(0);
    return !tuple->is(Opcode::fusion) &&
           std::none_of(tuple->users().begin(), tuple->users().end(), [&](const Instr* other) {
             return other != array &&
                    (!other->is(Opcode::get_tuple_element) || is_same(other, array));
           });
  });
}

namespace {

bool reads_boxes_of(const std::vector<Instr*>& parts, const std::vector<Instr*>& readers) {
  for (const Instr* reader : readers)
    for (Instr* operand : reader->operands()) {
      const Instr* value = behind_views(operand);
      const bool element = value->is(Opcode::get_tuple_element);
      const Instr* maker = element ? value->operand(0) : value;
      if (std::find(parts.begin(), parts.end(), maker) == parts.end()) continue;
      const auto leaf = static_cast<size_t>(element ? value->tuple_index() : 0);
      if (hlo::updated_parameters(*maker->called()[0])[leaf] >= 0) return true;
    }
  return false;
}

bool overwrites_argument_of(const std::vector<Instr*>& parts, const std::vector<Instr*>& readers) {
  const Computation& entry = *parts[0]->parent();
  const Instr* root = entry.root();
  if (&entry != entry.module()->entry() || !root->is(Opcode::tuple)) return false;
  const auto reads = [](const Instr* reader, const Instr* value) {
    return std::any_of(
        reader->operands().begin(), reader->operands().end(), [&](const Instr* operand) {
          return operand == value || hlo::behind_views_and_elements(operand) == value;
        });
  };
  for (const hlo::Alias& alias : entry.module()->input_output_alias) {
    if (alias.output_index.size() != 1 || !alias.parameter_index.empty()) continue;
    const Instr* array = entry.parameters()[static_cast<size_t>(alias.parameter)];
    const Instr* maker =
        hlo::behind_views_and_elements(root->operand(static_cast<size_t>(alias.output_index[0])));
    if (std::find(parts.begin(), parts.end(), maker) == parts.end()) continue;
    for (const Instr* reader : readers)
      if (reads(reader, array) && !reads(maker, reader)) return true;
  }
  return false;
}

}  // namespace

bool writes_over_what_is_read(const std::vector<Instr*>& one, const std::vector<Instr*>& other) {
  return reads_boxes_of(one, other) || reads_boxes_of(other, one) ||
         overwrites_argument_of(one, other) || overwrites_argument_of(other, one);
}

Result<bool> put_boxes_in_place(hlo::Module& module, const Context& context) {
  if (context.target->kind != target::DeviceKind::cpu) return false;
  bool changed = false;
  for (const Covered& covered : covered_computations(module))
    changed |= BoxJoiner(covered, *context.target, context.refusals).run();
  return changed;
}

}  // namespace heddle::fuse
