#include "hlo/dim_classes.h"

#include <algorithm>

#include "hlo/leaves.h"
#include "hlo/select_boxes.h"
#include "hlo/sort_order.h"
#include "hlo/top_k_part.h"

namespace heddle::hlo {
bool runs_up(const WindowDim& window, int64_t extent) {
  WindowDim all;
  all.size = extent;
  all.pad_low = extent - 1;
  return window == all;
}

bool keeps_share(const WindowDim& window) {
  const int64_t more =
      window.pad_low + window.pad_high + window.stride - 1 - window.rhs_dilate * (window.size - 1);
  return window.lhs_dilate == 1 && window.pad_low >= 0 && more >= 0 && more < window.stride;
}

std::optional<tensor::Extent> windows_over(const tensor::Extent& extent, const WindowDim& window) {
  if (window.lhs_dilate != 1) return std::nullopt;
  const int64_t more =
      window.pad_low + window.pad_high - window.rhs_dilate * (window.size - 1) - 1 + window.stride;
  return extent.plus({more}).quotient(window.stride);
}

int64_t seen_behind(const WindowDim& window, int64_t multiple) {
  const int64_t last =
      keeps_share(window) && multiple % window.stride == 0
          ? window.rhs_dilate * (window.size - 1) - window.pad_low - (window.stride - 1)
          : window.pad_high;
  return std::max<int64_t>(last, 0);
}

DimClasses::DimClasses(const Module& module, Made made) { look_at(*module.entry(), made); }
DimClasses::DimClasses(const Instr* fusion, const DimClasses& around)
    : fusion_(fusion), around_(&around) {
  look_at(*fusion->called().at(0), Made::free);
  fusion_ = nullptr;
  around_ = nullptr;
}
DimClasses::DimClasses(const Module& module, const std::set<const Instr*>& unknown)
    : unknown_(&unknown) {
  look_at(*module.entry(), Made::follows);
  unknown_ = nullptr;
}
DimClasses::DimClasses(const Computation& computation, Made made) { look_at(computation, made); }

void DimClasses::look_at(const Computation& first, Made made) {
  const std::vector<Symbol>& symbols = first.module()->symbols;
  masked_ = made == Made::free || (!symbols.empty() && symbols[0].extent >= 0);
  std::vector<const Computation*> looked_at{&first};
  for (size_t c = 0; c < looked_at.size(); ++c)
    for (const Instr* instr : looked_at[c]->instrs())
      if (instr->is(Opcode::fusion)) looked_at.push_back(instr->called().at(0));
  for (const Computation* computation : looked_at) {
    for (const Instr* instr : computation->instrs()) {
      const size_t begin = leaves_.size();
      add_leaves(instr, instr->shape());
      arrays_.emplace(instr, Arrays{begin, leaves_.size() - begin});
    }
  }
  if (made == Made::free) {
    made_.resize(parent_.size());
    for (const Instr* parameter : first.parameters()) {
      if (!around_ || !parameter->shape().is_array()) continue;
      const Instr* operand = fusion_->operand(static_cast<size_t>(parameter->parameter_number()));
      for (int64_t d = 0; d < parameter->shape().rank(); ++d)
        made_[static_cast<size_t>(at(parameter, d))] = around_->is_made(operand, d);
    }
    find_made(first);
  }
  for (const Computation* computation : looked_at)
    for (const Instr* instr : computation->instrs()) relate(instr);
  for (size_t i = 0; i < parent_.size(); ++i) parent_[i] = find(static_cast<int>(i));
}

void DimClasses::add_leaves(const Instr* instr, const Shape& shape) {
  if (shape.is_tuple()) {
    for (const Shape& element : shape.elements()) add_leaves(instr, element);
    return;
  }
  Leaf& leaf = leaves_.emplace_back();
  if (!shape.is_array()) return;
  leaf.first = static_cast<int>(parent_.size());
  leaf.rank = static_cast<int>(shape.rank());
  for (const tensor::Dim& dim : shape.dims()) {
    parent_.push_back(static_cast<int>(parent_.size()));
    extents_.push_back(dim.size);
    owner_.push_back(instr);
    fixed_by_.push_back(nullptr);
  }
}

void DimClasses::find_made(const Computation& computation) {
  for (const Instr* instr : computation.instrs()) {
    if (instr->is(Opcode::fusion)) {
      const Computation& called = *instr->called().at(0);
      for (size_t i = 0; i < instr->operands().size(); ++i)
        set_made(called.parameters()[i], 0, instr->operand(i), 0);
      find_made(called);
      for (size_t leaf = 0; leaf < leaf_count_of(instr); ++leaf)
        set_made(instr, leaf, called.root(), leaf);
    } else if (instr->is(Opcode::tuple)) {
      size_t leaf = 0;
      for (const Instr* operand : instr->operands())
        for (size_t k = 0; k < leaf_count(operand->shape()); ++k)
          set_made(instr, leaf++, operand, k);
    } else if (instr->is(Opcode::get_tuple_element)) {
      for (size_t k = 0; k < leaf_count(instr->shape()); ++k)
        set_made(instr, k, instr->operand(0), first_leaf_of(instr) + k);
    } else if (instr->shape().is_array()) {
      find_made(instr);
    }
  }
}

// One array is another.
void DimClasses::set_made(const Instr* instr, size_t leaf, const Instr* from, size_t from_leaf) {
  const Leaf& to = leaf_of(instr, leaf);
  if (to.first < 0 || leaf_of(from, from_leaf).first < 0) return;
  for (int64_t d = 0; d < to.rank; ++d)
    made_[static_cast<size_t>(at(instr, d, leaf))] = is_made(from, d, from_leaf);
}

void DimClasses::find_made(const Instr* instr) {
  const bool moves = instr->is(Opcode::broadcast) || instr->is(Opcode::transpose) ||
                     instr->is(Opcode::reshape) || has_trait(instr->opcode(), Trait::elementwise);
  if (!moves && !instr->is(Opcode::constant) && !instr->is(Opcode::iota)) return;
  std::vector<bool> made(static_cast<size_t>(instr->shape().rank()), true);
  for (size_t k = 0; k < instr->operands().size(); ++k) {
    const IndexMap map = index_map(*instr, k);
    if (map.is_opaque) return;
    for (const DimLink& link : map.links)
      for (int64_t from = link.from; from < link.from_end; ++from)
        for (int64_t to = link.to; !is_made(instr->operand(k), from) && to < link.to_end; ++to)
          made[static_cast<size_t>(to)] = false;
  }
  for (size_t d = 0; d < made.size(); ++d)
    made_[static_cast<size_t>(at(instr, static_cast<int64_t>(d)))] = made[d];
}

int DimClasses::at(const Instr* instr, int64_t d, size_t leaf) const {
  return leaf_of(instr, leaf).first + static_cast<int>(d);
}

int DimClasses::root(int i) const {
  while (parent_[static_cast<size_t>(i)] != i) i = parent_[static_cast<size_t>(i)];
  return i;
}

int DimClasses::find(int i) {
  int* parent = parent_.data();
  while (parent[i] != i) i = parent[i] = parent[parent[i]];
  return i;
}

void DimClasses::join(int a, int b) {
  a = find(a);
  b = find(b);
  if (a == b) return;
  parent_[static_cast<size_t>(a)] = b;
  const Instr*& fixed = fixed_by_[static_cast<size_t>(b)];
  if (!fixed) fixed = fixed_by_[static_cast<size_t>(a)];
}

void DimClasses::join_all(const Instr* a, size_t a_leaf, const Instr* b, size_t b_leaf) {
  const Leaf &one = leaf_of(a, a_leaf), &other = leaf_of(b, b_leaf);
  if (one.first < 0 || other.first < 0 || one.rank != other.rank) return;
  for (int64_t d = 0; d < one.rank; ++d)
    if (!is_made(a, d, a_leaf) && !is_made(b, d, b_leaf)) join(at(a, d, a_leaf), at(b, d, b_leaf));
}

void DimClasses::fix(const Instr* instr, int64_t d, size_t leaf) {
  fixed_by_[static_cast<size_t>(find(at(instr, d, leaf)))] = relating_;
}

void DimClasses::fix_all(const Instr* instr) {
  for (size_t leaf = 0; leaf < leaf_count_of(instr); ++leaf)
    for (int64_t d = 0; d < leaf_of(instr, leaf).rank; ++d) fix(instr, d, leaf);
}

int DimClasses::of(const Instr* instr, int64_t dimension, size_t leaf) const {
  const auto found = arrays_.find(instr);
  if (found == arrays_.end() || leaf >= found->second.count) return -1;
  const Leaf& array = leaves_[found->second.begin + leaf];
  return dimension < array.rank ? root(array.first + static_cast<int>(dimension)) : -1;
}

int DimClasses::symbol(int class_number) const {
  const auto found = symbol_of_root_.find(class_number);
  return class_number < 0 || found == symbol_of_root_.end() ? -1 : found->second;
}

Status DimClasses::assign_places(const std::vector<Symbol>& symbols) {
  symbol_of_root_.clear();
  const Instr* some = owner_.empty() ? nullptr : owner_[0];
  for (size_t s = 0; s < symbols.size(); ++s) {
    std::vector<std::pair<const Instr*, int64_t>> places;
    if (symbols[s].call) places.emplace_back(symbols[s].call, 0);
    for (const Instr* rows : symbols[s].rows) places.emplace_back(rows, 0);
    for (const auto& [parameter, dimension] : symbols[s].places)
      places.emplace_back(
          some->parent()->module()->entry()->parameters().at(static_cast<size_t>(parameter)),
          dimension);
    for (const auto& [instr, dimension] : places) {
      const int one = of(instr, dimension);
      const auto [known, added] = symbol_of_root_.emplace(one, static_cast<int>(s));
      if (!added && known->second != static_cast<int>(s))
        return user_error("dimension '{}' and '{}' meet in one array; give one of them a number",
                          symbols[s].name, symbols[static_cast<size_t>(known->second)].name);
    }
  }
  return {};
}

Status DimClasses::check_extents(const std::vector<Symbol>& symbols) const {
  for (size_t i = 0; i < parent_.size(); ++i) {
    const int s = symbol(root(static_cast<int>(i)));
    if (s < 0) continue;
    const Symbol& of = symbols[static_cast<size_t>(s)];
    if (of.bound < 1)
      return user_error("dimension '{}' of {} has no elements at its bound", of.name,
                        owner_[i]->name());
    if (extents_[i] % of.bound != 0)
      return user_error("dimension '{}' of bound {} reaches {} with an extent of {}", of.name,
                        of.bound, owner_[i]->name(), extents_[i]);
    if (const Instr* by = fixed_by_[static_cast<size_t>(root(static_cast<int>(i)))])
      return user_error("dimension '{}' reaches {} ({}), which needs fixed extents", of.name,
                        by->name(), opcode_text(by->opcode()));
  }
  return {};
}

Status DimClasses::assign(const std::vector<Symbol>& symbols) {
  HEDDLE_RETURN_IF_ERROR(assign_places(symbols));
  HEDDLE_RETURN_IF_ERROR(follow_windows(symbols));
  return check_extents(symbols);
}

void DimClasses::relate_called(const Instr* fusion) {
  const Computation* called = fusion->called().at(0);
  for (size_t i = 0; i < fusion->operands().size(); ++i) {
    const size_t leaves = leaf_count_of(fusion->operand(i));
    for (size_t leaf = 0; leaf < leaves; ++leaf)
      join_all(fusion->operand(i), leaf, called->parameters()[i], leaf);
  }
  for (size_t leaf = 0; leaf < leaf_count_of(fusion); ++leaf)
    join_all(fusion, leaf, called->root(), leaf);
}

// Whether there is an element of the result for each one of the operand, or, inside of a fusion,
// for so many of them, whatever the extent.
bool DimClasses::is_same_along(const Instr* instr, const DimLink& link) const {
  const Instr* x = instr->operand(0);
  const int64_t extent = instr->shape().dim(link.to), stride = link.window.stride;
  if (link.other < 0 && runs_up(link.window, extent)) return true;
  const bool same_symbol =
      stride == 1 || (around_ != nullptr &&
                      around_->symbol_of(x, link.from) == around_->symbol_of(instr, link.to));
  return same_symbol && x->shape().dim(link.from) == extent * stride && keeps_share(link.window);
}

// Padding stays behind the valid elements only where a dimension goes through whole.
void DimClasses::relate_link(const Instr* instr, size_t k, const DimLink& link) {
  const Instr* x = instr->operand(k);
  const auto join_result = [&](int64_t d, int64_t to) {
    if (is_made(x, d)) return;
    for (size_t leaf = 0; leaf < leaf_count_of(instr); ++leaf) join(at(x, d), at(instr, to, leaf));
  };
  switch (link.kind) {
    case DimKind::same:
      return join_result(link.from, link.to);
    case DimKind::regrouped:
      // The outermost of a group keeps its share; what stands further in has to be known.
      join_result(link.from, link.to);
      for (int64_t d = link.from + 1; d < link.from_end; ++d) fix(x, d);
      for (int64_t d = link.to + 1; d < link.to_end; ++d) fix(instr, d);
      return;
    case DimKind::reduced:
      if (link.other >= 0) {
        const Instr* other = instr->operand(static_cast<size_t>(link.other));
        if (!is_made(x, link.from) && !is_made(other, link.other_dim))
          join(at(x, link.from), at(other, link.other_dim));
      }
      return;
    case DimKind::window:
      if (link.other >= 0) fix_all(instr->operand(static_cast<size_t>(link.other)));
      if (is_same_along(instr, link)) return join_result(link.from, link.to);
      if (relate_window(instr, link)) return;
      fix(instr, link.to);
      break;
    case DimKind::strided:
      // The first element is always there.
      if (link.offset == 0 && instr->shape().dim(link.to) == 1) return;
      if (is_counted_part(*instr)) return;  // its result's extent is told
      if (relate_cut(instr, k, link)) return;
      break;
    case DimKind::overlaid:
      if (masked_) return join_result(link.from, link.to);
      fix(instr, link.to);
      break;
    case DimKind::located:
      // Positions that a gather is given are those of elements that are there; mask_padding sees to
      // those that are not.
      if (masked_ || (instr->is(Opcode::gather) && link.to == link.to_end)) return;
      break;
    case DimKind::placed:
      if (masked_) return;
      break;
    case DimKind::opaque:
      break;
  }
  fix(x, link.from);
}

// What a position beyond the extent writes into is padding; which updates there are follows the
// positions.
void DimClasses::relate_scatter(const Instr* scatter) {
  const auto& attrs = scatter->attrs_as<ScatterAttrs>();
  const size_t arrays = scatter->operands().size() / 2;
  const Instr* positions = scatter->operand(arrays);
  if (!attrs.input_batching_dims.empty()) {
    for (const Instr* operand : scatter->operands()) fix_all(operand);
    return fix_all(scatter);
  }
  const auto has = [](const Ints& list, int64_t d) {
    return std::find(list.begin(), list.end(), d) != list.end();
  };
  if (attrs.index_vector_dim < positions->shape().rank()) fix(positions, attrs.index_vector_dim);
  for (size_t i = 0; i < arrays; ++i) {
    const Instr *x = scatter->operand(i), *updates = scatter->operand(arrays + 1 + i);
    join_all(x, 0, scatter, i);
    int64_t of_x = 0, of_positions = 0;
    for (int64_t d = 0; d < updates->shape().rank(); ++d) {
      if (has(attrs.update_window_dims, d)) {
        while (has(attrs.inserted_window_dims, of_x)) ++of_x;
        if (updates->shape().dim(d) == x->shape().dim(of_x)) {
          if (!is_made(updates, d) && !is_made(x, of_x)) join(at(updates, d), at(x, of_x));
        } else {
          fix(updates, d);
          fix(x, of_x);
        }
        ++of_x;
      } else {
        if (of_positions == attrs.index_vector_dim) ++of_positions;
        if (!is_made(updates, d) && !is_made(positions, of_positions))
          join(at(updates, d), at(positions, of_positions));
        ++of_positions;
      }
    }
  }
}

// Rows are sorted by themselves. What is not there of a row comes last, where mask_padding can see
// to that; else it matters how long the row is.
void DimClasses::relate_sort(const Instr* sort) {
  const int64_t along = sorted_dimension(*sort);
  const bool may_be_longer = sort_order(*sort).has_value();
  for (size_t k = 0; k < sort->operands().size(); ++k) {
    const Instr* x = sort->operand(k);
    join_all(x, 0, sort, k);
    if (may_be_longer) continue;
    fix(x, along);
    fix(sort, along, k);
  }
  // All arrays have the same extents.
  for (size_t k = 1; k < sort->operands().size(); ++k) join_all(sort, 0, sort, k);
}

std::set<int> DimClasses::symbols_around(const Instr* instr) const {
  std::set<int> result;
  std::vector<const Instr*> all{instr};
  all.insert(all.end(), instr->operands().begin(), instr->operands().end());
  for (const Instr* one : all) {
    const std::vector<Shape> leaves = leaves_of(one->shape());
    for (size_t leaf = 0; leaf < leaves.size(); ++leaf)
      for (int64_t d = 0; leaves[leaf].is_array() && d < leaves[leaf].rank(); ++d)
        if (const int s = symbol_of(one, d, leaf); s >= 0) result.insert(s);
  }
  return result;
}

// Rows have lists of their own; how long a row is matters.
void DimClasses::relate_top_k(const Instr* top) {
  const Instr* x = top->operand(0);
  const int64_t along = x->shape().rank() - 1;
  fix(x, along);
  for (size_t k = 0; k < leaf_count_of(top); ++k) {
    for (int64_t d = 0; d < along; ++d) join(at(x, d), at(top, d, k));
    fix(top, along, k);
  }
}

// How many boxes there are it is told (opt/mask_padding); how many it finds, it tells.
void DimClasses::relate_boxes(const Instr* call) {
  const Instr *boxes = call->operand(0), *scores = call->operand(1);
  for (const int64_t d : {0, 2}) fix(boxes, d);
  for (const int64_t d : {0, 1}) fix(scores, d);
  join(at(boxes, 1), at(scores, 2));
  fix(call, 1, 0);
}

void DimClasses::relate(const Instr* instr) {
  relating_ = instr;
  if (unknown_ && unknown_->contains(instr)) return;
  switch (instr->opcode()) {
    case Opcode::parameter:
    case Opcode::constant:
    case Opcode::iota:
      return;
    case Opcode::fusion:
      return relate_called(instr);
    case Opcode::tuple: {
      size_t leaf = 0;
      for (const Instr* operand : instr->operands())
        for (size_t k = 0; k < leaf_count(operand->shape()); ++k)
          join_all(instr, leaf++, operand, k);
      return;
    }
    case Opcode::get_tuple_element:
      for (size_t k = 0; k < leaf_count(instr->shape()); ++k)
        join_all(instr, k, instr->operand(0), first_leaf_of(instr) + k);
      return;
    case Opcode::scatter:
      return relate_scatter(instr);
    case Opcode::sort:
      return relate_sort(instr);
    case Opcode::topk:
      return relate_top_k(instr);
    case Opcode::get_dimension_size:
      return;
    case Opcode::custom_call:
      if (top_k_part(*instr)) return relate_top_k(instr);
      if (is_select_boxes(*instr)) return relate_boxes(instr);
      if (!is_first_rows(*instr)) break;
      if (const auto like = counted_like(*instr)) join(at(instr, 0), at(like->first, like->second));
      return join_all(instr, 0, instr->operand(0), 0);
    default:
      break;
  }
  bool is_opaque = instr->operands().empty();
  for (size_t k = 0; k < instr->operands().size(); ++k) {
    const IndexMap map = index_map(*instr, k);
    if (map.is_opaque) fix_all(instr->operand(k));
    is_opaque |= map.is_opaque;
    for (const DimLink& link : map.links) relate_link(instr, k, link);
  }
  if (is_opaque) fix_all(instr);
}

}  // namespace heddle::hlo
