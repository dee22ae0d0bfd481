// The greedy cover: readers first; each producer joins the groups of its readers where place()
// finds a schedule and no cycle arises.
#include <algorithm>

#include "cost/few_tasks.h"
#include "fuse/feeds.h"
#include "fuse/many_sums.h"
#include "fuse/open_cover.h"
#include "hlo/top_k_part.h"
#include "hlo/views.h"

namespace heddle::fuse {

namespace {

constexpr size_t kMostMembers = 96;
// An operand of a dot that is used this often is worth a copy that is contiguous along the
// contracted dimension.
constexpr int64_t kUsesOfCopy = 256;
// The same if words are put together from elements that are not adjacent.
constexpr int64_t kUsesOfWords = 16;

class Joiner {
 public:
  Joiner(OpenCover* cover, const target::Target& target)
      : cover_(*cover), entry_(cover->computation()), target_(target), waits_(*entry_) {}

  // Returns whether anything joined a group.
  bool run() {
    cover_.clear();
    const std::vector<Instr*>& order = entry_->instrs();
    for (size_t i = order.size(); i-- > 0;)
      if (cover_.needs_group(order[i]) && !joined_readers(order[i])) cover_.add_alone(order[i]);
    return changed_;
  }

 private:
  bool joined_readers(Instr* instr) {
    if (join_twin(instr)) return true;
    if (puts_many_together(instr)) return join_scalars(instr);
    if (is_narrowed_once(instr)) return false;  // its producer joins it
    if (rounds_input(instr) && join_products(instr)) return true;
    if ((is_duplicable(instr) || widens(instr)) && instr != entry_->root()) return join_all(instr);
    return join_one(instr);
  }

  // A conversion to fewer bits, of a value that nothing else reads: if its readers converted it,
  // all of the bits would be stored.
  bool is_narrowed_once(const Instr* instr) const {
    if (!instr->is(Opcode::convert)) return false;
    const Instr* from = instr->operand(0);
    return tensor::type_bits(instr->shape().type()) < tensor::type_bits(from->shape().type()) &&
           from->users().size() == 1 && cover_.needs_group(from) && !is_duplicable(from);
  }

  // A conversion to more bits, which readers do themselves: otherwise they would read more bits.
  static bool widens(const Instr* instr) {
    return instr->is(Opcode::convert) && tensor::type_bits(instr->shape().type()) >
                                             tensor::type_bits(instr->operand(0)->shape().type());
  }

  // An input converted to fewer bits: a product that copies it into words can round it while
  // copying.
  static bool rounds_input(const Instr* instr) {
    return instr->is(Opcode::convert) && tensor::is_float(instr->shape().type()) &&
           tensor::is_float(instr->operand(0)->shape().type()) &&
           tensor::type_bits(instr->shape().type()) <
               tensor::type_bits(instr->operand(0)->shape().type()) &&
           hlo::behind_views(instr->operand(0))->is(Opcode::parameter);
  }

  // If all readers are products, each rounds it for itself: that takes as long as a conversion of
  // its own for two (forward and backward), and no kernel does nothing else.
  bool join_products(Instr* instr) {
    bool others = false;
    const std::vector<Group*> groups = cover_.readers(instr, &others);
    const bool products = std::ranges::all_of(groups, [](const Group* x) { return x->has_dot; });
    if (others || groups.empty() || !products || instr == entry_->root()) return false;
    return groups.size() > 1 ? join_all(instr) : joins(instr, groups[0]);
  }

  // Joins the other result of the same top-k: one list gives both.
  bool join_twin(Instr* instr) {
    const auto part = hlo::top_k_part(*instr);
    if (!part) return false;
    for (Instr* user : instr->operand(0)->users()) {
      const auto other = hlo::top_k_part(*user);
      const auto found = cover_.group_of.find(user);
      if (!other || other->k != part->k || other->largest != part->largest ||
          found == cover_.group_of.end())
        continue;
      for (Group* group : found->second)
        if (joins(instr, group)) return true;
    }
    return false;
  }

  // Joins the only group that reads it, if that has scalars only.
  bool join_scalars(Instr* instr) {
    bool others = false;
    const std::vector<Group*> groups = cover_.readers(instr, &others);
    return !others && groups.size() == 1 && is_of_scalars(groups[0]->members) &&
           joins(instr, groups[0]);
  }

  // Copies it into every reader's group; readers without a copy read it from a separate group.
  bool join_all(Instr* instr) {
    bool others = false;
    std::vector<Group*> groups = cover_.readers(instr, &others);
    bool all = !others && !groups.empty();
    for (Group* group : groups) {
      if (try_join(instr, group, /*copy=*/true)) {
        add(instr, group, /*copy=*/true);
      } else {
        all = false;
      }
    }
    if (all) cover_.copies.insert(instr);
    return all;
  }

