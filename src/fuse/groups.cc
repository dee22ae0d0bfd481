#include "fuse/groups.h"

#include <algorithm>

#include "hlo/places.h"
#include "hlo/top_k_part.h"
#include "schedule/place.h"

namespace heddle::fuse {

bool is_unpack(const Instr* instr) { return instr->facts().unpack; }
void set_unpack(Instr* instr) { instr->facts().unpack = true; }

bool has(const Group& group, const Instr* instr) {
  return std::find(group.members.begin(), group.members.end(), instr) != group.members.end();
}

bool is_product(const Instr* instr) {
  return instr->is(Opcode::dot) || instr->is(Opcode::convolution);
}

bool has_control_edges(const Instr* instr) {
  return !instr->control_predecessors().empty() || !instr->control_successors().empty();
}

bool is_duplicable(const Instr* instr) {
  if (has_control_edges(instr)) return false;
  if (hlo::counts_places(instr)) return true;
  if (is_unpack(instr)) return true;
  switch (instr->opcode()) {
    case Opcode::broadcast:
    case Opcode::iota:
    case Opcode::reshape:
    case Opcode::bitcast:
    case Opcode::slice:
    case Opcode::transpose:
    case Opcode::copy:
      return true;
    case Opcode::constant:
      return instr->shape().is_scalar();
    default:
      return instr->shape().is_scalar() && has_trait(instr->opcode(), hlo::elementwise);
  }
}

bool is_invariant(const Instr* instr, const Covered& covered) {
  if (!covered.is_body || !instr->is(Opcode::get_tuple_element)) return false;
  const Instr* state = covered.computation->parameters()[0];
  const Instr* root = covered.computation->root();
  if (instr->operand(0) != state || !root->is(Opcode::tuple)) return false;
  const Instr* next = root->operand(static_cast<size_t>(instr->tuple_index()));
  return next->is(Opcode::get_tuple_element) && next->operand(0) == state &&
         next->tuple_index() == instr->tuple_index();
}

namespace {

// How a kernel that can compute a few instructions per element best reads a constant: directly, or
// computed from its operands if these have no more bytes.
class Unpacking {
 public:
  // Bytes to be read for `x`.
  int64_t bytes_of(const Instr* x, int depth = 0) {
    constexpr int kDeep = 32;
    const auto known = bytes_.find(x);
    if (known != bytes_.end()) return known->second;
    int64_t bytes = x->is(Opcode::iota) ? 0 : x->shape().bytes();
    const bool moves = x->is(Opcode::broadcast) || x->is(Opcode::reshape);
    const bool cheap = has_trait(x->opcode(), hlo::elementwise) && !is_costly(x->opcode());
    if (depth < kDeep && (moves || cheap)) {
      int64_t apart = 0;
      for (const Instr* operand : x->operands()) apart += bytes_of(operand, depth + 1);
      if (apart <= bytes || moves) {
        bytes = apart;
        unpacked_.insert(x);
      }
    }
    bytes_.emplace(x, bytes);
    return bytes;
  }
  // Collects the instructions to compute where `x` is read, and their inputs.
  void look(const Instr* x, std::unordered_set<const Instr*>* parts,
            std::unordered_set<const Instr*>* sources) const {
    if (!unpacked_.contains(x)) {
      sources->insert(x);
      return;
    }
    if (!parts->insert(x).second) return;
    for (const Instr* operand : x->operands()) look(operand, parts, sources);
  }

