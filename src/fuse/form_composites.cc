// After the cover: fusions without a product that read one another or the same arrays become parts
// of one fusion (hlo/join.h), a kernel with the phases of all parts (packing of different spaces,
// grid composition). So do fusions that can run at any time, because they read only arguments and
// only the caller reads them. Refusals: `cycle`, `too-large`, `far` (too many commands between
// them), `in-place` (one overwrites what the other reads), `memory` (values that die between them
// would be kept).
#include "fuse/composites.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "fuse/boxes.h"
#include "fuse/kernel_order.h"
#include "fuse/memory.h"
#include "fuse/new_fusion.h"
#include "fuse/passes.h"
#include "hlo/dim_classes.h"
#include "hlo/in_place.h"
#include "hlo/loop_trips.h"
#include "hlo/views.h"

namespace heddle::fuse {

namespace {

constexpr size_t kMostInstrs = 768;       // of all parts
constexpr int kSpan = 512;                // units between two parts, at most
constexpr size_t kMostNeighbours = 16;    // that are tried for one unit
constexpr int64_t kMostGrowth = 1 << 20;  // of the memory for temporaries, for one join
constexpr int64_t kSmallBytes = 4096;     // of a result that costs nothing to keep
constexpr int64_t kSmallPeak = 1 << 18;   // of temporaries: less need not be saved

// Whether it is an array of several elements: sharing scalars is no reason to join.
bool is_array(const Instr* value) {
  return value->shape().is_array() && value->shape().elems() > 1;
}

// Joins the units of a computation (all instructions but views and arguments) by their dependences.
class Composer {
 public:
  Composer(const Covered& covered, std::vector<Refusal>* refusals)
      : computation_(covered.computation), refusals_(refusals) {
    find_once_parts(covered);
    for (Instr* instr : computation_->instrs()) {
      if (is_view_or_element(instr) || instr->is(Opcode::parameter) ||
          instr->is(Opcode::constant) ||
          (instr->is(Opcode::tuple) && instr == computation_->root()))
        continue;
      unit_of_.emplace(instr, static_cast<int>(units_.size()));
      units_.push_back({{instr}, may_be_part(instr)});
    }
    effects_ = effects_before(*computation_);
    for (size_t u = 0; u < units_.size(); ++u) find_reads(static_cast<int>(u));
    if (add_extents()) {
      order_ = KernelOrder::of(graph_, {});
      HEDDLE_CHECK(order_.has_value(), "units with a cycle");
    } else {
      order_.emplace(graph_);
    }
    if (covered.callers.empty()) find_live();
  }

  bool run() {
    for (size_t u = 0; u < units_.size(); ++u)
      if (units_[u].may_join) visit(static_cast<int>(u));
    bool changed = false;
    for (const Unit& unit : units_) {
      if (unit.parts.size() < 2) continue;
      form(unit.parts);
      changed = true;
    }
    if (changed) computation_->remove_dead();
    return changed;
  }

 private:
  struct Unit {
    std::vector<Instr*> parts;  // empty: joined to another unit
    bool may_join = false;
    size_t instrs = 0;
    bool is_free = false;  // reads only arguments, and is small or read only by the caller
    int64_t live = 0;      // live bytes while it runs
  };

