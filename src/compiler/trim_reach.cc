#include "compiler/trim_reach.h"

#include <algorithm>

#include "hlo/leaves.h"
#include "hlo/sort_order.h"
#include "hlo/top_k_part.h"
#include "lower/trim.h"

namespace heddle::compiler {

using hlo::Instr;
using hlo::Opcode;

std::vector<std::pair<const Instr*, int64_t>> reduced_by(const Instr* instr) {
  std::vector<std::pair<const Instr*, int64_t>> result;
  if (instr->is(Opcode::reduce)) {
    for (size_t i = 0; i < instr->operands().size() / 2; ++i)
      for (int64_t d : instr->dimensions()) result.emplace_back(instr->operand(i), d);
  } else if (instr->is(Opcode::dot)) {
    const auto& attrs = instr->attrs_as<hlo::DotAttrs>();
    for (int64_t d : attrs.lhs_contracting_dims) result.emplace_back(instr->operand(0), d);
    for (int64_t d : attrs.rhs_contracting_dims) result.emplace_back(instr->operand(1), d);
  } else if (const auto order = hlo::sort_order(*instr)) {
    result.emplace_back(instr->operand(order->key), hlo::sorted_dimension(*instr));
  } else if (instr->is(Opcode::scatter)) {
    const Instr* positions = instr->operand(instr->operands().size() / 2);
    const int64_t vector = instr->attrs_as<hlo::ScatterAttrs>().index_vector_dim;
    for (int64_t d = 0; d < positions->shape().rank(); ++d)
      if (d != vector) result.emplace_back(positions, d);
  }
  return result;
}

std::set<int> cut_in(const std::vector<const Instr*>& all, const hlo::DimClasses& local) {
  std::set<int> result;
  for (const Instr* instr : all)
    for (const auto& [operand, d] : hlo::cut_dimensions(instr)) result.insert(local.of(operand, d));
  return result;
}

// Loops run over the dimensions of these, not of what only gives elements other places.
static bool computes(const Instr* instr) {
  return hlo::has_trait(instr->opcode(), hlo::Trait::elementwise) || instr->is(Opcode::dot) ||
         instr->is(Opcode::reduce) || instr->is(Opcode::gather) || instr->is(Opcode::convolution) ||
         instr->is(Opcode::reduce_window) || hlo::top_k_part(*instr).has_value();
}

std::unordered_map<int, int64_t> numbers_of(const std::vector<const Instr*>& all,
                                            const hlo::DimClasses& classes,
                                            const std::vector<hlo::Symbol>& symbols,
                                            const hlo::DimClasses& local) {
  std::unordered_map<int, int64_t> result;
  const auto add = [&](const Instr* instr, int64_t d, size_t leaf, int64_t extent) {
    const int s = classes.symbol_of(instr, d, leaf);
    if (s < 0) return;
    int64_t& times = result.emplace(local.of(instr, d, leaf), 1).first->second;
    times = std::max(times, extent / symbols[static_cast<size_t>(s)].bound);
  };
  for (const Instr* instr : all) {
    for (const auto& [operand, d] : reduced_by(instr)) add(operand, d, 0, operand->shape().dim(d));
    if (!computes(instr)) continue;
    const std::vector<tensor::Shape> leaves = hlo::leaves_of(instr->shape());
    for (size_t leaf = 0; leaf < leaves.size(); ++leaf)
      for (int64_t d = 0; leaves[leaf].is_array() && d < leaves[leaf].rank(); ++d)
        add(instr, d, leaf, leaves[leaf].dim(d));
  }
  return result;
}

bool reduces(const std::vector<const Instr*>& all, const hlo::DimClasses& local, int of_class) {
  return std::any_of(all.begin(), all.end(), [&](const Instr* instr) {
    const auto reduced = reduced_by(instr);
    return std::any_of(reduced.begin(), reduced.end(), [&](const auto& one) {
      return local.of(one.first, one.second) == of_class;
    });
  });
}

std::set<int> shared_with_fixed(const std::vector<const Instr*>& all,
                                const hlo::DimClasses& classes, const hlo::DimClasses& local) {
  const auto is_bounded = [&](const Instr* x, int64_t d) { return classes.symbol_of(x, d) >= 0; };
  const auto is_fixed = [&](const Instr* x) {
    for (int64_t d = 0; x->shape().is_array() && d < x->shape().rank(); ++d)
      if (is_bounded(x, d)) return false;
    return true;
  };
  std::set<int64_t> fixed;
  for (const Instr* instr : all)
    for (const auto& [operand, dimension] : reduced_by(instr)) {
      // The weights of a product are, too, but it is made for each of its rows.
      const bool has_rows =
          instr->is(Opcode::dot) && !(is_fixed(instr->operand(0)) && is_fixed(instr->operand(1)));
      if (is_fixed(operand) && !has_rows) fixed.insert(operand->shape().dim(dimension));
    }
  std::set<int> result;
  for (const Instr* instr : all)
    for (int64_t d = 0; instr->shape().is_array() && d < instr->shape().rank(); ++d)
      if (fixed.contains(instr->shape().dim(d)) && is_bounded(instr, d))
        result.insert(local.of(instr, d));
  return result;
}

int64_t numbers_beyond(int64_t beyond, int64_t numbers) {
  return (beyond * numbers + kPartsBeyond - 1) / kPartsBeyond;
}

void Reach::join(const Reach& other) {
  granule = lower::common_reach(granule, other.granule);
  beyond = std::max(beyond, other.beyond);
}

void Reaches::count_on(const Instr* instr, size_t leaf, int64_t d, Reach reach) {
  if (reach.is_extent()) return;
  found_[instr].emplace(std::pair(leaf, d), Reach()).first->second.join(reach);
}

void Reaches::forget(const Instr* instr, size_t leaf) {
  const auto found = found_.find(instr);
  if (found == found_.end()) return;
  std::erase_if(found->second, [&](const auto& one) { return one.first.first == leaf; });
  if (found->second.empty()) found_.erase(found);
}

Reach Reaches::of(const Instr* instr, size_t leaf, int64_t d) const {
  const auto found = found_.find(instr);
  if (found == found_.end()) return {};
  const auto known = found->second.find(std::pair(leaf, d));
  return known == found->second.end() ? Reach() : known->second;
}

bool Reaches::is_counted_on(const Instr* instr, size_t leaf) const {
  const auto found = found_.find(instr);
  return found != found_.end() &&
         std::any_of(found->second.begin(), found->second.end(),
                     [&](const auto& one) { return one.first.first == leaf; });
}

Reach Reaches::of_results(const Instr* instr, int symbol) const {
  const auto found = found_.find(instr);
  if (found == found_.end()) return {};
  Reach most, along;
  bool is_there = false;
  const std::vector<tensor::Shape> leaves = hlo::leaves_of(instr->shape());
  for (size_t leaf = 0; leaf < leaves.size(); ++leaf)
    for (int64_t d = 0; leaves[leaf].is_array() && d < leaves[leaf].rank(); ++d)
      is_there = is_there || (symbol >= 0 && classes_.symbol_of(instr, d, leaf) == symbol);
  for (const auto& [place, reach] : found->second) {
    most.join(reach);
    if (classes_.symbol_of(instr, place.second, place.first) == symbol) along.join(reach);
  }
  return is_there ? along : most;
}

bool WindowReads::of_input(size_t number, int symbol) const {
  return std::any_of(inputs.begin(), inputs.end(), [&](const Input& input) {
    return input.number == number && input.symbol == symbol;
  });
}

namespace {

class Finder {
 public:
  Finder(const Instr* fusion, const hlo::DimClasses& classes,
         const std::vector<hlo::Symbol>& symbols)
      : fusion_(fusion), classes_(classes), symbols_(symbols) {}

