// Private to trim: loops over tiles whose rows are written out, made for the rows that there are
// (trim.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "kernel/kernel.h"

namespace heddle::lower::trimming {

// A tile, or several that a serial loop of a constant extent makes.
struct Tile {
  const kernel::Stmt* loop = nullptr;
  int64_t rows = 1;
  // Unrolled loops over the rows of the tile, all of them, by variable: the first row.
  std::map<uint32_t, int64_t> written_out;
};

struct Tiles {
  Tile first;           // of other code, in front of the others; its loop may be null
  Tile each;            // its loop is null where the first one is all there is
  int64_t edge = 0;     // rows that only the first one can have
  int64_t most = 1;     // rows that they may be
  kernel::ExprId left;  // rows from the first tile on; may be more, or below zero
  // The same, with rows behind them for which no products are added up (trim_products.h); may be
  // invalid.
  kernel::ExprId left_with_beyond;
  bool stay = false;               // the loops stay, too, beside what replaces them
  int64_t taller = 0;              // a tile that is alone may have so many rows too many
  int64_t least = 1, granule = 1;  // `left` is no smaller; and a multiple of it, or all
  std::function<bool(kernel::BufferId)> has_rows;  // whether a buffer has the dimension of the rows
};

// Of all loops and names in it.
void find_variables(const std::vector<kernel::Stmt>& body, std::set<uint32_t>* found);

// What replaces the loops: as many tiles as the rows need, each of one height or one less, with a
// body for each height. What tiles that are left out would have fetched ahead is fetched by those
// that stay. Empty: the body uses the loop's variable as something else than rows, or the bodies
// would be too much code.
std::vector<kernel::Stmt> balance(kernel::Kernel* kernel, const Tiles& tiles);

}  // namespace heddle::lower::trimming