  // Kernels of a dynamic dimension stop at its extent, a number they are given (pass_extents), and
  // cannot be if they make it: between what makes the extent and them stands a unit that nothing
  // joins. Whether there is one: producers of a unit may then stand behind it.
  bool add_extents() {
    const hlo::Module& module = *computation_->module();
    const std::vector<hlo::Symbol> symbols = hlo::symbols_of(module);
    const bool made = std::any_of(symbols.begin(), symbols.end(),
                                  [](const hlo::Symbol& symbol) { return symbol.call != nullptr; });
    if (!made || computation_ != module.entry()) return false;
    hlo::DimClasses classes(module, hlo::DimClasses::Made::free);
    if (!classes.assign(symbols)) return false;
    std::vector<std::set<int>> of(symbols.size());  // units, by symbol
    const size_t all = units_.size();
    for (size_t u = 0; u < all; ++u)
      if (units_[u].may_join)
        for (const int symbol : classes.symbols_around(units_[u].parts[0]))
          of[static_cast<size_t>(symbol)].insert(static_cast<int>(u));
    for (size_t s = 0; s < symbols.size(); ++s) {
      if (!symbols[s].call) continue;
      const Instr* extent = hlo::least_one_of(module, symbols[s]);
      const auto maker = unit_of_.find(hlo::behind_views_and_elements(extent));
      if (maker == unit_of_.end()) continue;
      const int between = graph_.add({maker->second});
      units_.push_back({});
      for (const int unit : leading_to(maker->second)) of[s].erase(unit);
      for (const int unit : of[s]) graph_.add_edge(between, unit);
    }
    return true;
  }

  // The unit and all that it waits for.
  std::set<int> leading_to(int unit) const {
    std::set<int> result{unit};
    std::vector<int> open{unit};
    while (!open.empty()) {
      const int from = open.back();
      open.pop_back();
      for (const int before : graph_.vertices[static_cast<size_t>(from)].producers)
        if (result.insert(before).second) open.push_back(before);
    }
    return result;
  }

  // For an entry: the least memory that is needed, per unit and at its peak (memory.h).
  void find_live() {
    const std::vector<int> none;
    std::unordered_map<const Instr*, std::vector<int>> nodes;
    for (const auto& [instr, unit] : unit_of_)
      if (!once_.count(instr)) nodes[instr] = {unit};
    const std::vector<int64_t> live =
        live_bytes(memory_graph(*computation_, static_cast<int>(units_.size()),
                                [&](const Instr* instr) -> const std::vector<int>& {
                                  const auto found = nodes.find(instr);
                                  return found == nodes.end() ? none : found->second;
                                }));
    if (live.empty()) return;
    peak_ = std::max(kSmallPeak, *std::max_element(live.begin(), live.end()));
    for (size_t u = 0; u < units_.size(); ++u) units_[u].live = live[u];
  }

  // The live bytes of a joined unit, with the values that it keeps for longer.
  static int64_t live_together(const Unit& a, const Unit& b, int64_t growth) {
    return std::max(a.live, b.live) + growth;
  }

  // Values that depend on constants alone are computed once at load time, separately from others.
  void find_once_parts(const Covered& covered) {
    for (const Instr* instr : computation_->instrs()) {
      const bool is_constant = instr->is(Opcode::constant) || is_invariant(instr, covered);
      if (is_constant ||
          (!instr->is(Opcode::parameter) && !hlo::has_effect(*instr) &&
           std::all_of(instr->operands().begin(), instr->operands().end(),
                       [&](const Instr* operand) { return once_.count(operand) > 0; })))
        once_.insert(instr);
    }
  }

  bool may_be_part(const Instr* instr) const {
    if (!instr->is(Opcode::fusion) || once_.count(instr) || !instr->control_successors().empty() ||
        !instr->control_predecessors().empty())
      return false;
    const Computation& fused = *instr->called()[0];
    if (hlo::join_of(*instr) != hlo::Join::none) return false;
    return std::none_of(fused.instrs().begin(), fused.instrs().end(), is_product) &&
           are_elements_read(instr) && has_own_arrays(instr);
  }

  // Whether a tuple that contains tuples is read only by elements, never as a whole.
  bool are_elements_read(const Instr* value, bool outermost = true) const {
    if (!value->shape().is_tuple()) return true;
    const std::vector<tensor::Shape>& elements = value->shape().elements();
    const bool flat = std::none_of(elements.begin(), elements.end(),
                                   [](const tensor::Shape& shape) { return shape.is_tuple(); });
    if (outermost && flat) return true;
    return value != computation_->root() &&
           std::all_of(value->users().begin(), value->users().end(), [&](const Instr* user) {
             return user->is(Opcode::get_tuple_element) && are_elements_read(user, false);
           });
  }