  WindowReads run() {
    look_at(*fusion_->called().at(0));
    return std::move(found_);
  }

 private:
  void look_at(const hlo::Computation& computation) {
    for (const Instr* instr : computation.instrs()) {
      if (instr->is(Opcode::fusion)) {
        callers_.emplace(instr->called().at(0), instr);
        look_at(*instr->called().at(0));
      }
      if (instr->is(Opcode::convolution) || instr->is(Opcode::reduce_window)) windows_of(instr);
    }
  }

  void windows_of(const Instr* instr) {
    const Instr* x = instr->operand(0);
    for (const hlo::DimLink& link : hlo::index_map(*instr, 0).links) {
      const int symbol = classes_.symbol_of(x, link.from);
      if (link.kind != hlo::DimKind::window || symbol < 0) continue;
      const int64_t numbers =
          x->shape().dim(link.from) / symbols_[static_cast<size_t>(symbol)].bound;
      const int64_t seen = hlo::seen_behind(link.window, numbers);
      const bool is_same = classes_.symbol_of(instr, link.to) == symbol;
      if (seen == 0 && link.window.stride == 1 && is_same) continue;
      const int64_t beyond = (seen * kPartsBeyond + numbers - 1) / numbers;
      const Instr* from = source(x);
      // What windows make of zeros is none, so what is counted on of their results behind the
      // extent says nothing of the input.
      if (from->is(Opcode::parameter)) {
        found_.inputs.push_back({static_cast<size_t>(from->parameter_number()), symbol, beyond});
      } else if (seen > 0) {
        found_.read.push_back(x);
        int64_t& own = found_.own[symbol];
        own = std::max(own, beyond);
      }
    }
  }

  // What only gets other places on the way.
  const Instr* source(const Instr* x) const {
    for (;;) {
      if (x->is(Opcode::reshape) || x->is(Opcode::transpose)) {
        x = x->operand(0);
      } else if (x->is(Opcode::parameter) && x->parent() != fusion_->called().at(0)) {
        x = callers_.at(x->parent())->operand(static_cast<size_t>(x->parameter_number()));
      } else {
        return x;
      }
    }
  }

  const Instr* fusion_;
  const hlo::DimClasses& classes_;
  const std::vector<hlo::Symbol>& symbols_;
  std::unordered_map<const hlo::Computation*, const Instr*> callers_;
  WindowReads found_;
};

}  // namespace

std::vector<int> window_classes(const Instr* instr, const hlo::DimClasses& classes,
                                const hlo::DimClasses& local) {
  std::vector<int> result;
  if (!instr->is(Opcode::convolution) && !instr->is(Opcode::reduce_window)) return result;
  for (const hlo::DimLink& link : hlo::index_map(*instr, 0).links) {
    const int symbol = classes.symbol_of(instr->operand(0), link.from);
    if (link.kind == hlo::DimKind::window && symbol >= 0 &&
        symbol != classes.symbol_of(instr, link.to))
      result.push_back(local.of(instr, link.to));
  }
  return result;
}

WindowReads window_reads(const Instr* fusion, const hlo::DimClasses& classes,
                         const std::vector<hlo::Symbol>& symbols) {
  return Finder(fusion, classes, symbols).run();
}

}  // namespace heddle::compiler
