// Symbol: a bounded dimension of a module whose shapes are those of the bound. In a module's text
// heddle_symbols={name bound extent least parameter.dimension ...; ...}.
//
// An extent that the module computes itself (a count that data decides) is no item of that list:
// the custom call "heddle.first_rows" says it, in the entry. (x, n, m) -> x, of whose dimension 0
// only the first n rows count. n and m are s32[]; m is n, but at least 1, which is what loops that
// stop at the extent run for. Where n is the extent of a symbol of the list, or that of another
// such call with as many rows, those rows are the symbol's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace heddle::hlo {

class Instr;
class Module;

inline constexpr std::string_view kFirstRows = "heddle.first_rows";

struct Symbol {
  std::string name;
  int64_t bound = 0;
  int64_t extent = 0;  // number of the entry's parameter s32[] that is the actual extent
  std::vector<std::pair<int64_t, int64_t>> places;  // parameter, dimension
  int64_t least = 1;         // actual extents that it is run with are no smaller
  Instr* call = nullptr;     // heddle.first_rows; then no parameter is the extent, and no places
  std::vector<Instr*> rows;  // calls of heddle.first_rows by the parameter that is the extent
  bool operator==(const Symbol&) const = default;
};

// Whether a value says which elements are in front of an extent: a place compared with a multiple
// of an entry's parameter, as mask_padding writes it, repeated or reshaped.
bool is_padding_mask(const Instr* value);
// What it repeats or reshapes.
const Instr* behind_shapes(const Instr* value);

std::string symbols_text(const std::vector<Symbol>& symbols);  // with braces
bool is_first_rows(const Instr& instr);
// Module::symbols, and behind them those of its entry's calls of heddle.first_rows, by their names.
std::vector<Symbol> symbols_of(const Module& module);
// s32[]: where masks begin; and the same, but at least 1.
Instr* extent_of(const Module& module, const Symbol& symbol);
Instr* least_one_of(const Module& module, const Symbol& symbol);

// Error: the text is not of the form above.
Result<std::vector<Symbol>> read_symbols(std::string_view text);

}  // namespace heddle::hlo