  void find_reads(int number) {
    Unit& unit = units_[static_cast<size_t>(number)];
    Instr* instr = unit.parts[0];
    if (unit.may_join) unit.instrs = instr->called()[0]->instrs().size();
    std::vector<const Instr*> seen;
    std::vector<int> before;
    auto follow = [&](auto& self, const Instr* value) -> void {
      if (std::find(seen.begin(), seen.end(), value) != seen.end()) return;
      seen.push_back(value);
      if (const auto found = unit_of_.find(value); found != unit_of_.end())
        return before.push_back(found->second);
      if (is_array(value)) readers_[value].push_back(number);
      for (const auto* list : {&value->operands(), &value->control_predecessors()})
        for (const Instr* earlier : *list) self(self, earlier);
    };
    for (const Instr* operand : instr->operands()) follow(follow, operand);
    for (const Instr* earlier : instr->control_predecessors()) follow(follow, earlier);
    const bool arguments = before.empty();
    if (const auto effect = effects_.find(instr); effect != effects_.end())
      before.push_back(unit_of_.at(effect->second));
    graph_.add(std::move(before));
    const bool is_small = !instr->shape().is_tuple() && instr->shape().bytes() <= kSmallBytes;
    unit.is_free = arguments && (is_small || !is_read_outside_of(instr, {}, /*root=*/false));
  }

  // Whether anything but `inside` reads the value. `root`: the caller counts.
  bool is_read_outside_of(const Instr* value, const std::vector<Instr*>& inside,
                          bool root = true) const {
    if (root && value == computation_->root()) return true;
    return std::any_of(value->users().begin(), value->users().end(), [&](const Instr* user) {
      if (is_view_or_element(user)) return is_read_outside_of(user, inside, root);
      if (user == computation_->root() && user->is(Opcode::tuple)) return root;
      return std::find(inside.begin(), inside.end(), user) == inside.end();
    });
  }

  // --- Choosing units to join. ---

  void visit(int number) {
    for (bool joined = true; joined;) {
      joined = false;
      for (int other : neighbours(number)) {
        const Decision decision = may_join(other, number);
        if (!decision) {
          refuse(other, number, decision);
          continue;
        }
        number = join(other, number);
        joined = true;
        break;
      }
    }
  }

  // Its producers, readers of the same arrays and, if it is free, other free units.
  std::vector<int> neighbours(int number) const {
    const Unit& unit = units_[static_cast<size_t>(number)];
    std::vector<int> found;
    auto add = [&](int other) {
      other = whole(other);
      if (other != whole(number) && units_[static_cast<size_t>(other)].may_join &&
          found.size() < kMostNeighbours &&
          std::find(found.begin(), found.end(), other) == found.end())
        found.push_back(other);
    };
    for (int other : order_->feeders(number)) add(other);
    for (const Instr* part : unit.parts)
      for (const Instr* operand : part->operands()) {
        const Instr* value = operand;
        for (;; value = value->operand(0)) {
          if (const auto readers = readers_.find(value); readers != readers_.end())
            for (int other : readers->second) add(other);
          if (!is_view_or_element(value)) break;
        }
        // The other readers of a value that a unit computes.
        if (const auto maker = unit_of_.find(value); maker != unit_of_.end())
          for (int other : order_->readers(whole(maker->second))) add(other);
      }
    if (unit.is_free)
      for (int other = 0; other < static_cast<int>(units_.size()); ++other)
        if (units_[static_cast<size_t>(other)].is_free) add(other);
    return found;
  }

  int whole(int unit) const { return order_->kernel(unit); }
  int place(int unit) const { return order_->place(whole(unit)); }

