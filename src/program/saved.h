// What a program file holds: a program; or, of a model with bounded dimensions, one for each bucket
// of extents. They share their constants in the file and in memory.
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
  int64_t times = 1;  // elements to one of the symbol's extent
};

// A dimension whose extent, `least` to `bound`, is told before a run, or follows from others. Its
// places in the model's ports have that many elements, or a fixed multiple of it.
struct Symbol {
  std::string name;
  int64_t bound = 0, least = 1;
  tensor::Extent of;  // of symbols before it, where it follows from them; constant: it does not
  std::vector<PortDimension> inputs, outputs;
};

// The program for extents `least` to `bounds`, both by symbol (a cache may begin with none). Its
// ports have the extents of the bounds; inputs to which others are joined may have room for these,
// and zeros there. Behind the model's inputs it has an s32[] for each symbol of `told`, the actual
// extent. All variants have the same state arrays.
struct Variant {
  std::vector<int64_t> least, bounds;
  std::vector<int64_t> told;  // numbers of symbols, ascending; of equal extents the first one
  Program program;
};

struct Saved {
  std::vector<Symbol> symbols;  // none: one variant
  std::vector<Variant> variants;
};

// The variant for these extents (by symbol); -1: none.
int64_t variant_for(const Saved& saved, const std::vector<int64_t>& extents);
// "length<=512, batch<=4": empty where there are no symbols.
std::string dimensions_text(const std::vector<Symbol>& symbols);
// Every program by itself (verify.h), and that their ports are those of one model.
Status verify(const Saved& saved);

}  // namespace heddle::program
