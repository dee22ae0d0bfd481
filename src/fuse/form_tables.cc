// Kernels over many arrays (an optimizer's step over all tensors of a network) become one grouped
// kernel. After the cover, memory-bound fusions between the caller's arrays and the results become
// one table (hlo/join.h), if there are more of them than a composite holds and several do the same
// to different arrays, or they make many results. Only results leave the table, so no order is
// lost; and it reads only the caller's arrays, constants and small values, so no array has to be
// kept longer than before.
#include <algorithm>
#include <map>

#include "fuse/composites.h"
#include "fuse/groups.h"
#include "fuse/new_fusion.h"
#include "fuse/passes.h"
#include "hlo/views.h"

namespace heddle::fuse {

namespace {

constexpr size_t kFewestAlike = 3, kFewestResults = 8, kMostMembers = 8192;
constexpr size_t kFewestMembers = kMostParts + 1;  // fewer are a composite
// At most: of an array that may be kept longer, and of a member's values that are not results.
constexpr int64_t kSmallBytes = 64 << 10;

bool is_static_array(const tensor::Shape& shape) { return shape.is_array() && shape.is_static(); }

// Whether its result is an array, or several that are read one by one.
bool is_plain(const Instr* fusion) {
  if (!fusion->shape().is_tuple()) return is_static_array(fusion->shape());
  const std::vector<tensor::Shape>& elements = fusion->shape().elements();
  std::vector<bool> seen(elements.size());
  return std::all_of(elements.begin(), elements.end(), is_static_array) &&
         std::all_of(fusion->users().begin(), fusion->users().end(), [&](const Instr* user) {
           if (!user->is(Opcode::get_tuple_element)) return false;
           const auto leaf = static_cast<size_t>(user->tuple_index());
           if (seen[leaf]) return false;
           seen[leaf] = true;
           return true;
         });
}

// A memory-bound kernel of rows: no product, no window, nothing with a special schedule.
bool has_rows(const Computation& fusion) {
  return std::all_of(fusion.instrs().begin(), fusion.instrs().end(), [](const Instr* instr) {
    switch (instr->opcode()) {
      case Opcode::parameter:
      case Opcode::constant:
      case Opcode::tuple:
      case Opcode::broadcast:
      case Opcode::reshape:
      case Opcode::bitcast:
      case Opcode::transpose:
      case Opcode::slice:
      case Opcode::iota:
      case Opcode::convert:
      case Opcode::reduce:
      case Opcode::concatenate:
        return true;
      default:
        return has_trait(instr->opcode(), hlo::elementwise);
    }
  });
}

// The operators of the fusion as text, without the extents and ranks of its arrays.
std::string signature(const Computation& fusion) {
  std::unordered_map<const Instr*, size_t> index;
  std::string text;
  for (const Instr* instr : fusion.instrs()) {
    index.emplace(instr, index.size());
    text += std::string(hlo::opcode_text(instr->opcode()));
    if (instr->shape().is_array()) text += tensor::type_name(instr->shape().type());
    for (const Instr* operand : instr->operands()) text += fmt::format(" {}", index.at(operand));
    text += ';';
  }
  return text;
}

class TableFormer {
 public:
  explicit TableFormer(const Covered& covered) : covered_(covered), entry_(covered.computation) {}

  bool run() {
    const std::unordered_set<const Instr*> once = find_once(covered_, &constant_);
    for (Instr* instr : entry_->instrs())
      if (instr->is(Opcode::fusion) && !once.count(instr) && is_plain(instr) &&
          instr->control_predecessors().empty() && instr->control_successors().empty() &&
          has_rows(*instr->called()[0]))
        members_.insert(instr);
    drop_unfit();
    if (members_.size() < kFewestMembers || members_.size() > kMostMembers || !is_table())
      return false;
    form();
    return true;
  }

 private:
  // --- Which fusions. ---

  void drop_unfit() {
    const std::vector<Instr*> order = entry_->instrs();
    for (bool dropped = true; dropped;) {
      dropped = false;
      for (size_t i = order.size(); i-- > 0;) {
        if (!members_.count(order[i]) || check(order[i])) continue;
        members_.erase(order[i]);
        dropped = true;
      }
    }
  }

