// Extents derived from others: DimClasses for concatenate, pad, slice, and windows.
#include <algorithm>

#include "hlo/dim_classes.h"

namespace heddle::hlo {

using tensor::Extent;

SymbolTable::SymbolTable(std::vector<Symbol> own) : symbols(std::move(own)) {
  for (size_t s = 0; s < symbols.size(); ++s)
    of.push_back(Extent::of_symbol(static_cast<int64_t>(s)));
}

std::vector<std::string> SymbolTable::names() const {
  std::vector<std::string> result;
  for (const Symbol& symbol : symbols) result.push_back(symbol.name);
  return result;
}

size_t SymbolTable::add(const Extent& extent) {
  const auto known = std::find(of.begin(), of.end(), extent);
  if (known != of.end()) return static_cast<size_t>(known - of.begin());
  std::vector<int64_t> bounds, least;
  for (const Symbol& symbol : symbols) {
    bounds.push_back(symbol.bound);
    least.push_back(symbol.least);
  }
  Symbol symbol;
  symbol.name = to_string(extent, names());
  symbol.bound = extent.at(bounds);
  symbol.least = extent.at(least);
  symbol.extent = -1;
  symbol.of = extent;
  symbols.push_back(std::move(symbol));
  of.push_back(extent);
  return of.size() - 1;
}

std::vector<std::pair<const Instr*, int64_t>> cut_dimensions(const Instr* instr) {
  std::vector<std::pair<const Instr*, int64_t>> result;
  if (!instr->shape().is_array()) return result;
  for (size_t k = 0; k < instr->operands().size(); ++k) {
    const IndexMap map = index_map(*instr, k);
    for (const DimLink& link : map.links)
      if (link.kind == DimKind::placed ||
          (link.kind == DimKind::strided && instr->shape().dim(link.to) != 1))
        result.emplace_back(instr->operand(k), link.from);
  }
  return result;
}

namespace {

// Number of elements that the padding adds; -1: it removes elements or adds interior padding.
int64_t added_by(const Instr* pad, int64_t dimension) {
  const auto& attrs = pad->attrs_as<PadAttrs>();
  const auto d = static_cast<size_t>(dimension);
  if (attrs.low[d] < 0 || attrs.high[d] < 0 || attrs.interior[d] != 0) return -1;
  return attrs.low[d] + attrs.high[d];
}

Status needs_fixed_extents(const Symbol& symbol, const Instr* instr) {
  return user_error("dimension '{}' reaches {} ({}), which needs fixed extents", symbol.name,
                    instr->name(), opcode_text(instr->opcode()));
}

}  // namespace

// Whether the dimensions may stay symbolic although they are not of one class.
bool DimClasses::relate_cut(const Instr* instr, size_t k, const DimLink& link) {
  if (masked_) return true;
  const bool padded = instr->is(Opcode::pad) && added_by(instr, link.from) >= 0;
  const bool cut = instr->is(Opcode::slice) && link.stride == 1;
  if (!instr->is(Opcode::concatenate) && !padded && !cut) return false;
  if (k == 0 || cuts_.empty() || cuts_.back().instr != instr || cuts_.back().dimension != link.to)
    cuts_.push_back({instr, link.to, link.from});
  return true;
}

// The same for windows. Inside of a fusion it is not asked how its extents follow.
bool DimClasses::relate_window(const Instr* instr, const DimLink& link) {
  if (link.window.lhs_dilate != 1) return false;
  if (around_ == nullptr) cuts_.push_back({instr, link.to, link.from, link.window});
  return true;
}

std::vector<std::pair<const Instr*, int64_t>> DimClasses::and_windows_over(
    std::vector<std::pair<const Instr*, int64_t>> dimensions) const {
  std::set<int> known;
  for (const auto& [instr, dimension] : dimensions) known.insert(of(instr, dimension));
  for (bool changed = true; changed;) {
    changed = false;
    for (const Cut& cut : cuts_) {
      if (!cut.window || !known.contains(of(cut.instr->operand(0), cut.from)) ||
          !known.insert(of(cut.instr, cut.dimension)).second)
        continue;
      dimensions.emplace_back(cut.instr, cut.dimension);
      changed = true;
    }
  }
  return dimensions;
}

std::vector<Extent> DimClasses::parts_of(const Cut& cut, const SymbolTable& table) const {
  std::vector<Extent> result;
  const size_t parts = cut.instr->is(Opcode::concatenate) ? cut.instr->operands().size() : 1;
  for (size_t k = 0; k < parts; ++k) {
    const Instr* part = cut.instr->operand(k);
    const int64_t elems = part->shape().dim(cut.from);
    const int s = symbol_of(part, cut.from);
    if (s < 0 || table.symbols[static_cast<size_t>(s)].bound < 1) {
      result.push_back({elems, {}});
      continue;
    }
    const auto number = static_cast<size_t>(s);  // divisibility is checked at the end
    result.push_back(table.of[number].times(elems / table.symbols[number].bound));
  }
  return result;
}

// Constant if all parts are.
Result<Extent> DimClasses::result_of(const Cut& cut, const SymbolTable& table,
                                     const SliceExtents& slices) const {
  Extent sum;
  for (const Extent& part : parts_of(cut, table)) sum = sum.plus(part);
  if (cut.window && !sum.is_constant()) {
    const std::optional<Extent> windows = windows_over(sum, *cut.window);
    if (windows) return *windows;
    return user_error("{} ({}) takes steps over {}, of which no extent follows", cut.instr->name(),
                      opcode_text(cut.instr->opcode()), to_string(sum, table.names()));
  }
  if (sum.is_constant() || cut.instr->is(Opcode::concatenate)) return sum;
  if (cut.instr->is(Opcode::pad)) return sum.plus({added_by(cut.instr, cut.dimension), {}});
  const auto known = slices.find({cut.instr, cut.dimension});
  if (known != slices.end())
    return known->second.terms == Extent::of_symbol(kOperandExtent).terms
               ? sum.plus({known->second.constant})
               : known->second;
  const int64_t whole = cut.instr->operand(0)->shape().dim(cut.dimension);
  const auto& attrs = cut.instr->attrs_as<SliceAttrs>();
  const auto d = static_cast<size_t>(cut.dimension);
  if (attrs.limits[d] == whole) return sum.plus({-attrs.starts[d], {}});
  return Extent{attrs.limits[d] - attrs.starts[d]};
}

Status DimClasses::derive(SymbolTable* table, const SliceExtents& slices) {
  HEDDLE_RETURN_IF_ERROR(assign_places(table->symbols));
  std::vector<Cut> open = std::move(cuts_);
  cuts_.clear();
  // A part may get its symbol from a later cut, through an array that both touch.
  for (bool changed = true; changed;) {
    changed = false;
    for (Cut& cut : open) {
      if (cut.instr == nullptr) continue;
      HEDDLE_ASSIGN_OR_RETURN(const Extent extent, result_of(cut, *table, slices));
      if (extent.is_constant()) continue;
      const Extent one = extent.divided_by(extent.common_factor());
      const bool is_known = std::find(table->of.begin(), table->of.end(), one) != table->of.end();
      for (const int64_t symbol : one.symbols())
        if (const Symbol& part = table->symbols[static_cast<size_t>(symbol)];
            part.call && (!is_known || !cut.window))
          return needs_fixed_extents(part, cut.instr);
      changed = true;
      cut.symbol = table->add(one);
      symbol_of_root_.emplace(of(cut.instr, cut.dimension), static_cast<int>(cut.symbol));
      cuts_.push_back(cut);
      cut.instr = nullptr;
    }
  }
  for (Cut& cut : cuts_) {
    HEDDLE_ASSIGN_OR_RETURN(const Extent extent, result_of(cut, *table, slices));
    const auto other = static_cast<size_t>(symbol_of(cut.instr, cut.dimension));
    if (extent.divided_by(extent.common_factor()) != table->of[other])
      return user_error("dimension '{}' and '{}' meet in {}; give one of them a number",
                        to_string(extent, table->names()), table->symbols[other].name,
                        cut.instr->name());
    cut.parts = parts_of(cut, *table);
    cut.symbol = other;
  }
  for (Cut& cut : open) {  // with a symbolic part, but a result of fixed extent
    const int s = cut.instr ? symbol_of(cut.instr, cut.dimension) : -1;
    if (s < 0 || symbol_of(cut.instr->operand(0), cut.from) < 0) continue;
    const auto symbol = static_cast<size_t>(s);
    cut.parts = parts_of(cut, *table);
    const int64_t result = cut.instr->shape().dim(cut.dimension),
                  more = result - cut.instr->operand(0)->shape().dim(cut.from);
    if (cut.parts[0].plus({more}) != table->of[symbol].times(result / table->symbols[symbol].bound))
      return user_error("dimension '{}' meets {}, a part of fixed extent",
                        table->symbols[symbol].name, cut.instr->name());
    cut.symbol = symbol;  // what it meets says that it is all but some
    cuts_.push_back(cut);
  }
  return check_extents(table->symbols);
}

// The symbols that results of windows have, as far as there are symbols of these extents.
Status DimClasses::follow_windows(const std::vector<Symbol>& symbols) {
  SymbolTable table(symbols);
  for (size_t s = 0; s < symbols.size(); ++s)
    if (!symbols[s].of.is_constant()) table.of[s] = symbols[s].of;
  const auto wanted = [&](const Cut& cut) -> int {
    const auto extent = result_of(cut, table, {});
    if (!extent || extent->is_constant()) return -1;
    const auto found =
        std::find(table.of.begin(), table.of.end(), extent->divided_by(extent->common_factor()));
    return found == table.of.end() ? -1 : static_cast<int>(found - table.of.begin());
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const Cut& cut : cuts_) {
      if (!cut.window || symbol_of(cut.instr, cut.dimension) >= 0) continue;
      const int from = symbol_of(cut.instr->operand(0), cut.from), s = from < 0 ? -1 : wanted(cut);
      if (s >= 0)
        changed = symbol_of_root_.emplace(of(cut.instr, cut.dimension), s).second || changed;
      else if (from >= 0 && symbols[static_cast<size_t>(from)].call)
        return needs_fixed_extents(symbols[static_cast<size_t>(from)], cut.instr);
    }
  }
  for (const Cut& cut : cuts_)
    if (const int s = symbol_of(cut.instr, cut.dimension);
        cut.window && s >= 0 && symbol_of(cut.instr->operand(0), cut.from) >= 0 && s != wanted(cut))
      return user_error("dimension '{}' meets {}, whose windows give another extent",
                        symbols[static_cast<size_t>(s)].name, cut.instr->name());
  return {};
}

}  // namespace heddle::hlo