  // Joins one group; if others read it too it becomes one of the group's outputs.
  bool join_one(Instr* instr) {
    bool others = false;
    std::vector<Group*> groups = cover_.readers(instr, &others);
    for (Group* group : groups) {
      bool leaves = others || groups.size() > 1;
      if (leaves && group->has_dot) {
        refuse(instr, group, Decision::no("several-readers", "also read outside the dot's kernel"));
        continue;
      }
      if (feeds_window(instr, *group) && (is_costly(instr->opcode()) || ends_convolution(instr))) {
        refuse(instr, group,
               Decision::no("window-prologue", "computed once, not for every window that sees it"));
        continue;
      }
      if (leaves && !group->has_dot && reduces(*group) && ends_convolution(instr)) {
        refuse(instr, group,
               Decision::no("epilogue", "stored anyway, by the kernel whose epilogue it is"));
        continue;
      }
      if (joins(instr, group)) return true;
    }
    return false;
  }

  bool joins(Instr* instr, Group* group) {
    if (!try_join(instr, group, /*copy=*/false)) return false;
    add(instr, group, /*copy=*/false);
    return true;
  }

  void add(Instr* instr, Group* group, bool copy) {
    group->members.insert(group->members.begin(), instr);
    if (copy) group->copies.insert(instr);
    copy ? cover_.order->has_copied(instr, group) : cover_.order->has_joined(instr, group);
    group->has_dot |= is_product(instr);
    group->has_gemm |= cover_.has_template(instr);
    cover_.group_of[instr].push_back(group);
    cover_.add_filter(instr, group);
    changed_ = true;
  }

  void refuse(const Instr* instr, const Group* group, const Decision& decision) {
    cover_.refuse(instr, group->members.back(), decision);
  }

  bool try_join(Instr* instr, Group* group, bool copy) {
    Decision decision = may_join(instr, group, copy);
    if (!decision) refuse(instr, group, decision);
    return static_cast<bool>(decision);
  }

  Decision may_join(Instr* instr, Group* group, bool copy) {
    if (instr->is(Opcode::reduce) && puts_many_together(group->members))
      return Decision::no("many-sums",
                          "the sums of many arrays are combined in a kernel of their own");
    if (weight(*group) >= kMostMembers)
      return Decision::no("too-large", "the group has {} members", group->members.size());
    // A view of a constant is no work to do at load time, and may be read by a group that is run
    // then.
    if (group->once ? !cover_.constant.count(instr) : cover_.once.count(instr) > 0)
      return Decision::no("once", "one side depends only on constants and is computed once");
    if (Decision waits = waits_.may_join(instr, *group); !waits) return waits;
    if (is_product(instr) && group->has_dot)
      return Decision::no("two-dots", "successive products are joined as chains, if at all");
    const bool read_as_it_is =
        is_duplicable(instr) || (widens(instr) && !group->has_gemm) || rounds_input(instr);
    if (group->has_dot && !is_product(instr) && feeds_dot(instr, *group) && !read_as_it_is)
      return Decision::no("gemm-prologue", "an operand of a dot is computed separately");
    if (is_product(instr) && feeds_window(instr, *group) && cover_.has_template(instr))
      return Decision::no("window-prologue", "pools join a convolution in a later pass, if at all");
    if (!copy && cover_.order->makes_cycle(instr, group))
      return Decision::no("cycle", "a value would go out of the kernel and come back");
    std::vector<Instr*> members{instr};
    if (Instr* filter = transformed_filter(instr)) members.push_back(filter);
    members.insert(members.end(), group->members.begin(), group->members.end());
    return place_ok(members, instr, copy, group);
  }

