// Extents derived from others: DimClasses for concatenate, pad and slice.
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

}  // namespace

// Whether the dimensions may stay symbolic although they are not of one class.
bool DimClasses::relate_cut(const Instr* instr, size_t k, const DimLink& link) {
  if (masked_) return true;
  const bool padded = instr->is(Opcode::pad) && added_by(instr, link.from) >= 0;
  const bool cut = instr->is(Opcode::slice) && link.stride == 1;
  if (!instr->is(Opcode::concatenate) && !padded && !cut) return false;
  if (k == 0 || cuts_.empty() || cuts_.back().instr != instr || cuts_.back().dimension != link.to)
    cuts_.push_back({instr, link.to});
  return true;
}

std::vector<Extent> DimClasses::parts_of(const Cut& cut, const SymbolTable& table) const {
  std::vector<Extent> result;
  const size_t parts = cut.instr->is(Opcode::concatenate) ? cut.instr->operands().size() : 1;
  for (size_t k = 0; k < parts; ++k) {
    const Instr* part = cut.instr->operand(k);
    const int64_t elems = part->shape().dim(cut.dimension);
    const int s = symbol_of(part, cut.dimension);
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
Extent DimClasses::result_of(const Cut& cut, const SymbolTable& table,
                             const SliceExtents& slices) const {
  Extent sum;
  for (const Extent& part : parts_of(cut, table)) sum = sum.plus(part);
  if (sum.is_constant() || cut.instr->is(Opcode::concatenate)) return sum;
  if (cut.instr->is(Opcode::pad)) return sum.plus({added_by(cut.instr, cut.dimension), {}});
  const auto known = slices.find({cut.instr, cut.dimension});
  if (known != slices.end()) return known->second;
  const int64_t whole = cut.instr->operand(0)->shape().dim(cut.dimension);
  const auto& attrs = cut.instr->attrs_as<SliceAttrs>();
  const auto d = static_cast<size_t>(cut.dimension);
  if (attrs.limits[d] == whole) return sum.plus({-attrs.starts[d], {}});
  return {attrs.limits[d] - attrs.starts[d], {}};
}

Status DimClasses::derive(SymbolTable* table, const SliceExtents& slices) {
  HEDDLE_RETURN_IF_ERROR(assign_places(table->symbols));
  std::vector<Cut> open = std::move(cuts_);
  cuts_.clear();
  // A part may get its symbol from a later cut, through an array that both touch.
  for (bool changed = true; changed;) {
    changed = false;
    for (Cut& cut : open) {
      const Extent extent = cut.instr ? result_of(cut, *table, slices) : Extent();
      if (extent.is_constant()) continue;
      for (const auto& [symbol, factor] : extent.terms)
        if (const Symbol& part = table->symbols[static_cast<size_t>(symbol)]; part.call)
          return user_error("dimension '{}' reaches {} ({}), which needs fixed extents", part.name,
                            cut.instr->name(), opcode_text(cut.instr->opcode()));
      changed = true;
      cut.symbol = table->add(extent.divided_by(extent.common_factor()));
      symbol_of_root_.emplace(of(cut.instr, cut.dimension), static_cast<int>(cut.symbol));
      cuts_.push_back(cut);
      cut.instr = nullptr;
    }
  }
  for (Cut& cut : cuts_) {
    const Extent extent = result_of(cut, *table, slices);
    const auto other = static_cast<size_t>(symbol_of(cut.instr, cut.dimension));
    if (extent.divided_by(extent.common_factor()) != table->of[other])
      return user_error("dimension '{}' and '{}' meet in {}; give one of them a number",
                        to_string(extent, table->names()), table->symbols[other].name,
                        cut.instr->name());
    cut.parts = parts_of(cut, *table);
    cut.symbol = other;
  }
  for (const Cut& cut : open)  // with a symbolic part, but a result of fixed extent
    if (cut.instr && symbol_of(cut.instr->operand(0), cut.dimension) >= 0 &&
        symbol_of(cut.instr, cut.dimension) >= 0)
      return user_error(
          "dimension '{}' meets {}, a part of fixed extent",
          table->symbols[static_cast<size_t>(symbol_of(cut.instr, cut.dimension))].name,
          cut.instr->name());
  return check_extents(table->symbols);
}

}  // namespace heddle::hlo