  Decision may_join(int a, int b) const {
    const Unit &one = units_[static_cast<size_t>(a)], &other = units_[static_cast<size_t>(b)];
    if (one.parts.size() + other.parts.size() > kMostParts ||
        one.instrs + other.instrs > kMostInstrs)
      return Decision::no("too-large", "they have {} parts and {} operators",
                          one.parts.size() + other.parts.size(), one.instrs + other.instrs);
    if (const int far = std::abs(place(a) - place(b)); far > kSpan)
      return Decision::no("far", "{} commands lie between them", far);
    if (order_->makes_cycle({a, b}))
      return Decision::no("cycle", "a value would go out and come back");
    if (writes_over_what_is_read(one.parts, other.parts))
      return Decision::no("in-place", "one reads what the other overwrites");
    const int64_t growth = place(a) < place(b) ? bytes_kept(a, b) : bytes_kept(b, a);
    if (growth > kMostGrowth)
      return Decision::no("memory", "{} bytes could not be reused between them", growth);
    const int64_t more = live_together(one, other, growth) - peak_;
    if (growth > 0 && more > 0)
      return Decision::no("memory", "the peak memory would rise by {} bytes", more);
    return Decision::yes();
  }

  // Bytes of values that would be dead after the first of two units, but are kept until the second
  // has its results; or of these results, if computing them early keeps fewer bytes.
  int64_t bytes_kept(int a, int b) const {
    const Unit &first = units_[static_cast<size_t>(a)], &second = units_[static_cast<size_t>(b)];
    int64_t dying = 0, made = 0;
    std::unordered_set<const Instr*> seen;
    for (const Instr* part : first.parts)
      for (const Instr* operand : part->operands()) {
        const Instr* value = hlo::behind_views(operand);
        const Instr* maker = hlo::behind_views_and_elements(value);
        if (value->shape().is_array() && unit_of_.count(maker) && seen.insert(value).second &&
            std::find(first.parts.begin(), first.parts.end(), maker) == first.parts.end() &&
            last_place(value) < place(b))
          dying += value->shape().bytes();
      }
    for (const Instr* part : second.parts) made += hlo::stored_bytes(*part);
    return std::min(dying, made);
  }

  // The place of the last read of the value; kEnd if the caller reads it.
  int last_place(const Instr* value) const {
    constexpr int kEnd = std::numeric_limits<int>::max();
    int last = -1;
    if (value == computation_->root()) return kEnd;
    for (const Instr* user : value->users()) {
      const auto unit = unit_of_.find(user);
      if (unit != unit_of_.end())
        last = std::max(last, place(unit->second));
      else if (is_view_or_element(user))
        last = std::max(last, last_place(user));
      else
        return kEnd;
    }
    return last;
  }

  int join(int a, int b) {
    if (place(a) > place(b)) std::swap(a, b);
    Unit &from = units_[static_cast<size_t>(a)], &to = units_[static_cast<size_t>(b)];
    to.live = live_together(from, to, bytes_kept(a, b));
    order_->unite({b, a});
    from.parts.insert(from.parts.end(), to.parts.begin(), to.parts.end());
    to.parts = std::exchange(from.parts, {});
    to.instrs += from.instrs;
    to.is_free = to.is_free && from.is_free;
    from.may_join = false;
    return b;
  }

  void refuse(int producer, int consumer, const Decision& decision) {
    if (!refusals_) return;
    auto name = [&](int unit) {
      const Instr* root = units_[static_cast<size_t>(unit)].parts.back()->called()[0]->root();
      return root->is(Opcode::tuple) ? root->operand(0)->name() : root->name();
    };
    refusals_->push_back({name(producer), name(consumer), decision.code(), decision.reason()});
  }

  // --- Forming it. ---

  void form(std::vector<Instr*> parts) {
    std::unordered_map<const Instr*, size_t> index;
    for (const Instr* instr : computation_->instrs()) index.emplace(instr, index.size());
    std::sort(parts.begin(), parts.end(),
              [&](const Instr* x, const Instr* y) { return index.at(x) < index.at(y); });
    NewFusion made(computation_->module(), "composite", hlo::Join::phases);
    const auto is_part = [&](const Instr* maker) {
      return std::find(parts.begin(), parts.end(), maker) != parts.end();
    };
    for (Instr* part : parts) made.add_part(part, is_part);
    const std::vector<Instr*> old = find_outputs(parts);
    for (Instr* output : old) made.outputs.push_back(made.value_of(output, is_part));
    const std::vector<Instr*> values = made.add_to(computation_, parts.back()->name());
    for (size_t i = 0; i < old.size(); ++i) computation_->replace_all_uses(old[i], values[i]);
    computation_->sort();
  }

