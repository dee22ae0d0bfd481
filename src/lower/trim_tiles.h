// Private to trim: loops over tiles whose rows are written out, made for the rows that there are
// (trim.h).
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "kernel/kernel.h"

namespace heddle::lower::trimming {

struct Tiles {
  const kernel::Stmt* loop = nullptr;  // serial, of a constant extent
  std::set<uint32_t> written_out;      // variables: unrolled loops over all rows of the tile
  int64_t rows = 1;                    // of a tile
  kernel::ExprId left;                 // rows from the first tile on; may be more, or below zero
  int64_t least = 1, granule = 1;      // `left` is no smaller; and a multiple of it, or all
  std::function<bool(kernel::BufferId)> has_rows;  // whether a buffer has the dimension of the rows
};

// Of all loops and names in it.
void find_variables(const std::vector<kernel::Stmt>& body, std::set<uint32_t>* found);

// What replaces the loop: as many tiles as the rows need, each of one height or one less, with a
// body for each height. What tiles that are left out would have fetched ahead is fetched by those
// that stay. Empty: the body uses the loop's variable as something else than rows, or the bodies
// would be too much code.
std::vector<kernel::Stmt> balance(kernel::Kernel* kernel, const Tiles& tiles);

}  // namespace heddle::lower::trimming
