// Private to trim: loops over tiles of rows that are written out, and which of them lie side by
// side. A line of windows is a first tile, tiles in the middle and a last one: at both edges the
// windows of some columns lack what lies behind the edge, so that loops over the others add up
// their products (stitch, convolutions).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "lower/trim_facts.h"
#include "lower/trim_tiles.h"

namespace heddle::lower::trimming {

// The tile that the loop makes: its rows are numbers of the loop's group. Nothing: rows are not
// written out, or it is not known where.
std::optional<Tile> tile_of(const Kernel& kernel, const std::vector<Variable>& variables,
                            const kernel::Stmt& loop);

using IsTiles = std::function<bool(const kernel::Stmt&)>;
// Of each loop over tiles, the last one of the line that it is part of. `is_tiles` says which loops
// may be parts.
std::map<uint32_t, uint32_t> find_lines(const std::vector<kernel::Stmt>& body,
                                        const std::vector<Variable>& variables,
                                        const IsTiles& is_tiles);

// The first tile, those behind it and how many rows they may be: the windows of those behind it are
// whole. `loops`: of the line, in order. Nothing: there are no such tiles.
std::optional<Tiles> tiles_of_line(const Kernel& kernel, const TrimRequest& request,
                                   const std::vector<Variable>& variables,
                                   const std::vector<kernel::Stmt>& loops);

// Whether the body loads from an input of which windows are seen.
bool loads_windows(const Kernel& kernel, const TrimRequest& request,
                   const std::vector<kernel::Stmt>& body);

}  // namespace heddle::lower::trimming