  // Whether `instr` can end a convolution's epilogue: with the elementwise operators that only it
  // needs, back to one convolution.
  bool ends_convolution(Instr* instr) {
    if (!has_trait(instr->opcode(), hlo::elementwise)) return false;
    constexpr size_t kMostSteps = 24;
    std::vector<Instr*> found{instr};
    Instr* convolution = nullptr;
    for (size_t i = 0; i < found.size() && found.size() < kMostSteps; ++i) {
      if (found[i] == convolution) continue;
      for (Instr* operand : found[i]->operands()) {
        const bool is_convolution = operand->is(Opcode::convolution);
        const bool follows = is_convolution || operand->is(Opcode::reshape) ||
                             has_trait(operand->opcode(), hlo::elementwise);
        const bool only_here =
            std::all_of(operand->users().begin(), operand->users().end(), [&](Instr* user) {
              return std::find(found.begin(), found.end(), user) != found.end();
            });
        if (!follows || !only_here || operand->shape().elems() != instr->shape().elems() ||
            std::find(found.begin(), found.end(), operand) != found.end() || !has_kernel(operand))
          continue;
        if (is_convolution && convolution) continue;
        if (is_convolution) convolution = operand;
        found.push_back(operand);
        i = static_cast<size_t>(-1);  // operands seen before may have lost their other readers
        break;
      }
    }
    if (!convolution) return false;
    std::unordered_set<const Instr*> reached{convolution};
    std::vector<Instr*> members{convolution};
    for (Instr* step : cover_.in_order(found)) {
      const bool reads = std::any_of(step->operands().begin(), step->operands().end(),
                                     [&](Instr* operand) { return reached.count(operand) > 0; });
      if (reads && reached.insert(step).second) members.push_back(step);
    }
    const Facts facts =
        cover_.facts.of(members, [&](const Instr* member) { return member == instr; });
    return facts.decision && (!cover_.has_template(convolution) || facts.is_template);
  }

  // Whether the member would be an output, as rebuild() will decide: copies never are.
  bool leaves(const Instr* member, const Group* group, const Instr* newcomer) const {
    if (group->copies.count(member)) return false;
    if (member == entry_->root()) return true;
    for (const Instr* user : member->users()) {
      if (user == newcomer) continue;
      auto found = cover_.group_of.find(user);
      if (found == cover_.group_of.end()) return true;
      for (const Group* other : found->second)
        if (other != group) return true;
    }
    return false;
  }

  Decision place_ok(const std::vector<Instr*>& members, Instr* newcomer, bool copy,
                    const Group* group) {
    const bool wants_gemm = group->has_gemm || cover_.has_template(newcomer);
    const std::vector<Instr*> sorted = cover_.in_order(members);
    const Facts placed = cover_.facts.of(sorted, [&](const Instr* member) {
      return !(copy && member == newcomer) && leaves(member, group, newcomer);
    });
    if (!placed.decision) return placed.decision;
    if (placed.is_chain)
      return Decision::no("chain-apart", "a product and rows are joined as a chain, if at all");
    const bool gemm = placed.is_template;
    if (wants_gemm && !gemm && sorted.size() > 1)
      return Decision::no("gemm-family", "the dot would lose its template");
    const auto windows = std::count_if(sorted.begin(), sorted.end(),
                                       [&](Instr* member) { return cover_.is_window(member); });
    if (sorted.size() > 1 && placed.windows < windows)
      return Decision::no("window-lanes", "the window would be read or written across its lanes");
    if (sorted.size() > 1 && !gemm && strides_more(placed, newcomer, *group))
      return Decision::no("across-lanes", "less data crosses the lanes if they are separate");
    if (gemm && is_product(newcomer) && placed.shared_sets_ns > written_and_read_ns(newcomer))
      return Decision::no("shared-sets", "{:.0f} us would be lost because rows share cache sets",
                          placed.shared_sets_ns / 1000);
    if (gemm && !is_product(newcomer) && feeds_dot(newcomer, *group) &&
        placed.uses_across >= (placed.word > 1 ? kUsesOfWords : kUsesOfCopy))
      return Decision::no("gemm-prologue", "an operand is transposed once, not by every tile");
    if (placed.reduces && !gemm && placed.stages > 1 &&
        cost::leaves_cores_idle(placed.tasks, placed.elems, target_))
      return Decision::no("one-task", "{} tasks for {} elements", placed.tasks, placed.elems);
    return Decision::yes();
  }

  // The cost of a value that goes through memory: its lines are fetched, written and read.
  double written_and_read_ns(const Instr* value) const {
    const double rate = std::max(target_.memory_bandwidth_bytes_per_ns, 1.0);
    return 3 * static_cast<double>(value->shape().bytes()) / rate + target_.serial_command_ns;
  }

  // Whether more is read or written with strides than by the two separately (a separate transpose
  // is done in registers).
  bool strides_more(const Facts& placed, Instr* newcomer, const Group& group) {
    if (placed.strided == 0) return false;
    const int64_t alone = cover_.facts.of_alone(newcomer).strided;
    if (placed.strided <= alone) return false;
    const Facts rest = cover_.facts.of(
        group.members, [&](const Instr* member) { return leaves(member, &group, nullptr); });
    return placed.strided > alone + rest.strided;
  }

  OpenCover& cover_;
  Computation* entry_;
  const target::Target& target_;
  const Waits waits_;
  bool changed_ = false;
};

}  // namespace

Result<bool> join_producers(OpenCover& cover, const Context& context) {
  return Joiner(&cover, *context.target).run();
}

}  // namespace heddle::fuse