 private:
  std::unordered_map<const Instr*, int64_t> bytes_;
  std::unordered_set<const Instr*> unpacked_;
};

// The factors of products that a sum adds up, perhaps after adding or scaling some of them.
void add_factors(const Instr* x, int depth, std::vector<const Instr*>* found) {
  if (depth == 0 || !(x->is(Opcode::multiply) || x->is(Opcode::add))) return;
  for (const Instr* operand : x->operands()) {
    if (x->is(Opcode::multiply)) found->push_back(operand);
    if (operand->users().size() == 1) add_factors(operand, depth - 1, found);
  }
}

// Constant factors that only a sum of products reads, and that are unpacked from far fewer bytes,
// are not computed at load time: reading the packed values and unpacking them takes less time than
// reading the result.
void drop_unpacked(const Covered& covered, const std::unordered_set<const Instr*>& constant,
                   std::unordered_set<const Instr*>* once) {
  constexpr int64_t kTimesFewer = 2;
  constexpr int kDeep = 20;
  for (const Instr* sum : covered.computation->instrs()) {
    if (!sum->is(Opcode::reduce)) continue;
    const Instr* x = sum->operand(0);
    if (constant.contains(x) || x->users().size() != 1) continue;
    std::vector<const Instr*> factors;
    add_factors(x, kDeep, &factors);
    Unpacking unpacking;
    std::unordered_set<const Instr*> made, parts, sources;  // sources: several may share them
    for (const Instr* factor : factors) {
      if (!constant.contains(factor)) continue;
      while (factor->is(Opcode::broadcast) || factor->is(Opcode::reshape))
        factor = factor->operand(0);
      if (!once->contains(factor) || unpacking.bytes_of(factor) > factor->shape().bytes()) continue;
      made.insert(factor);
      unpacking.look(factor, &parts, &sources);
    }
    const auto bytes = [](const std::unordered_set<const Instr*>& all) {
      int64_t sum = 0;
      for (const Instr* one : all) sum += one->is(Opcode::iota) ? 0 : one->shape().bytes();
      return sum;
    };
    if (kTimesFewer * bytes(sources) > bytes(made)) continue;
    for (const Instr* part : parts) once->erase(part);
  }
}

}  // namespace

std::unordered_set<const Instr*> find_once(const Covered& covered,
                                           std::unordered_set<const Instr*>* all) {
  // Values computed from scalars and iota alone are computed where they are read: they need no
  // memory.
  std::unordered_set<const Instr*> constant, once, unstored;
  for (const Instr* instr : covered.computation->instrs()) {
    const bool places = instr->is(Opcode::iota);
    if (places || instr->is(Opcode::constant) || is_invariant(instr, covered)) {
      constant.insert(instr);
      if (places || (instr->is(Opcode::constant) && instr->shape().is_scalar()))
        unstored.insert(instr);
      continue;
    }
    if (instr->operands().empty() || !has_trait(instr->opcode(), hlo::pure) ||
        instr->shape().is_tuple())
      continue;
    if (!std::all_of(instr->operands().begin(), instr->operands().end(),
                     [&](const Instr* operand) { return constant.count(operand) > 0; }))
      continue;
    constant.insert(instr);
    if (std::all_of(instr->operands().begin(), instr->operands().end(),
                    [&](const Instr* operand) { return unstored.count(operand) > 0; })) {
      unstored.insert(instr);
      continue;
    }
    bool from_scalars = std::all_of(
        instr->operands().begin(), instr->operands().end(),
        [&](const Instr* operand) { return operand->shape().is_scalar() && !once.count(operand); });
    // Views and broadcasts are index maps to their readers.
    bool map_only = instr->is(Opcode::broadcast) || instr->is(Opcode::reshape) ||
                    instr->is(Opcode::bitcast) || is_unpack(instr);
    if (!from_scalars && !map_only) once.insert(instr);
  }
  drop_unpacked(covered, constant, &once);
  if (all != nullptr) *all = std::move(constant);
  return once;
}

namespace {

// Control flow, or a call that stays one until all is fused (opt/lazy_calls.h).
bool is_control(const Instr* instr) {
  return instr->is(Opcode::while_) || instr->is(Opcode::conditional) || instr->is(Opcode::call);
}

// Whether the caller donates the memory of an input.
bool is_donated(const Instr* parameter) {
  const hlo::Module& module = *parameter->parent()->module();
  return std::any_of(
      module.input_output_alias.begin(), module.input_output_alias.end(),
      [&](const hlo::Alias& alias) { return alias.parameter == parameter->parameter_number(); });
}

}  // namespace

std::vector<Covered> covered_computations(const hlo::Module& module) {
  std::unordered_map<const Computation*, Covered> found;
  std::unordered_set<const Computation*> others;  // called by something else too
  const std::vector<Computation*> callees_first = module.post_order();
  for (Computation* computation : callees_first) {
    for (Instr* instr : computation->instrs()) {
      for (size_t i = 0; i < instr->called().size(); ++i) {
        if (!is_control(instr)) {
          others.insert(instr->called()[i]);
          continue;
        }
        Covered& covered = found[instr->called()[i]];
        covered.is_body =
            instr->is(Opcode::while_) && i == 1 && (covered.is_body || covered.callers.empty());
        covered.callers.emplace_back(instr, i);
      }
    }
  }
  // Only computations that the entry reaches through control flow: a reduction's stays as it is.
  std::unordered_set<const Computation*> reached{module.entry()};
  for (size_t c = callees_first.size(); c-- > 0;) {
    if (!reached.count(callees_first[c])) continue;
    for (const Instr* instr : callees_first[c]->instrs())
      if (is_control(instr))
        for (const Computation* called : instr->called()) reached.insert(called);
  }
  std::vector<Covered> result;
  for (Computation* computation : callees_first) {
    if (!reached.count(computation) || others.count(computation)) continue;
    Covered& covered = found[computation];
    covered.computation = computation;
    result.push_back(std::move(covered));
  }
  return result;
}

bool is_update(const Instr* instr) {
  if (!instr->is(Opcode::dynamic_update_slice) ||
      2 * instr->operand(1)->shape().elems() > instr->shape().elems())
    return false;
  const Instr* array = instr->operand(0);
  while (array->is(Opcode::dynamic_update_slice)) array = array->operand(0);
  return may_be_overwritten(array);
}

bool may_be_overwritten(const Instr* array) {
  const bool entry = array->parent() == array->parent()->module()->entry();
  if (array->is(Opcode::parameter)) return !entry || is_donated(array);
  return array->is(Opcode::get_tuple_element) &&
         (is_control(array->operand(0)) || (!entry && array->operand(0)->is(Opcode::parameter)));
}

bool has_kernel(const Instr* instr) {
  // Scatters that have a kernel are fusions already (fuse_scatters.cc).
  if (is_update(instr) || is_long_concatenate(instr) || instr->is(Opcode::scatter)) return false;
  // Transformed filters come with their reader.
  if (instr->is(Opcode::custom_call) && !hlo::top_k_part(*instr)) return false;
  if (instr->is(Opcode::parameter) || instr->is(Opcode::constant) || instr->is(Opcode::tuple) ||
      instr->is(Opcode::get_tuple_element) || instr->shape().is_tuple())
    return instr->is(Opcode::reduce) && static_cast<bool>(stage::can_stage(*instr));
  return static_cast<bool>(stage::can_stage(*instr));
}

bool is_long_concatenate(const Instr* instr) {
  constexpr size_t kMostPieces = 16;
  return instr->is(Opcode::concatenate) && instr->operands().size() > kMostPieces;
}

size_t weight(const Group& group) {
  constexpr size_t kMostIntegers = 1024;
  const auto integers = static_cast<size_t>(
      std::count_if(group.members.begin(), group.members.end(), [](const Instr* member) {
        return member->shape().is_array() && has_trait(member->opcode(), hlo::elementwise) &&
               !tensor::is_float(member->shape().type());
      }));
  return integers < kMostIntegers ? group.members.size() - integers : group.members.size();
}

bool is_view(const Group& group) {
  return group.members.size() == 1 &&
         (group.members[0]->is(Opcode::reshape) || group.members[0]->is(Opcode::bitcast) ||
          group.members[0]->is(Opcode::copy)) &&
         group.members[0]->shape().type() == group.members[0]->operand(0)->shape().type();
}

const Instr* viewed_output(const Instr* output, const std::unordered_set<const Instr*>& outputs) {
  while (output->is(Opcode::reshape) && output->shape() == output->shape().without_layout()) {
    output = output->operand(0);
    if (output->shape() != output->shape().without_layout()) return nullptr;
    if (outputs.count(output)) return output;
  }
  return nullptr;
}

stage::Members members_of(const std::vector<Instr*>& instrs,
                          const std::function<bool(const Instr*)>& leaves) {
  std::vector<const Instr*> inputs, needed, outputs;
  std::unordered_set<const Instr*> known, leaving;
  for (const Instr* instr : instrs) {
    for (const Instr* operand : instr->operands()) {
      const bool scalar = operand->is(Opcode::constant) && operand->shape().is_scalar();
      if (!scalar && known.insert(operand).second) inputs.push_back(operand);
    }
    known.insert(instr);
    if (!leaves(instr)) continue;
    if (viewed_output(instr, leaving) == nullptr) outputs.push_back(instr);
    leaving.insert(instr);
  }
  std::unordered_set<const Instr*> read(outputs.begin(), outputs.end());
  for (auto instr = instrs.rbegin(); instr != instrs.rend(); ++instr) {
    if (!read.count(*instr)) continue;
    needed.push_back(*instr);
    read.insert((*instr)->operands().begin(), (*instr)->operands().end());
  }
  std::reverse(needed.begin(), needed.end());
  return {"candidate", std::move(inputs), std::move(needed), std::move(outputs)};
}

stage::PlacedFusion place_alone(Instr* instr, const target::Target& target) {
  return schedule::place(members_of({instr}, [](const Instr*) { return true; }), target);
}

}  // namespace heddle::fuse
