#include "tensor/layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"

namespace heddle::tensor {
namespace {

using Extents = std::vector<int64_t>;

// One tile's effect on the extents: after "*" merged dimensions, and after tiling.
struct TileStep {
  std::vector<int> group;  // for every previous dimension: the merged dimension that it is part of
  Extents before;          // extents before merging
  Extents merged;
  Extents sizes;  // tile sizes of the last sizes.size() merged dimensions
  Extents after;
};

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

TileStep make_step(const Tile& tile, Extents before) {
  size_t tile_rank = tile.dims.size();
  HEDDLE_CHECK(tile_rank > 0 && tile.dims.back() != Tile::kCombine);
  // If a tile has more dimensions than the array, the array gets leading extents of one.
  if (before.size() < tile_rank) before.insert(before.begin(), tile_rank - before.size(), 1);
  TileStep step;
  size_t first = before.size() - tile_rank;
  bool merge = false;
  for (size_t i = 0; i < before.size(); ++i) {
    if (merge) {
      step.merged.back() *= before[i];
    } else {
      step.merged.push_back(before[i]);
    }
    step.group.push_back(static_cast<int>(step.merged.size()) - 1);
    merge = i >= first && tile.dims[i - first] == Tile::kCombine;
    if (i >= first && !merge) step.sizes.push_back(tile.dims[i - first]);
  }
  step.before = std::move(before);
  step.after = step.merged;
  size_t untiled = step.merged.size() - step.sizes.size();
  for (size_t i = 0; i < step.sizes.size(); ++i) {
    HEDDLE_CHECK(step.sizes[i] > 0, "tile size {}", step.sizes[i]);
    step.after[untiled + i] = ceil_div(step.merged[untiled + i], step.sizes[i]);
  }
  step.after.insert(step.after.end(), step.sizes.begin(), step.sizes.end());
  return step;
}

Extents apply(const TileStep& step, Extents index) {
  index.insert(index.begin(), step.before.size() - index.size(), 0);
  Extents result(step.merged.size(), 0);
  for (size_t i = 0; i < index.size(); ++i) {
    int64_t& merged = result[step.group[i]];
    bool continued = i > 0 && step.group[i] == step.group[i - 1];
    merged = continued ? merged * step.before[i] + index[i] : index[i];
  }
  size_t untiled = step.merged.size() - step.sizes.size();
  for (size_t i = 0; i < step.sizes.size(); ++i) {
    result.push_back(result[untiled + i] % step.sizes[i]);
    result[untiled + i] /= step.sizes[i];
  }
  return result;
}

// The inverse of apply; false if the position is padding of this tile.
bool undo(const TileStep& step, size_t rank_before, Extents& index) {
  size_t untiled = step.merged.size() - step.sizes.size();
  Extents merged(index.begin(), index.begin() + static_cast<int64_t>(step.merged.size()));
  for (size_t i = 0; i < step.sizes.size(); ++i) {
    merged[untiled + i] = merged[untiled + i] * step.sizes[i] + index[step.merged.size() + i];
    if (merged[untiled + i] >= step.merged[untiled + i]) return false;
  }
  index.assign(step.before.size(), 0);
  for (size_t i = index.size(); i-- > 0;) {
    int64_t& value = merged[step.group[i]];
    bool continued = i > 0 && step.group[i] == step.group[i - 1];
    index[i] = continued ? value % step.before[i] : value;
    value /= step.before[i];
  }
  index.erase(index.begin(), index.begin() + static_cast<int64_t>(index.size() - rank_before));
  return true;
}

const int64_t* padded_or(const Layout& layout, std::span<const int64_t> dims) {
  return layout.padded_dimensions.empty() ? dims.data() : layout.padded_dimensions.data();
}

// The padded extents, most major first.
Extents physical_extents(const Layout& layout, std::span<const int64_t> dims) {
  size_t rank = dims.size();
  HEDDLE_CHECK(layout.minor_to_major.size() == rank, "layout of rank {}, array of rank {}",
               layout.minor_to_major.size(), rank);
  HEDDLE_CHECK(layout.padded_dimensions.empty() || layout.padded_dimensions.size() == rank);
  const int64_t* extents = padded_or(layout, dims);
  Extents result(rank);
  for (size_t i = 0; i < rank; ++i) result[rank - 1 - i] = extents[layout.minor_to_major[i]];
  return result;
}

std::vector<TileStep> make_steps(const Layout& layout, std::span<const int64_t> dims) {
  std::vector<TileStep> steps;
  Extents extents = physical_extents(layout, dims);
  for (const Tile& tile : layout.tiles) {
    steps.push_back(make_step(tile, std::move(extents)));
    extents = steps.back().after;
  }
  return steps;
}

}  // namespace

Layout Layout::row_major(int64_t rank) {
  Layout layout;
  for (int64_t i = rank; i-- > 0;) layout.minor_to_major.push_back(i);
  return layout;
}

bool Layout::is_row_major() const {
  auto rank = static_cast<int64_t>(minor_to_major.size());
  for (int64_t i = 0; i < rank; ++i) {
    if (minor_to_major[i] != rank - 1 - i) return false;
  }
  return tiles.empty() && padded_dimensions.empty();
}

int64_t linear_index(const Layout& layout, std::span<const int64_t> dims,
                     std::span<const int64_t> index) {
  size_t rank = dims.size();
  HEDDLE_CHECK(index.size() == rank && layout.minor_to_major.size() == rank);
  if (layout.tiles.empty()) {
    const int64_t* extents = padded_or(layout, dims);
    int64_t linear = 0;
    for (size_t i = rank; i-- > 0;) {
      int64_t d = layout.minor_to_major[i];
      linear = linear * extents[d] + index[d];
    }
    return linear;
  }
  Extents position(rank);
  for (size_t i = 0; i < rank; ++i) position[rank - 1 - i] = index[layout.minor_to_major[i]];
  std::vector<TileStep> steps = make_steps(layout, dims);
  for (const TileStep& step : steps) position = apply(step, std::move(position));
  int64_t linear = 0;
  for (size_t i = 0; i < position.size(); ++i)
    linear = linear * steps.back().after[i] + position[i];
  return linear;
}

std::vector<int64_t> multi_index(const Layout& layout, std::span<const int64_t> dims,
                                 int64_t linear) {
  std::vector<TileStep> steps = make_steps(layout, dims);
  Extents extents = steps.empty() ? physical_extents(layout, dims) : steps.back().after;
  Extents position(extents.size());
  for (size_t i = extents.size(); i-- > 0;) {
    if (extents[i] == 0) return {};
    position[i] = linear % extents[i];
    linear /= extents[i];
  }
  if (linear != 0) return {};
  for (size_t i = steps.size(); i-- > 0;) {
    size_t rank_before = i == 0 ? dims.size() : steps[i - 1].after.size();
    if (!undo(steps[i], rank_before, position)) return {};
  }
  size_t rank = dims.size();
  std::vector<int64_t> index(rank);
  for (size_t i = 0; i < rank; ++i) {
    int64_t d = layout.minor_to_major[i];
    index[d] = position[rank - 1 - i];
    if (index[d] >= dims[d]) return {};
  }
  return index;
}

int64_t padded_elems(const Layout& layout, std::span<const int64_t> dims) {
  std::vector<TileStep> steps = make_steps(layout, dims);
  Extents extents = steps.empty() ? physical_extents(layout, dims) : steps.back().after;
  int64_t elems = 1;
  for (int64_t extent : extents) {
    HEDDLE_CHECK(!__builtin_mul_overflow(elems, extent, &elems), "layout too large");
  }
  return elems;
}

}  // namespace heddle::tensor
