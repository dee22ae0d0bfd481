#include "schedule/gemm_tiles.h"

#include <algorithm>

#include "schedule/bounded_rows.h"
#include "stage/window_lines.h"

namespace heddle::schedule {

using index::Expr;

const kernel::MmaDescriptor* find_tile(const kernel::MmaDescriptor& mma,
                                       const target::Target& target) {
  if (!mma.is_dot()) return nullptr;
  for (const kernel::MmaDescriptor& tile : kernel::mma_table())
    if (tile.is_tile() && tile.a == mma.a && tile.b == mma.b && tile.d == mma.d &&
        target.has_any(tile.features) &&
        target.peak_flops_per_ns(tile.name) > target.peak_flops_per_ns(mma.b))
      return &tile;
  return nullptr;
}

namespace {

// How many elements of k are contiguous in A, from the innermost digit on, in the order of B's
// panels.
int64_t runs_along_k(const GemmShape& shape, const Stage& stage, bool in_copy) {
  const Expr& a = stage.loads[static_cast<size_t>(shape.a_load)].coordinates[0];
  int64_t count = stage.extents()[static_cast<size_t>(shape.k.back())];
  if (shape.k.size() < 2) return count;
  const int next = shape.k[shape.k.size() - 2];
  const Window* window = shape.window_over(next);
  const bool dense = in_copy ? window && window->out == shape.m && window->dilation == 1
                             : !window && a.factor_of(next) == count;
  return dense ? count * stage.extents()[static_cast<size_t>(next)] : count;
}

}  // namespace

const kernel::MmaDescriptor* tile_of(const GemmShape& shape, const Stage& stage,
                                     const kernel::MmaDescriptor& mma,
                                     const target::Target& target) {
  const kernel::MmaDescriptor* tile = find_tile(mma, target);
  if (!tile || target.lanes(shape.type) != tile->n || is_bounded(stage.instr) || shape.m < 0 ||
      shape.b_panel > 2 * tile->n)
    return nullptr;
  const Expr& a = stage.loads[static_cast<size_t>(shape.a_load)].coordinates[0];
  const bool windows = !shape.windows.empty();
  if (windows ? !stage::window_lines(shape, stage)
              : a.factor_of(shape.k.back()) != 1 || a.factor_of(shape.m) < 1 ||
                    shape.m_extent < tile->m)
    return nullptr;
  return runs_along_k(shape, stage, windows) % tile->k == 0 ? tile : nullptr;
}

target::Target without_tiles(target::Target target) {
  for (const kernel::MmaDescriptor& mma : kernel::mma_table())
    if (mma.is_tile()) target.mac_rate.erase(std::string(mma.name));
  return target;
}

// Blocks of lines: their copy leaves most of the second cache to a panel of B, and they have enough
// rows to make reading it pay. A task has as many panels as still leave every core four tasks.
void choose_lines(const GemmShape& shape, const Stage& stage, int nv, const target::Target& target,
                  Gemm* gemm) {
  constexpr int64_t kRows = 256;
  const kernel::MmaDescriptor* tile = find_tile(*gemm->mma, target);
  const stage::WindowLines lines = *stage::window_lines(shape, stage);
  gemm->tile = tile;
  gemm->mr = 2 * tile->m;
  gemm->nv = nv ? nv : shape.n_extent > gemm->lanes ? 2 : 1;
  gemm->m_block = shape.m_extent;
  const int64_t width = int64_t{gemm->nv} * gemm->lanes;
  int64_t tasks = 1;
  for (int d : shape.batch) tasks *= stage.out[static_cast<size_t>(d)].extent;
  const int64_t bytes = tensor::type_bytes(tile->a), room = target.second_cache_bytes() / 4;
  int64_t block = std::clamp<int64_t>(kRows / lines.rows_of_line(), 1, shape.y_extent);
  while (block > 1 && lines.elements(block) * bytes > room) --block;
  const int64_t blocks = (shape.y_extent + block - 1) / block;
  gemm->y_block = (shape.y_extent + blocks - 1) / blocks;
  const int64_t panels = std::max<int64_t>(1, shape.n_extent / width);
  const int64_t wanted = 4 * int64_t{target.cores};
  gemm->panels = panels;
  while (gemm->panels > 1 && tasks * blocks * ((panels + gemm->panels - 1) / gemm->panels) < wanted)
    gemm->panels = (gemm->panels + 1) / 2;
}

bool choose_fragments(int64_t m, int64_t n, int64_t k, int nv, const target::Target& target,
                      Gemm* gemm) {
  const kernel::MmaDescriptor* tile = find_tile(*gemm->mma, target);
  if (!tile || gemm->lanes != tile->n || m < tile->m || k % tile->k != 0 || nv > 2) return false;
  gemm->tile = tile;
  gemm->mr = m < 2 * tile->m ? tile->m : 2 * tile->m;
  gemm->nv = nv ? nv : n > gemm->lanes ? 2 : 1;
  return true;
}

}  // namespace heddle::schedule