  // The arrays that are read outside of the parts.
  std::vector<Instr*> find_outputs(const std::vector<Instr*>& parts) {
    std::vector<Instr*> result;
    for (Instr* part : parts) {
      read_by_element(part);
      std::vector<Instr*> arrays;
      add_arrays(part, &arrays);
      for (Instr* array : arrays)
        if (is_read_outside_of(array, parts)) result.push_back(array);
    }
    return result;
  }

  void add_arrays(Instr* value, std::vector<Instr*>* arrays) {
    if (!value->shape().is_tuple()) return arrays->push_back(value);
    std::vector<Instr*> elements(value->shape().elements().size());
    for (Instr* user : std::vector<Instr*>(value->users())) {
      if (!user->is(Opcode::get_tuple_element)) continue;
      Instr*& element = elements[static_cast<size_t>(user->tuple_index())];
      if (element)
        computation_->replace_all_uses(user, element);
      else
        element = user;
    }
    for (Instr* element : elements)
      if (element) add_arrays(element, arrays);
  }

  // Readers of the whole tuple get a tuple of its elements instead.
  void read_by_element(Instr* part) {
    if (!part->shape().is_tuple()) return;
    const bool whole =
        part == computation_->root() ||
        std::any_of(part->users().begin(), part->users().end(),
                    [](const Instr* user) { return !user->is(Opcode::get_tuple_element); });
    if (!whole) return;
    std::vector<Instr*> elements;
    for (const tensor::Shape& shape : part->shape().elements())
      elements.push_back(
          computation_->add(Opcode::get_tuple_element, shape, {part},
                            hlo::TupleIndexAttrs{static_cast<int64_t>(elements.size())}));
    Instr* tuple = computation_->add(Opcode::tuple, part->shape(), elements);
    for (Instr* user : std::vector<Instr*>(part->users())) {
      if (user == tuple || user->is(Opcode::get_tuple_element)) continue;
      for (size_t o = 0; o < user->operands().size(); ++o)
        if (user->operand(o) == part) computation_->replace_operand(user, o, tuple);
    }
    if (part == computation_->root()) computation_->set_root(tuple);
  }

  Computation* computation_;
  std::vector<Refusal>* refusals_;                      // may be null
  int64_t peak_ = std::numeric_limits<int64_t>::max();  // of temporaries
  std::unordered_set<const Instr*> once_;
  std::vector<Unit> units_;
  Graph graph_;                       // of units
  std::optional<KernelOrder> order_;  // of joined units; its kernels have the units' numbers
  std::unordered_map<const Instr*, int> unit_of_;
  std::unordered_map<const Instr*, Instr*> effects_;
  std::unordered_map<const Instr*, std::vector<int>> readers_;  // of arguments and of views
};

}  // namespace

Result<bool> form_composites(hlo::Module& module, const Context& context) {
  if (context.target->kind != target::DeviceKind::cpu) return false;
  bool changed = false;
  std::unordered_set<const Computation*> fused;
  for (const auto& computation : module.computations())
    for (const Instr* instr : computation->instrs())
      if (instr->is(Opcode::fusion)) fused.insert(instr->called()[0]);
  for (const Covered& covered : covered_computations(module)) {
    // The step of a loop kernel is part of one kernel already.
    const bool inside =
        std::any_of(covered.callers.begin(), covered.callers.end(),
                    [&](const auto& caller) { return fused.count(caller.first->parent()) > 0; });
    if (!inside) changed |= Composer(covered, context.refusals).run();
  }
  if (changed) module.remove_dead_computations();
  return changed;
}

}  // namespace heddle::fuse