  bool check(const Instr* fusion) const {
    return leads_out(fusion) &&
           std::all_of(fusion->operands().begin(), fusion->operands().end(),
                       [&](const Instr* operand) { return may_read(operand); }) &&
           inner_bytes(fusion) <= kSmallBytes;
  }

  // Whether all its readers are members, or the tuple of results.
  bool leads_out(const Instr* value) const {
    if (value == entry_->root()) return false;
    return std::all_of(value->users().begin(), value->users().end(), [&](const Instr* user) {
      if (user == entry_->root()) return user->is(Opcode::tuple);
      return is_view_or_element(user) ? leads_out(user) : members_.count(user) > 0;
    });
  }

  // Whether the operand lives for the whole run, is small, or comes from another member.
  bool may_read(const Instr* operand) const {
    const Instr* from = hlo::behind_views_and_elements(operand);
    return members_.count(from) || constant_.count(from) || from->is(Opcode::constant) ||
           (from->is(Opcode::parameter) && entry_ == entry_->module()->entry()) ||
           (operand->shape().is_array() && operand->shape().is_static() &&
            operand->shape().bytes() <= kSmallBytes);
  }

  // The bytes of values that others read and that are no results.
  int64_t inner_bytes(const Instr* fusion) const {
    auto is_result = [&](const Instr* value) {
      return std::any_of(value->users().begin(), value->users().end(),
                         [&](const Instr* user) { return user == entry_->root(); });
    };
    if (fusion->shape().is_array()) return is_result(fusion) ? 0 : fusion->shape().bytes();
    int64_t bytes = 0;
    for (const Instr* user : fusion->users())
      if (!is_result(user)) bytes += user->shape().bytes();
    return bytes;
  }

  // Whether several members do the same, or they make many arrays.
  bool is_table() const {
    std::map<std::string, size_t> alike;
    size_t results = 0;
    for (const Instr* member : members_) {
      if (++alike[signature(*member->called()[0])] >= kFewestAlike) return true;
      results += member->shape().is_tuple() ? member->shape().elements().size() : 1;
    }
    return results >= kFewestResults;
  }

  // --- Forming it. ---

  void form() {
    NewFusion made(entry_->module(), "table", hlo::Join::table);
    const auto is_member = [&](const Instr* maker) { return members_.count(maker) > 0; };
    std::vector<Instr*> outputs;  // values of the entry
    const std::vector<Instr*> order = entry_->instrs();
    Instr* last = nullptr;
    for (Instr* instr : order) {
      if (!members_.count(instr)) continue;
      last = instr;
      made.add_part(instr, is_member);
      if (instr->shape().is_array()) {
        if (is_read_outside(instr)) outputs.push_back(instr);
        continue;
      }
      for (Instr* user : instr->users())
        if (is_read_outside(user)) outputs.push_back(user);
    }
    for (Instr* output : outputs) made.outputs.push_back(made.value_of(output, is_member));
    const std::vector<Instr*> values = made.add_to(entry_, last->name());
    for (size_t i = 0; i < outputs.size(); ++i) entry_->replace_all_uses(outputs[i], values[i]);
    entry_->remove_dead();
    entry_->sort();
  }

  bool is_read_outside(const Instr* value) const {
    return std::any_of(value->users().begin(), value->users().end(), [&](const Instr* user) {
      if (members_.count(user)) return false;
      return !is_view_or_element(user) || is_read_outside(user);
    });
  }

  const Covered& covered_;
  Computation* entry_;
  std::unordered_set<const Instr*> constant_, members_;
};

}  // namespace

Result<bool> form_tables(hlo::Module& module, const Context& context) {
  if (context.target->kind != target::DeviceKind::cpu) return false;
  bool changed = false;
  for (const Covered& covered : covered_computations(module))
    if (covered.computation == module.entry()) changed |= TableFormer(covered).run();
  if (changed) module.remove_dead_computations();
  return changed;
}

}  // namespace heddle::fuse
