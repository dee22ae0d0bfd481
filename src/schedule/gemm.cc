#include "schedule/gemm.h"

#include <algorithm>
#include <limits>

#include "cost/gemm_time.h"
#include "hlo/dim_classes.h"
#include "schedule/bounded_rows.h"
#include "schedule/gemm_tiles.h"
#include "schedule/tuning.h"
#include "stage/gemm_axis.h"

namespace heddle::schedule {

using index::Expr;

namespace {

constexpr int64_t kFetchedBytes = 512 << 10;  // a B at least this large does not stay in a cache

// The number of different tile shapes along an axis; each needs a copy of the tile's code.
int64_t shapes_along(int64_t extent, int64_t tile) {
  const int64_t tiles = (extent + tile - 1) / tile;
  return extent % tiles == 0 ? 1 : 2;
}

int64_t panel_shapes(const Gemm& gemm, int64_t n) {
  const int64_t width = int64_t{gemm.nv} * gemm.lanes;
  return (n / width > 0) + (n % width > 0);
}

// The cheapest of several records. Records within the model's accuracy (kLevel) count as equal: the
// one with less code wins, because code generation takes most of the compile time, then the first
// of the list.
class Cheapest {
 public:
  void add(const Gemm& gemm, double cycles, int64_t shapes) {
    all_.push_back({gemm, cycles, shapes});
    least_ = std::min(least_, cycles);
  }
  bool empty() const { return all_.empty(); }
  const Gemm& best() const {
    constexpr double kLevel = 1.004;
    const Entry* best = nullptr;
    for (const Entry& entry : all_)
      if (entry.cycles <= kLevel * least_ && (!best || entry.shapes < best->shapes)) best = &entry;
    return best->gemm;
  }

