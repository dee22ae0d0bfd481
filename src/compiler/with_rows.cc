#include "compiler/with_rows.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "hlo/verify.h"

namespace heddle::compiler {
namespace {

using hlo::Instr;
using hlo::Opcode;

// Dimensions of all arrays, in classes that have to stay equal.
class Dimensions {
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
    const auto& attrs = dot->attrs_as<hlo::DotAttrs>();
    const Instr* a = dot->operand(0);
    std::vector<size_t> found;
    for (int64_t d = 0; d < a->shape().rank(); ++d) {
      auto in = [&](const hlo::Ints& dims) {
        return std::find(dims.begin(), dims.end(), d) != dims.end();
      };
      if (!in(attrs.lhs_contracting_dims) && !in(attrs.lhs_batch_dims)) found.push_back(at(a, d));
    }
    if (found.empty() || !set_last(found, rows)) return false;
    // What was split or merged follows from one side.
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

  // Its first dimension of more than one element has rows.
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
  using Group = std::vector<size_t>;

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

  void relate(const Instr* instr) {
    if (instr->is(Opcode::parameter) || instr->is(Opcode::tuple)) return;
    if (hlo::has_trait(instr->opcode(), hlo::Trait::elementwise) && first_.count(instr)) {
      for (const Instr* operand : instr->operands()) {
        if (operand->shape().rank() == 0) continue;
        for (int64_t d = 0; d < instr->shape().rank(); ++d) join(at(instr, d), at(operand, d));
      }
    } else if (instr->is(Opcode::broadcast)) {
      for (size_t i = 0; i < instr->dimensions().size(); ++i)
        join(at(instr, instr->dimensions()[i]), at(instr->operand(0), static_cast<int64_t>(i)));
    } else if (instr->is(Opcode::transpose)) {
      for (size_t i = 0; i < instr->dimensions().size(); ++i)
        join(at(instr, static_cast<int64_t>(i)), at(instr->operand(0), instr->dimensions()[i]));
    } else if (instr->is(Opcode::reshape)) {
      regroup(instr);
    } else if (instr->is(Opcode::dot)) {
      relate_dot(instr);
    } else {
      fix(instr);
      for (const Instr* operand : instr->operands()) fix(operand);
    }
  }

  void relate_dot(const Instr* dot) {
    const auto& attrs = dot->attrs_as<hlo::DotAttrs>();
    fix(dot->operand(1));
    int64_t to = static_cast<int64_t>(attrs.lhs_batch_dims.size());
    for (int64_t b = 0; b < to; ++b) fixed_[root(at(dot, b))] = true;
    const Instr* a = dot->operand(0);
    for (int64_t d = 0; d < a->shape().rank(); ++d) {
      auto in = [&](const hlo::Ints& dims) {
        return std::find(dims.begin(), dims.end(), d) != dims.end();
      };
      if (in(attrs.lhs_contracting_dims) || in(attrs.lhs_batch_dims))
        fixed_[root(at(a, d))] = true;
      else
        join(at(a, d), at(dot, to++));
    }
    for (; to < dot->shape().rank(); ++to) fixed_[root(at(dot, to))] = true;
  }

  // Neighbours on one side that are neighbours on the other.
  void regroup(const Instr* reshape) {
    const Instr* from = reshape->operand(0);
    const int64_t ranks[2] = {from->shape().rank(), reshape->shape().rank()};
    if (from->shape().elems() <= 0) return fix(from), fix(reshape);
    int64_t i = 0, j = 0;
    while (i < ranks[0] || j < ranks[1]) {
      Group a, b;
      int64_t left = 1, right = 1;
      auto take_left = [&] {
        left *= from->shape().dim(i);
        a.push_back(at(from, i++));
      };
      auto take_right = [&] {
        right *= reshape->shape().dim(j);
        b.push_back(at(reshape, j++));
      };
      if (i < ranks[0]) take_left();
      if (j < ranks[1]) take_right();
      while (left != right || a.empty() || b.empty()) {
        if ((left < right || a.empty()) && i < ranks[0])
          take_left();
        else if ((right < left || b.empty()) && j < ranks[1])
          take_right();
        else
          break;  // ones at the end
      }
      if (a.size() == 1 && b.size() == 1)
        join(a[0], b[0]);
      else
        regrouped_.emplace_back(std::move(a), std::move(b));
    }
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
