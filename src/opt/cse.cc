// cse: merges equal computations, then equal instructions of a computation. Equal: the same opcode,
// operands, attributes, shape and called computations; names and annotations are ignored, except a
// custom call's configuration.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "base/hash.h"
#include "hlo/configuration.h"
#include "opt/match.h"
#include "opt/merge_computations.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

constexpr int64_t kSampledBytes = 4096;

uint64_t mix(uint64_t hash, uint64_t value) {
  return (hash ^ value) * 0x9e3779b97f4a7c15 + (hash >> 29);
}

// Weights are gigabytes, and this runs often: only the ends of a large constant are hashed.
// (Equality compares all bytes, but only if these agree.)
uint64_t constant_hash(const Literal& literal) {
  if (!literal.shape().is_array() || literal.bytes() == 0) return literal.elements().size();
  const auto* data = static_cast<const char*>(literal.data());
  const auto bytes = static_cast<size_t>(literal.bytes());
  const size_t part = std::min<size_t>(bytes, kSampledBytes);
  return hash64({data, part}, hash64({data + bytes - part, part}, bytes));
}

uint64_t shape_hash(const Shape& shape) {
  uint64_t hash = static_cast<uint64_t>(shape.type());
  for (const tensor::Dim& dim : shape.dims()) hash = mix(hash, static_cast<uint64_t>(dim.size));
  for (const Shape& element : shape.elements()) hash = mix(hash, shape_hash(element));
  return hash;
}

// Everything but the operands.
uint64_t hash_of(const Instr& instr) {
  uint64_t hash = mix(static_cast<uint64_t>(instr.opcode()), shape_hash(instr.shape()));
  if (instr.is(Opcode::constant)) {
    hash = mix(hash, constant_hash(instr.literal()));
  } else {
    hash = mix(hash, hlo::hash(instr.attrs()));
  }
  for (const Computation* called : instr.called())
    hash = mix(hash, static_cast<uint64_t>(called->id()));
  return hash;
}

bool same_but_operands(const Instr& a, const Instr& b) {
  if (a.opcode() != b.opcode() || a.called() != b.called() ||
      a.operands().size() != b.operands().size() ||
      a.shape().without_layout() != b.shape().without_layout())
    return false;
  if (!a.is(Opcode::constant))
    return a.attrs() == b.attrs() && hlo::configuration(a) == hlo::configuration(b);
  // Constants compare by their bits, however they were written.
  return a.literal().data() == b.literal().data() || a.literal() == b.literal();
}

// Hash of a computation: instructions by their position. Called computations by their id, so
// callees must have been merged before.
uint64_t hash_of(const Computation& computation) {
  std::unordered_map<const Instr*, uint64_t> place;
  uint64_t hash = hash64(computation.execution_thread);
  for (const Instr* instr : computation.instrs()) {
    hash = mix(hash, hash_of(*instr));
    for (const Instr* operand : instr->operands()) hash = mix(hash, place.at(operand));
    place.emplace(instr, place.size());
  }
  return mix(hash, place.at(computation.root()));
}

bool same(const Computation& a, const Computation& b) {
  const auto &left = a.instrs(), &right = b.instrs();
  if (left.size() != right.size() || a.execution_thread != b.execution_thread) return false;
  std::unordered_map<const Instr*, const Instr*> twin;
  for (size_t i = 0; i < left.size(); ++i) {
    const Instr &x = *left[i], &y = *right[i];
    if (!same_but_operands(x, y)) return false;
    for (size_t o = 0; o < x.operands().size(); ++o)
      if (twin.at(x.operand(o)) != y.operand(o)) return false;
    // Manual ordering is rare: computations with control edges are not merged.
    if (!x.control_predecessors().empty() || !y.control_predecessors().empty()) return false;
    twin.emplace(&x, &y);
  }
  return twin.at(a.root()) == b.root();
}

}  // namespace

bool merge_computations(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  std::unordered_map<uint64_t, std::vector<Computation*>> seen;
  std::unordered_map<const Computation*, Computation*> merged;
  for (Computation* computation : module.post_order()) {
    for (Instr* instr : computation->instrs()) {
      for (size_t i = 0; i < instr->called().size(); ++i) {
        auto found = merged.find(instr->called()[i]);
        if (found == merged.end()) continue;
        computation->set_called(instr, i, found->second);
        changed = true;
      }
    }
    if (computation == module.entry()) continue;
    std::vector<Computation*>& candidates = seen[hash_of(*computation)];
    auto equal = std::find_if(candidates.begin(), candidates.end(),
                              [&](const Computation* c) { return same(*c, *computation); });
    if (equal == candidates.end()) {
      candidates.push_back(computation);
    } else if (context.allow("cse", "computation")) {
      merged.emplace(computation, *equal);
      for (size_t i = 0; i < computation->instrs().size(); ++i)
        (*equal)->instrs()[i]->add_nodes(computation->instrs()[i]->nodes());
    }
  }
  // They have no callers any more.
  if (changed) module.remove_dead_computations();
  return changed;
}

namespace {

bool can_merge(const Instr& instr) {
  return is_removable(instr) && instr.opcode() != Opcode::parameter;
}

bool merge_instrs(Computation* computation, const PassContext& context) {
  bool changed = false;
  std::unordered_map<uint64_t, std::vector<Instr*>> seen;
  const std::vector<Instr*> all = computation->instrs();
  std::vector<Instr*> dead;
  for (Instr* instr : all) {
    if (!can_merge(*instr)) continue;
    uint64_t hash = hash_of(*instr);
    for (const Instr* operand : instr->operands())
      hash = mix(hash, static_cast<uint64_t>(operand->id()));
    std::vector<Instr*>& candidates = seen[hash];
    auto equal = std::find_if(candidates.begin(), candidates.end(), [&](const Instr* other) {
      return other->operands() == instr->operands() && same_but_operands(*other, *instr);
    });
    if (equal == candidates.end()) {
      candidates.push_back(instr);
      continue;
    }
    if (!context.allow("cse", "instruction")) continue;
    computation->replace_all_uses(instr, *equal);
    dead.push_back(instr);
    changed = true;
  }
  // Users first: a merged instruction may be an operand of a later one.
  for (auto it = dead.rbegin(); it != dead.rend(); ++it)
    if ((*it)->users().empty()) computation->remove(*it);
  return changed;
}

}  // namespace

Result<bool> cse(hlo::Module& module, const PassContext& context) {
  bool changed = merge_computations(module, context);
  for (const auto& computation : module.computations())
    changed |= merge_instrs(computation.get(), context);
  return changed;
}

}  // namespace heddle::opt
