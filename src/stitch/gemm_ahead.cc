// Prefetches of the GEMM family: the next panel of B, the next rows of A, the cache lines that the
// results will be stored to.
#include "stitch/gemm_emitter.h"

namespace heddle::stitch {

namespace {

// A tile's rows of A of up to this many bytes are prefetched into L1: short rows end before the
// hardware prefetcher has detected them. Longer rows are prefetched into L2, and only where few
// panels read them: with many panels they stay in L2.
constexpr int64_t kShortRowsBytes = 16 << 10, kFewPanels = 4;
constexpr int64_t kMostAStep = 8;
// With a shorter K the stores come as early as their prefetches.
constexpr int64_t kLeastSum = 32;
// Smaller operands of an epilogue are in a near cache.
constexpr int64_t kLargeReadBytes = 1 << 20;

}  // namespace

void GemmEmitter::add_prefetch(BufferId buffer, const Expr& at, int level, bool for_write,
                               Block* block) {
  Stmt stmt;
  stmt.kind = kernel::StmtKind::prefetch;
  stmt.buffer = buffer;
  stmt.indices = {index(at)};
  stmt.level = level;
  stmt.for_write = for_write;
  block->push_back(std::move(stmt));
}

// Prefetches the next panel, spread over the elements of k of the first tiles of this panel: the
// record's `prefetch` cache lines per `ku` elements, until the whole panel has been asked for.
// Emits those of the next `steps` elements.
void GemmEmitter::prefetch_next(const Panel& panel, const Tile& tile, int64_t steps, Block* block) {
  if (gemm_.prefetch == 0 || shape_.b_panel == 0) return;
  const int64_t line = 64 / tensor::type_bytes(k_.buffer(input_of(shape_.b_load)).type);
  const int64_t rate = std::max<int64_t>(1, line * gemm_.prefetch / gemm_.ku);
  const int64_t needed = (width_ + rate - 1) / rate;  // tiles
  const index::Range number = bounds(tile.number, s_.scope_extents_);
  if (number.low >= needed) return;
  Block fetches;
  Expr done = ((tile.number * block_.count - block_.start) * k_places_[0] + k_linear()) * rate;
  std::vector<Expr> first = digits_;
  for (int k : shape_.k) first[k] = Expr(0);
  Expr next_panel = panel.number + Expr(1);
  if (is_cut_) {
    // After the last panel comes the first one of the next block of K, or of the next task, which
    // may have the same panels.
    const Expr wrapped = floor_div(block_.panel + Expr(1), block_.panels, s_.scope_extents_);
    if (!block_.last || block_.panels_stay) next_panel = next_panel - wrapped * block_.panels;
    first[shape_.k[0]] = block_.last ? block_.start - wrapped * block_.start.constant()
                                     : block_.start + wrapped * block_.count;
  }
  Expr next = substitute(coordinate(shape_.b_load), first, s_.scope_extents_) +
              next_panel * shape_.b_panel_stride;
  for (int64_t j = 0; j * line < steps * rate; ++j)
    add_prefetch(input_of(shape_.b_load), next + done + Expr(j * line), 2, false, &fetches);
  if (number.low < number.high) {  // also if all are: kernels of other row counts have one text
    const ExprId is_needed = k_.compare(Op::lt, index(tile.number), k_.constant(needed));
    fetches = {make_if(is_needed, std::move(fetches))};
  }
  std::move(fetches.begin(), fetches.end(), std::back_inserter(*block));
}

// Prefetches the range after this tile's rows of A, of the same length: the next tile's rows, if
// rows are dense. Each of the `steps` steps over `count` elements of k prefetches a part of it.
void GemmEmitter::prefetch_rows(const Tile& tile, const KRange& range, const Expr& step,
                                int64_t steps, int64_t count, Block* block) {
  if (stage_.loads[shape_.a_load].source.input < 0) return;  // in a cache already
  const Expr& a = coordinate(shape_.a_load);
  const int out = gemm_.my > 1 ? shape_.y : shape_.m;
  if (out < 0 || a.factor_of(range.digit) != word_) return;
  const int64_t row = a.factor_of(out);
  const int64_t rows = gemm_.my > 1 ? tile.lines->rows : tile.rows->rows;
  const int64_t line = 64 / tensor::type_bytes(k_.buffer(input_of(shape_.a_load)).type);
  // Not where a tile reads only a part of each row: one group of many, say.
  const int64_t apart = shape_.m >= 0 ? a.factor_of(shape_.m) : row;
  if (row < line || apart > 2 * count * word_) return;
  const int64_t lines = (rows * row + line - 1) / line, each = (lines + steps - 1) / steps;
  if (each > kMostAStep) return;
  const bool is_short = lines * 64 <= kShortRowsBytes;
  if (!is_short && shape_.n_extent > kFewPanels * width_) return;
  const std::vector<Expr> saved = digits_;
  digits_[range.digit] = k_start(range.digit) + Expr(range.low);
  if (shape_.m >= 0) digits_[shape_.m] = tile.m0;
  if (shape_.y >= 0) digits_[shape_.y] = tile.y0;
  digits_[out] = digits_[out] + Expr(rows);
  const Expr next = operand(shape_.a_load) + step * (each * line);
  for (int64_t j = 0; j < each; ++j)
    add_prefetch(input_of(shape_.a_load), next + Expr(j * line), is_short ? 1 : 2, false, block);
  digits_ = saved;
}

// Prefetches the cache lines that the tile's results will be stored to and that its epilogue reads
// besides the sums, where columns are contiguous: rows are too far apart for the hardware
// prefetcher.
void GemmEmitter::prefetch_results(const Panel& panel, const Tile& tile, Block* block) {
  if (shape_.k_extent < kLeastSum) return;
  for (StageId joined : joined_) {
    const Stage& stage = s_.placed_.graph.stages[joined.index()];
    const std::vector<Expr>& digits = epilogue_digits_[joined.index()];
    for (const stage::Value& value : stage.values) {
      if (value.output < 0 || s_.streamed_[static_cast<size_t>(value.output)]) continue;
      prefetch_tile(panel, tile, s_.outputs_[static_cast<size_t>(value.output)],
                    substitute(stage.position, digits, extents_), true, block);
    }
    if (joined == joined_[0]) continue;
    for (const stage::Load& load : stage.loads) {
      if (load.source.input < 0 || !load.guards.empty() || load.coordinates[0].uses_runtime())
        continue;
      const BufferId from = s_.inputs_[static_cast<size_t>(load.source.input)];
      const Expr place = substitute(load.coordinates[0], digits, extents_);
      const int64_t bytes = s_.placed_.graph.inputs[load.source.input].shape.bytes();
      if (bytes >= kLargeReadBytes && shape_.m >= 0 && place.uses(shape_.m))
        prefetch_tile(panel, tile, from, place, false, block);
    }
  }
}

// Prefetches every cache line of a tile at `place`, an expression over the dot's out digits.
void GemmEmitter::prefetch_tile(const Panel& panel, const Tile& tile, BufferId buffer,
                                const Expr& place, bool for_write, Block* block) {
  if (place.factor_of(shape_.n) != 1) return;
  const int64_t line = 64 / tensor::type_bytes(k_.buffer(buffer).type);
  const int64_t line_count = gemm_.my > 1 ? tile.lines->rows : 1;
  std::vector<Expr> digits(digits_.begin(), digits_.begin() + static_cast<long>(stage_.out.size()));
  for (int64_t row = 0; row < line_count * tile.rows->rows; ++row) {
    if (shape_.y >= 0) digits[shape_.y] = tile.y0 + Expr(row / tile.rows->rows);
    if (shape_.m >= 0) digits[shape_.m] = tile.m0 + Expr(row % tile.rows->rows);
    for (int64_t column = 0; column < panel.width; column += line) {
      digits[shape_.n] = panel.number * width_ + Expr(column);
      add_prefetch(buffer, substitute(place, digits, s_.scope_extents_), 1, for_write, block);
    }
  }
}

}  // namespace heddle::stitch