 private:
  struct Entry {
    Gemm gemm;
    double cycles;
    int64_t shapes;
  };
  std::vector<Entry> all_;
  double least_ = std::numeric_limits<double>::max();
};

}  // namespace

Gemm choose_gemm(int64_t m, int64_t n, int64_t k, bool b_constant, const target::Target& target,
                 int nv, Type sums) {
  return choose_gemm_between(m, m, n, k, b_constant, target, nv, sums);
}

namespace {

// A product: between `least` and `m` rows, k in words, `nv` 0 for any; `fetches`: the next panel is
// prefetched while one is used, because B does not stay in a cache.
struct Rows {
  int64_t least, m, n, k;
  int nv;
  bool fetches;
};

struct Tile {
  int mr, nv;
};

// A number of each row count, summed over samples of the possible ones.
template <typename F>
double over_rows(int64_t least, int64_t most, F of_rows) {
  constexpr int64_t kSamples = 32;
  const int64_t step = std::max<int64_t>(1, (most - least) / kSamples);
  double sum = 0;
  for (int64_t rows = most; rows >= least; rows -= step) sum += of_rows(rows);
  return sum;
}

// Predicted cycles per row, summed over samples of the possible row counts.
double cycles_of(const Gemm& gemm, const Rows& of, const target::Target& target) {
  // With several panels, A is read once per panel, and rows of results are stored in parts.
  constexpr double kSeveralPanels = 1.04;
  const double cycles = over_rows(of.least, of.m, [&](int64_t rows) {
    double one = of.least < of.m ? cost::bounded_cycles(gemm, rows, of.m, of.n, of.k, target)
                                 : cost::gemm_cycles(gemm, rows, of.n, of.k, target);
    one /= static_cast<double>(rows);
    if (of.fetches) one *= cost::fetching_ahead(gemm, rows > cost::kOneBlock ? 256 : rows, target);
    return one;
  });
  return of.n > int64_t{gemm.nv} * gemm.lanes ? cycles * kSeveralPanels : cycles;
}

// The cheapest tile of several rows, with all else as in `gemm`.
Gemm choose_rows(const Gemm& gemm, const Rows& of, const target::Target& target) {
  static constexpr Tile kWide[] = {{8, 3},  {14, 2}, {12, 2}, {6, 4}, {9, 3},
                                   {10, 2}, {7, 3},  {8, 2},  {7, 2}};
  static constexpr Tile kWhole[] = {{4, 4}, {4, 5}};  // where they hold all columns
  static constexpr Tile kNarrow[] = {{6, 2}, {4, 3}, {5, 2}, {12, 1}};
  Cheapest cheapest;
  Gemm candidate = gemm;
  auto consider = [&](Tile tile) {
    if (of.nv && tile.nv != of.nv) return;
    candidate.mr = static_cast<int>(std::min<int64_t>(tile.mr, of.m));
    candidate.nv = tile.nv;
    const int64_t heights = of.least < of.m ? 1 : shapes_along(of.m, candidate.mr);
    cheapest.add(candidate, cycles_of(candidate, of, target),
                 heights * panel_shapes(candidate, of.n));
  };
  if (target.vector_registers >= 32) {
    for (Tile tile : kWide) consider(tile);
    for (Tile tile : kWhole)
      if (of.n <= int64_t{tile.nv} * gemm.lanes) consider(tile);
  } else {
    for (Tile tile : kNarrow) consider(tile);
  }
  if (cheapest.empty()) {  // panels of an unusual width
    const int registers = target.vector_registers;
    consider({std::max(1, (registers - 1 - of.nv) / std::max(of.nv, 1)), of.nv});
  }
  return cheapest.best();
}

// Up to 512 rows stay one block; more are split so that a block of A stays in the second cache
// beside two panels. That is as good as blocks of k, and needs no sums in memory.
int64_t rows_of_block(const Gemm& gemm, const Rows& of, const target::Target& target) {
  const int64_t second = target.second_cache_bytes(), few = 4 * int64_t{gemm.mr};
  int64_t rows = of.m;
  if (of.m > cost::kOneBlock) rows = std::clamp<int64_t>(second / 4 / (of.k * 4), few, 256);
  // If k is short, stores dominate: the stores of a block's panels should stay in the cache
  // together.
  if (of.k <= 256 && of.k * of.n * 4 <= second)
    rows = std::clamp<int64_t>(second / 8 / ((of.k + of.n) * 4), std::min(few, rows), rows);
  const int64_t blocks = (of.m + rows - 1) / rows;
  return (of.m + blocks - 1) / blocks;
}

}  // namespace

Gemm choose_gemm_between(int64_t least, int64_t m, int64_t n, int64_t k, bool b_constant,
                         const target::Target& target, int nv, Type sums,
                         const kernel::MmaDescriptor* mma) {
  const bool plain = mma == kernel::plain_mma();
  if (target.records && b_constant && sums == Type::f32 && plain)
    if (std::optional<Gemm> tuned = tuned_gemm(gemm_key(m, n, k), nv, target)) return *tuned;
  const int64_t words = k / mma->k;  // each as wide as an accumulator element
  // With one row, each panel is read once, as fast as it arrives: prefetching does not help.
  const Rows of{least, m, n, words, nv, b_constant && m > 1 && words * n * 4 >= kFetchedBytes};
  Gemm best;
  best.mma = mma;
  best.lanes = target.lanes(sums);
  best.ku = 4;
  if (m == 1) {
    const int64_t most = target.vector_registers >= 32 ? 8 : 6;
    best.nv = nv ? nv : static_cast<int>(std::clamp<int64_t>(n / best.lanes, 1, most));
  } else if (least < m || !choose_fragments(m, n, k, nv, target, &best)) {
    best = choose_rows(best, of, target);
  }
  best.kc = k;
  best.m_block = rows_of_block(best, of, target);
  // Bounded rows are balanced as they run, in whole tiles; what is left over has code of its own.
  if ((best.tile || least < m) && best.m_block < m)
    best.m_block = (best.m_block + best.mr - 1) / best.mr * best.mr;
  const int64_t tiles = (best.m_block + best.mr - 1) / best.mr;
  if (of.fetches)
    best.prefetch = static_cast<int>((int64_t{best.nv} * best.ku + tiles - 1) / tiles);
  return best;
}

namespace {

// Each segment is a copy of the code; LLVM compiles about this many in a second.
constexpr int64_t kMostSegments = 512;

int64_t segments_of(const Gemm& gemm, const GemmShape& shape, const Stage& stage) {
  return count_segments(row_parts(gemm, shape, stage)) *
         (gemm.my > 1 ? count_segments(line_parts(gemm, shape, stage)) : 1);
}

// Predicted cycles of a line of windows; of a bounded one per row, summed over samples of the
// possible rows, of which whole tiles are computed.
double cycles_of_windows(const Gemm& gemm, const GemmShape& shape, const Stage& stage,
                         int64_t row_bytes, const target::Target& target) {
  const int64_t least = least_rows(stage.instr, shape.m_extent);
  if (least == shape.m_extent) return cost::window_cycles(gemm, shape, row_bytes, target);
  GemmShape sample = shape;
  return over_rows(least, shape.m_extent, [&](int64_t rows) {
    sample.m_extent = std::min((rows + gemm.mr - 1) / gemm.mr * gemm.mr, shape.m_extent);
    return cost::window_cycles(gemm, sample, row_bytes, target) / static_cast<double>(rows);
  });
}

// Short lines are joined: `my` of them are one tile.
void choose_tile(const GemmShape& shape, const Stage& stage, int nv, const target::Target& target,
                 Gemm* best) {
  struct Tile {
    int rows, nv;
  };
  static constexpr Tile kWide[] = {{14, 2}, {8, 3},  {12, 2}, {6, 4}, {9, 3}, {10, 2},
                                   {7, 3},  {28, 1}, {14, 1}, {8, 2}, {7, 2}};
  static constexpr Tile kNarrow[] = {{6, 2}, {4, 3}, {5, 2}, {12, 1}, {7, 1}, {14, 1}};
  const Expr& a = stage.loads[static_cast<size_t>(shape.a_load)].coordinates[0];
  const int64_t row_bytes = shape.m >= 0 ? std::abs(a.factor_of(shape.m)) * 4 : 0;
  Cheapest cheapest;
  Gemm candidate = *best;
  auto consider = [&](Tile tile) {
    if (nv && tile.nv != nv) return;
    candidate.nv = tile.nv;
    candidate.mr = static_cast<int>(std::min<int64_t>(tile.rows, shape.m_extent));
    candidate.my =
        static_cast<int>(std::clamp<int64_t>(tile.rows / shape.m_extent, 1, shape.y_extent));
    const int64_t heights = candidate.my > 1 ? shapes_along(shape.y_extent, candidate.my)
                                             : shapes_along(shape.m_extent, candidate.mr);
    cheapest.add(candidate, cycles_of_windows(candidate, shape, stage, row_bytes, target),
                 heights * panel_shapes(candidate, shape.n_extent));
  };
  if (target.vector_registers >= 32) {
    for (Tile tile : kWide) consider(tile);
  } else {
    for (Tile tile : kNarrow) consider(tile);
  }
  if (cheapest.empty())  // panels of an unusual width
    consider({std::max(1, (target.vector_registers - 1 - nv) / std::max(nv, 1)), nv});
  *best = cheapest.best();
}

// Lines and rows of a task: its part of A stays in the second cache, and every core of the target
// has at least four tasks if there are enough tiles.
void choose_blocks(const GemmShape& shape, const Stage& stage, int64_t a_bytes,
                   const target::Target& target, Gemm* gemm) {
  int64_t batch = 1, a_batch = 1, groups = 1;
  const Expr& xa = stage.loads[static_cast<size_t>(shape.a_load)].coordinates[0];
  for (int d : shape.batch) {
    const int64_t extent = stage.out[static_cast<size_t>(d)].extent;
    batch *= extent;
    // All groups of a line are computed before the next block of lines.
    if (is_group(shape, stage, d))
      groups *= extent;
    else if (xa.uses(d))
      a_batch *= extent;
  }
  const int64_t width = int64_t{gemm->nv} * gemm->lanes;
  const int64_t panels = (shape.n_extent + width - 1) / width;
  const int64_t second = target.second_cache_bytes();
  int64_t line_bytes = std::max<int64_t>(1, a_bytes / (a_batch * shape.y_extent));
  // If k is short, the panels' stores to a line should meet in the cache.
  if (shape.k_extent <= 256) line_bytes += shape.m_extent * shape.n_extent * groups * 4;
  const int64_t rows = shape.m_extent;
  gemm->m_block = rows <= 1024 ? rows : gemm->mr * ((256 + gemm->mr - 1) / gemm->mr);
  auto lines_for = [&](int64_t least_rows) { return (least_rows + rows - 1) / rows; };
  const int64_t fewest = std::max<int64_t>(gemm->my, lines_for(4 * int64_t{gemm->mr}));
  int64_t block = std::max({second / 4 / line_bytes, lines_for(64), fewest});
  const int64_t others = batch * panels * ((rows + gemm->m_block - 1) / gemm->m_block);
  const int64_t wanted = (4 * target.cores + others - 1) / others;
  block = std::min(block, std::max(fewest, (shape.y_extent + wanted - 1) / wanted));
  const int64_t blocks = std::max<int64_t>(1, (shape.y_extent + block - 1) / block);
  block = (shape.y_extent + blocks - 1) / blocks;
  if (gemm->my > 1) block = std::min((block + gemm->my - 1) / gemm->my * gemm->my, shape.y_extent);
  gemm->y_block = block;
  // Chooses the operand that is read once from farther away; the other is read once per block of
  // it.
  const int64_t b_bytes = shape.k_extent * shape.n_extent * 4;
  gemm->panels_first = batch * blocks > 1 && b_bytes > second / 2 &&
                       b_bytes + a_bytes * panels < a_bytes + b_bytes * batch * blocks;
  const int64_t tiles = (rows + gemm->mr - 1) / gemm->mr * ((block + gemm->my - 1) / gemm->my);
  if (shape.b_panel > 0 && b_bytes >= kFetchedBytes)
    gemm->prefetch = static_cast<int>((int64_t{gemm->nv} * gemm->ku + tiles - 1) / tiles);
}

// Whether each task copies an unpacked B: its columns are not contiguous, or several tiles would
// re-read a panel that does not stay in the first cache, because it is too large and scattered or
// its rows map to few cache sets (cpu-codegen §2.4.14).
bool wants_copy(const Gemm& gemm, const GemmShape& shape, const Stage& stage,
                const target::Target& target) {
  if (shape.b_panel > 0) return false;
  if (shape.b_n != 1 || gemm.word() > 1) return true;
  // A copy is converted once, not by each tile.
  const int64_t rows = shape.m_extent * shape.y_extent;
  const Type type = load_type(stage, shape.b_load);
  if (type != shape.type && rows > gemm.mr * gemm.my) return true;
  const Expr& xb = stage.loads[static_cast<size_t>(shape.b_load)].coordinates[0];
  const int64_t row_bytes = std::abs(xb.factor_of(shape.k.back())) * tensor::type_bytes(type);
  if (row_bytes <= int64_t{gemm.nv} * gemm.lanes * tensor::type_bytes(type))
    return false;  // as good as a panel
  if (rows < 28) return false;
  const int64_t first = target.first_cache_bytes();
  if (shape.k_extent * shape.n_extent * 4 <= first / 2) return false;
  const int64_t panel_bytes = shape.k_extent * gemm.nv * gemm.lanes * 4;
  // Rows span more pages than the first-level TLB holds.
  const bool scattered = panel_bytes > first / 2 && shape.k_extent * row_bytes > (256 << 10);
  return scattered || (row_bytes % 4096 == 0 && shape.k_extent > 64);
}

// A product with packed panels and a single digit of K, which may be cut anywhere.
bool is_plain(const GemmShape& shape) {
  return shape.b_panel > 0 && shape.k.size() == 1 && shape.windows.empty() && shape.y < 0 &&
         shape.m >= 0;
}

// Elements of K per element of its outermost digit.
int64_t cut_unit(const GemmShape& shape, const Stage& stage) {
  return shape.k_extent / std::max<int64_t>(1, stage.extents()[static_cast<size_t>(shape.k[0])]);
}

// If a convolution's panel does not stay in the second cache, every tile would fetch it from
// farther away: instead all tiles of a task process one line of the window after the other, with
// their sums in scratch.
void cut_window(const GemmShape& shape, const Stage& stage, const target::Target& target,
                Gemm* gemm) {
  const int64_t second = target.second_cache_bytes();
  const int64_t width = int64_t{gemm->nv} * gemm->lanes;
  if (shape.type != Type::f32 || shape.k_extent / gemm->word() * width * 4 <= second / 2) return;
  Gemm cut = *gemm;
  cut.panels = 1;
  cut.kc = cut_unit(shape, stage);
  if (!can_cut_k(cut, shape, stage)) return;
  // The sums take an eighth of the cache at most, and every core has at least four tasks.
  int64_t batch = (shape.n_extent + width - 1) / width;
  for (int d : shape.batch) batch *= stage.out[static_cast<size_t>(d)].extent;
  const int64_t wanted = (4 * int64_t{target.cores} + batch - 1) / batch;
  const int64_t room = second / 8 / (cut.m_block * width * 4);
  const int64_t most = std::min(room, (shape.y_extent + wanted - 1) / wanted);
  const int64_t blocks =
      (shape.y_extent + std::max<int64_t>(1, most) - 1) / std::max<int64_t>(1, most);
  cut.y_block = std::max(cut.y_block, (shape.y_extent + blocks - 1) / blocks);
  const int64_t tiles = (cut.m_block + cut.mr - 1) / cut.mr * cut.y_block;
  if (tiles < 2) return;
  if (cut.prefetch > 0)
    cut.prefetch = static_cast<int>((int64_t{cut.nv} * cut.ku + tiles - 1) / tiles);
  *gemm = cut;
}

// If rows of A are long, a block of rows that stays in the second cache has too few rows for its
// panels: K is cut instead, so that many rows use a short panel and the sums of several panels are
// kept in scratch.
// Blocks of bounded rows are taller, because the last block of the actual rows may have one row.
void cut_k(const GemmShape& shape, bool bounded, const target::Target& target, Gemm* gemm) {
  constexpr int64_t kMostUncut = 1024;
  // With narrow vectors, a panel arrives in time even while few rows are multiplied.
  const int64_t fewest_rows = target.vector_registers >= 32 ? 24 : 64;
  const int64_t k = shape.k_extent / gemm->word(), m = shape.m_extent;  // words
  if (k <= kMostUncut || m < fewest_rows || shape.type != Type::f32 || !is_plain(shape)) return;
  const int64_t second = target.second_cache_bytes();
  const int64_t parts = (k + kMostUncut - 1) / kMostUncut;
  const int64_t kc = ((k + parts - 1) / parts + 15) / 16 * 16;
  const int64_t most_rows =
      std::max<int64_t>(second / (bounded ? 2 : 4) / (kc * 4), 4 * int64_t{gemm->mr});
  const int64_t blocks = (m + most_rows - 1) / most_rows;
  int64_t rows = (m + blocks - 1) / blocks;
  if (bounded && rows < m) rows = (rows + gemm->mr - 1) / gemm->mr * gemm->mr;
  const int64_t width = int64_t{gemm->nv} * gemm->lanes, panels = shape.n_extent / width;
  // Their sums take an eighth of the cache at most, and every core has at least four tasks.
  const int64_t room = second / 8 / (rows * width * 4);
  const int64_t shared = panels * blocks / (4 * int64_t{target.cores});
  int64_t together = std::min({room, shared, panels});
  if (together < 2) return;
  // Equal tasks, if there is a divisor nearby: a core with only the smaller remainder would idle.
  for (int64_t divisor = together; 2 * divisor >= together && divisor > 1; --divisor) {
    if (panels % divisor != 0) continue;
    together = divisor;
    break;
  }
  gemm->kc = kc * gemm->word();
  gemm->m_block = rows;
  gemm->panels = together;
  const int64_t tiles = (rows + gemm->mr - 1) / gemm->mr;
  if (gemm->prefetch > 0)
    gemm->prefetch = static_cast<int>((int64_t{gemm->nv} * gemm->ku + tiles - 1) / tiles);
}

}  // namespace

// Of bounded rows: if the products of a batch share a packed B that does not stay in the second
// cache, all of them use one panel before the next. So do blocks of rows where K is cut: they are
// few, the last one may have one row, and each worker has some of all.
void share_panels(const GemmShape& shape, const Stage& stage, const target::Target& target,
                  Gemm* gemm) {
  const Expr& xb = stage.loads[static_cast<size_t>(shape.b_load)].coordinates[0];
  const int64_t second = target.second_cache_bytes();
  const bool is_large = shape.b_panel > 0 && shape.k_extent * shape.n_extent * 4 > second / 2;
  const bool is_shared =
      !shape.batch.empty() && std::none_of(shape.batch.begin(), shape.batch.end(),
                                           [&](int digit) { return xb.uses(digit); });
  gemm->panels_first = gemm->panels > 0 || (is_large && is_shared);
}

bool can_cut_k(const Gemm& gemm, const GemmShape& shape, const Stage& stage) {
  if (gemm.kc <= 0 || gemm.kc >= shape.k_extent) return false;
  if (is_plain(shape)) return true;
  const Window* window = shape.window_over(shape.k[0]);
  return shape.b_panel > 0 && gemm.my == 1 && window && window->out >= 0 &&
         window->out != shape.m && gemm.kc % cut_unit(shape, stage) == 0;
}

Gemm choose_gemm(const GemmShape& shape, const Stage& stage, int64_t a_bytes,
                 const target::Target& target, const kernel::MmaDescriptor* mma) {
  const int nv = static_cast<int>(shape.b_panel / target.lanes(shape.type));
  const kernel::MmaDescriptor* tile = tile_of(shape, stage, *mma, target);
  if (!tile && find_tile(*mma, target))
    return choose_gemm(shape, stage, a_bytes, without_tiles(target), mma);
  Gemm gemm;
  std::optional<Gemm> tuned;
  if (target.records && shape.type == Type::f32 && mma == kernel::plain_mma())
    tuned = tuned_gemm(gemm_key(shape, stage, a_bytes), nv, target);
  if (tuned) {
    gemm = *tuned;
    const int64_t panels = shape.n_extent / (int64_t{gemm.nv} * gemm.lanes);
    gemm.panels = can_cut_k(gemm, shape, stage) ? std::min(gemm.panels, panels) : 0;
    if (gemm.panels == 0) gemm.kc = shape.k_extent;
  } else if (stage.kind != hlo::StageKind::conv) {
    gemm =
        choose_gemm_between(least_rows(stage.instr, shape.m_extent), shape.m_extent, shape.n_extent,
                            shape.k_extent, shape.b_panel > 0, target, nv, shape.type, mma);
    cut_k(shape, is_bounded(stage.instr), target, &gemm);
    if (is_bounded(stage.instr)) share_panels(shape, stage, target, &gemm);
  } else {
    gemm.mma = mma;
    gemm.lanes = target.lanes(shape.type);
    gemm.kc = shape.k_extent;
    GemmShape words = shape;  // k in words, each as wide as an accumulator element
    words.k_extent /= mma->k;
    if (tile && !shape.windows.empty()) {
      choose_lines(shape, stage, nv, target, &gemm);
    } else if (tile) {
      choose_fragments(shape.m_extent, shape.n_extent, shape.k_extent, nv, target, &gemm);
      choose_blocks(words, stage, a_bytes, target, &gemm);
    } else {
      choose_tile(words, stage, nv, target, &gemm);
      choose_blocks(words, stage, a_bytes, target, &gemm);
      cut_window(shape, stage, target, &gemm);
    }
  }
  gemm.copy_b = wants_copy(gemm, shape, stage, target);
  if (gemm.copy_b && stage.kind != hlo::StageKind::conv) {  // a copy serves many rows
    const int64_t blocks = (shape.m_extent + 1023) / 1024;
    gemm.m_block = (shape.m_extent + blocks - 1) / blocks;
    if (blocks > 1 && tile) gemm.m_block = (gemm.m_block + gemm.mr - 1) / gemm.mr * gemm.mr;
  }
  if (gemm.copy_b)
    gemm.shared = choose_shared(shape, stage, gemm.m_block * gemm.y_block,
                                int64_t{gemm.nv} * gemm.lanes, target);
  return gemm;
}

Decision fits_family(const Gemm& gemm, const GemmShape& shape, const Stage& stage) {
  if (shape.b_panel > 0 && shape.b_word != gemm.word())
    return Decision::no("gemm-family", "{}: panels of words of {}", stage.name, shape.b_word);
  if (shape.b_panel > 0 && shape.b_panel != int64_t{gemm.nv} * gemm.lanes)
    return Decision::no("gemm-family", "{}: panels of {} columns", stage.name, shape.b_panel);
  if (gemm.panels > 0 && !copies_lines(gemm, shape) && !can_cut_k(gemm, shape, stage))
    return Decision::no("gemm-family", "{}: K is not cut in blocks of {}", stage.name, gemm.kc);
  if (const int digit = shared_batch(shape, stage);
      gemm.shared > 1 && (!gemm.copy_b || digit < 0 ||
                          stage.out[static_cast<size_t>(digit)].extent % gemm.shared != 0))
    return Decision::no("gemm-family", "{}: {} of its batch share no copy", stage.name,
                        gemm.shared);
  const int64_t segments = copies_lines(gemm, shape) ? 1 : segments_of(gemm, shape, stage);
  if (segments > kMostSegments)
    return Decision::no("gemm-family", "{}: {} different edges of its windows", stage.name,
                        segments);
  return Decision::yes();
}

}  // namespace heddle::schedule
