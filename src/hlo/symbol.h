// Symbol: a bounded dimension of a module, whose shapes have the bound as extent. In a module's
// text heddle_symbols={name bound extent least parameter.dimension ...; ...}. An extent that
// follows from others has `=` and the expression (tensor/extent.h) behind its places.
//
// An extent that the module computes itself (a count that depends on data) is not in that list. The
// entry marks it by the custom call "heddle.first_rows": (x, n, m) -> x, of whose dimension 0 only
// the first n rows are valid. n and m are s32[]; m is max(n, 1), the trip bound of loops that stop
// at the extent. If n is the extent of a symbol in the list, or that of another such call with as
// many rows, the valid rows are that symbol's. If n is what get-dimension-size says of a dimension
// with as many, that dimension's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tensor/extent.h"

namespace heddle::hlo {

class Instr;
class Module;

inline constexpr std::string_view kFirstRows = "heddle.first_rows";

struct Symbol {
  std::string name;
  int64_t bound = 0;
  int64_t extent = 0;  // number of the entry's s32[] parameter that holds the actual extent
  std::vector<std::pair<int64_t, int64_t>> places;  // parameter, dimension
  int64_t least = 1;                                // lower bound of the actual extents in runs
  tensor::Extent of;      // what it is of other symbols, by number; constant: it has its own extent
  Instr* call = nullptr;  // heddle.first_rows; then the extent is no parameter
  std::vector<Instr*> rows;  // calls of heddle.first_rows whose n is the parameter of the extent
  bool operator==(const Symbol&) const = default;
};

// Whether a value is a mask of the valid elements: an index compared with a multiple of a parameter
// of the entry, as mask_padding writes it, possibly broadcast or reshaped.
bool is_padding_mask(const Instr* value);
// The value with broadcasts and reshapes stripped.
const Instr* behind_shapes(const Instr* value);

std::string symbols_text(const std::vector<Symbol>& symbols);  // with braces
bool is_first_rows(const Instr& instr);
// The dimension of another value that has as many rows as such a call, if it says so by
// get-dimension-size.
std::optional<std::pair<const Instr*, int64_t>> counted_like(const Instr& first_rows);
// A slice of the first elements of dimension 0 of which only heddle.first_rows reads: of these as
// many are there as that says.
bool is_counted_part(const Instr& instr);
// Module::symbols, followed by the symbols of the entry's calls of heddle.first_rows, named after
// them.
std::vector<Symbol> symbols_of(const Module& module);
// s32[]: the extent, at which masks begin; and the same, but at least 1.
Instr* extent_of(const Module& module, const Symbol& symbol);
Instr* least_one_of(const Module& module, const Symbol& symbol);

// Error: the text is not of the form above.
Result<std::vector<Symbol>> read_symbols(std::string_view text);

}  // namespace heddle::hlo
