#include "hlo/symbol.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "hlo/module.h"

namespace heddle::hlo {

bool is_first_rows(const Instr& instr) {
  if (!instr.is(Opcode::custom_call) ||
      instr.attrs_as<CustomCallAttrs>().custom_call_target != kFirstRows)
    return false;
  const std::vector<Instr*>& operands = instr.operands();
  const auto is_number = [](const Instr* x) {
    return x->shape().is_scalar() && x->shape().type() == tensor::Type::s32;
  };
  return operands.size() == 3 && instr.shape().is_array() && instr.shape().rank() > 0 &&
         operands[0]->shape().is_array() &&
         operands[0]->shape().extents() == instr.shape().extents() && is_number(operands[1]) &&
         is_number(operands[2]);
}

std::optional<std::pair<const Instr*, int64_t>> counted_like(const Instr& first_rows) {
  const Instr* size = first_rows.operand(1);
  if (!size->is(Opcode::get_dimension_size)) return std::nullopt;
  const int64_t d = size->attrs_as<DimensionAttrs>().dimension;
  if (size->operand(0)->shape().dim(d) != first_rows.shape().dim(0)) return std::nullopt;
  return std::pair<const Instr*, int64_t>(size->operand(0), d);
}

bool is_counted_part(const Instr& instr) {
  if (!instr.is(Opcode::slice) || instr.users().empty()) return false;
  const auto& attrs = instr.attrs_as<SliceAttrs>();
  for (int64_t d = 0; d < instr.shape().rank(); ++d) {
    const auto i = static_cast<size_t>(d);
    const bool whole = instr.shape().dim(d) == instr.operand(0)->shape().dim(d);
    if (attrs.starts[i] != 0 || attrs.strides[i] != 1 || whole == (d == 0)) return false;
  }
  return std::all_of(instr.users().begin(), instr.users().end(),
                     [](const Instr* user) { return is_first_rows(*user); });
}

const Instr* behind_shapes(const Instr* value) {
  while (value->is(Opcode::broadcast) || value->is(Opcode::reshape)) value = value->operand(0);
  return value;
}

bool is_padding_mask(const Instr* value) {
  value = behind_shapes(value);
  if (!value->is(Opcode::compare) || value->attrs_as<CompareAttrs>().direction != Direction::lt)
    return false;
  const Instr *place = behind_shapes(value->operand(0)), *limit = behind_shapes(value->operand(1));
  while (limit->is(Opcode::multiply)) limit = behind_shapes(limit->operand(0));
  return place->is(Opcode::iota) && limit->is(Opcode::parameter) && limit->shape().is_scalar();
}

std::vector<Symbol> symbols_of(const Module& module) {
  std::vector<Symbol> result = module.symbols;
  for (Instr* instr : module.entry()->instrs()) {
    if (!is_first_rows(*instr) || counted_like(*instr)) continue;
    const auto given = std::find_if(result.begin(), result.end(), [&](const Symbol& symbol) {
      if (symbol.call)
        return symbol.bound == instr->shape().dim(0) &&
               symbol.call->operand(1) == instr->operand(1);
      return symbol.extent >= 0 && extent_of(module, symbol) == instr->operand(1);
    });
    if (given != result.end()) {
      given->rows.push_back(instr);
      continue;
    }
    Symbol& symbol = result.emplace_back();
    symbol.name = instr->name();
    symbol.bound = instr->shape().dim(0);
    symbol.call = instr;
  }
  return result;
}

Instr* extent_of(const Module& module, const Symbol& symbol) {
  if (symbol.call) return symbol.call->operand(1);
  return module.entry()->parameters().at(static_cast<size_t>(symbol.extent));
}

Instr* least_one_of(const Module& module, const Symbol& symbol) {
  return symbol.call ? symbol.call->operand(2) : extent_of(module, symbol);
}

std::string symbols_text(const std::vector<Symbol>& symbols) {
  std::string text;
  for (const Symbol& symbol : symbols) {
    std::string name = symbol.name;
    std::erase(name, ' ');
    text += fmt::format("{}{} {} {} {}", text.empty() ? "" : "; ", name, symbol.bound,
                        symbol.extent, symbol.least);
    for (const auto& [parameter, dimension] : symbol.places)
      text += fmt::format(" {}.{}", parameter, dimension);
    if (!symbol.of.is_constant()) text += " =" + to_text(symbol.of);
  }
  return '{' + text + '}';
}

// Of those that stand before it.
static bool follows_from_own(const tensor::Extent& extent, const std::vector<Symbol>& before) {
  const std::vector<int64_t> symbols = extent.symbols();
  return std::all_of(symbols.begin(), symbols.end(), [&](int64_t s) {
    return s < std::ssize(before) && before[static_cast<size_t>(s)].of.is_constant();
  });
}

Result<std::vector<Symbol>> read_symbols(std::string_view text) {
  std::vector<Symbol> result;
  const bool braced = text.size() >= 2 && text.front() == '{' && text.back() == '}';
  std::stringstream all(std::string(braced ? text.substr(1, text.size() - 2) : ""));
  bool good = braced;
  for (std::string one; std::getline(all, one, ';');) {
    std::stringstream words(one);
    Symbol symbol;
    good &=
        static_cast<bool>(words >> symbol.name >> symbol.bound >> symbol.extent >> symbol.least);
    for (std::string word; words >> word;) {
      if (word.front() == '=') {
        const std::optional<tensor::Extent> of = tensor::read_extent(word.substr(1));
        good &= of && follows_from_own(*of, result);
        if (good) symbol.of = *of;
        continue;
      }
      std::stringstream place(word);
      char dot = 0;
      symbol.places.emplace_back();
      good &= place >> symbol.places.back().first >> dot >> symbol.places.back().second &&
              dot == '.' && place.peek() == EOF;
    }
    good &= symbol.bound >= 1 && symbol.least >= 0 && symbol.least <= symbol.bound;
    result.push_back(std::move(symbol));
  }
  if (!good)
    return user_error(
        "heddle_symbols: got '{}', wanted {{name bound extent least parameter.dimension … "
        "=expression; …}}",
        text);
  return result;
}

}  // namespace heddle::hlo
