#include "compiler/with_rows.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "hlo/index_map.h"
#include "hlo/verify.h"

namespace heddle::compiler {
namespace {

using hlo::Instr;
using hlo::Opcode;

// Dimensions of all arrays, in classes that have to stay equal.
class Dimensions {
  using Group = std::vector<size_t>;

 public:
  explicit Dimensions(hlo::Computation* entry) : entry_(entry) {
    size_t count = 0;
    for (const Instr* instr : entry->instrs()) {
      if (!instr->shape().is_array()) continue;
      first_.emplace(instr, count);
      count += static_cast<size_t>(instr->shape().rank());
    }
    parent_.resize(count);
    std::iota(parent_.begin(), parent_.end(), size_t{0});
    fixed_.resize(count, false);
    extents_.resize(count, -1);
    for (const Instr* instr : entry->instrs()) relate(instr);
  }

  // Rows of the dot: its left side's free dimensions.
  bool assign(const Instr* dot, int64_t rows) {
    const size_t batch = dot->attrs_as<hlo::DotAttrs>().lhs_batch_dims.size();
    Group found;
    for (const hlo::DimLink& link : hlo::index_map(*dot, 0).links)
      if (link.kind == hlo::DimKind::same && link.to >= static_cast<int64_t>(batch))
        found.push_back(at(dot->operand(0), link.from));
    if (found.empty() || !set_last(found, rows)) return false;
    // Split or merged dimensions follow from the side that is set.
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& [from, to] : regrouped_) {
        if (is_set(from) == is_set(to)) {
          if (!is_set(from)) continue;
          if (product(from) != product(to)) return false;
          continue;
        }
        if (any_set(is_set(from) ? to : from)) return false;
        if (!set_last(is_set(from) ? to : from, product(is_set(from) ? from : to))) return false;
        changed = true;
      }
    }
    for (const auto& [from, to] : regrouped_)
      if (any_set(from) != is_set(to) || any_set(to) != is_set(from)) return false;
    return true;
  }

  void apply() const {
    for (Instr* instr : entry_->instrs()) {
      if (instr->is(Opcode::tuple)) {
        std::vector<tensor::Shape> parts;
        for (const Instr* part : instr->operands()) parts.push_back(part->shape());
        instr->set_shape(tensor::Shape::make_tuple(std::move(parts)));
      }
      if (first_.count(instr) == 0) continue;
      tensor::Shape shape = instr->shape();
      for (int64_t d = 0; d < shape.rank(); ++d)
        if (const int64_t extent = extents_[root(at(instr, d))]; extent >= 0)
          shape.set_dim(d, extent);
      instr->set_shape(shape);
    }
  }

  // Whether its first dimension of more than one element is one of rows.
  bool leads(const Instr* instr) const {
    const tensor::Shape& shape = instr->shape();
    for (int64_t d = 0; d < shape.rank(); ++d) {
      const int64_t extent = extents_[root(at(instr, d))];
      if (extent > 1) return true;
      if (extent < 0 && shape.dim(d) > 1) return false;
    }
    return false;
  }

 private:
  size_t at(const Instr* instr, int64_t d) const {
    return first_.at(instr) + static_cast<size_t>(d);
  }
  size_t root(size_t i) const {
    while (parent_[i] != i) i = parent_[i];
    return i;
  }
  void join(size_t a, size_t b) {
    a = root(a);
    b = root(b);
    parent_[a] = b;
    fixed_[b] = fixed_[a] || fixed_[b];
  }
  void fix(const Instr* instr) {
    if (first_.count(instr) == 0) return;
    for (int64_t d = 0; d < instr->shape().rank(); ++d) fixed_[root(at(instr, d))] = true;
  }
  bool is_set(const Group& group) const {
    return !group.empty() && std::all_of(group.begin(), group.end(),
                                         [&](size_t i) { return extents_[root(i)] >= 0; });
  }
  bool any_set(const Group& group) const {
    return std::any_of(group.begin(), group.end(),
                       [&](size_t i) { return extents_[root(i)] >= 0; });
  }
  int64_t product(const Group& group) const {
    int64_t result = 1;
    for (size_t i : group) result *= extents_[root(i)];
    return result;
  }
  bool set_last(const Group& group, int64_t extent) {
    for (size_t i = 0; i < group.size(); ++i) {
      const size_t one = root(group[i]);
      if (fixed_[one]) return false;
      extents_[one] = i + 1 == group.size() ? extent : 1;
    }
    return true;
  }

  Group dims(const Instr* instr, int64_t begin, int64_t end) const {
    Group group;
    for (int64_t d = begin; d < end; ++d) group.push_back(at(instr, d));
    return group;
  }

  void relate(const Instr* instr) {
    if (instr->is(Opcode::parameter) || instr->is(Opcode::tuple)) return;
    std::vector<hlo::IndexMap> maps;
    for (size_t k = 0; k < instr->operands().size(); ++k) maps.push_back(hlo::index_map(*instr, k));
    if (maps.empty() || !std::all_of(maps.begin(), maps.end(), [&](const hlo::IndexMap& map) {
          return instr->is(Opcode::dot) || keeps_all(map);
        })) {
      fix(instr);
      for (const Instr* operand : instr->operands()) fix(operand);
      return;
    }
    if (instr->is(Opcode::dot)) fix(instr->operand(1));
    for (size_t k = 0; k < maps.size(); ++k) {
      const Instr* operand = instr->operand(k);
      for (const hlo::DimLink& link : maps[k].links) {
        Group from = dims(operand, link.from, link.from_end);
        Group to = dims(instr, link.to, link.to_end);
        if (link.kind == hlo::DimKind::same)
          join(from[0], to[0]);
        else if (link.kind == hlo::DimKind::regrouped)
          regrouped_.emplace_back(std::move(from), std::move(to));
        else
          fixed_[root(from[0])] = true;
      }
    }
  }

  // Whether every element of the operand is in the result, at least once.
  static bool keeps_all(const hlo::IndexMap& map) {
    return !map.is_opaque &&
           std::all_of(map.links.begin(), map.links.end(), [](const hlo::DimLink& link) {
             return link.kind == hlo::DimKind::same || link.kind == hlo::DimKind::regrouped;
           });
  }

  hlo::Computation* entry_;
  std::unordered_map<const Instr*, size_t> first_;  // number of its first dimension
  std::vector<size_t> parent_;
  std::vector<bool> fixed_;       // of a class: it must not change
  std::vector<int64_t> extents_;  // of a class: its new one, or -1
  std::vector<std::pair<Group, Group>> regrouped_;
};

}  // namespace

std::unique_ptr<hlo::Module> with_rows(const hlo::Module& sample, int64_t rows) {
  std::unique_ptr<hlo::Module> result = sample.clone();
  hlo::Computation* entry = result->entry();
  const Instr* dot = nullptr;
  for (const Instr* instr : entry->instrs()) {
    if (!instr->is(Opcode::dot)) continue;
    if (dot) return nullptr;
    dot = instr;
  }
  if (!dot) return nullptr;
  Dimensions dimensions(entry);
  if (!dimensions.assign(dot, rows)) return nullptr;
  const Instr* root = entry->root();
  const std::vector<Instr*> one{entry->root()};
  for (const Instr* leaf : root->is(Opcode::tuple) ? root->operands() : one)
    if (!leaf->shape().is_array() || !dimensions.leads(leaf)) return nullptr;
  dimensions.apply();
  if (!hlo::verify(*result)) return nullptr;
  return result;
}

}  // namespace heddle::compiler
