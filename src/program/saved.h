// The contents of a program file: a program; or, for a model with bounded dimensions, one for each
// bucket of extents. They share their constants in the file and in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "program/program.h"
#include "tensor/extent.h"

namespace heddle::program {

struct PortDimension {
  int64_t port = 0, dimension = 0;
  int64_t times = 1;  // elements per element of the symbol's extent
};

// A dimension whose extent, from `least` to `bound`, is given before a run, or is derived from
// others. The dimensions of ports that depend on it have that many elements, or a fixed multiple.
struct Symbol {
  std::string name;
  int64_t bound = 0, least = 1;
  tensor::Extent of;  // if derived: the formula, of earlier symbols; constant: not derived
  std::vector<PortDimension> inputs, outputs;
};

// The program for extents `least` to `bounds`, both by symbol (a cache's `least` may be 0). Its
// ports have the extents of the bounds; inputs that others are appended to may have room for these,
// filled with zeros. After the model's inputs there is an s32[] for each symbol of `told`, the
// actual extent. All variants have the same state arrays.
struct Variant {
  std::vector<int64_t> least, bounds;
  std::vector<int64_t> told;  // numbers of symbols, ascending; for equal extents only the first
  Program program;
};

struct Saved {
  std::vector<Symbol> symbols;  // empty: one variant
  std::vector<Variant> variants;
};

// The variant for these extents (by symbol); -1: none.
int64_t variant_for(const Saved& saved, const std::vector<int64_t>& extents);
// "length<=512, batch<=4"; empty if there are no symbols.
std::string dimensions_text(const std::vector<Symbol>& symbols);
// Verifies every program (verify.h), and that their ports belong to one model.
Status verify(const Saved& saved);

}  // namespace heddle::program
