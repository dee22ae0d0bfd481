// Outputs that are contiguous along the rows of a tile, not along its columns (features before
// pixels, say): squares of rows by columns are transposed in registers, so that each column is one
// store. Finished values of a last, partial vector go back to the tile's registers first: its other
// lanes have no elements.
#include <algorithm>

#include "cost/strides.h"
#include "stitch/gemm_emitter.h"

namespace heddle::stitch {

// A stage is transposed if its one output is f32 with stride 1 along rows and another along
// columns.
void GemmEmitter::find_turned() {
  const std::vector<Stage>& stages = s_.placed_.graph.stages;
  turned_.assign(stages.size(), std::nullopt);
  if (shape_.m < 0 || shape_.type != Type::f32) return;
  lines_joined_ = gemm_.my > 1;
  for (StageId joined : joined_) {
    const Stage& stage = stages[joined.index()];
    if (stage.values.size() != 1 || stage.values[0].output < 0 ||
        stage.values[0].type != Type::f32 ||
        s_.homes_[joined.index()][0].kind == Home::Kind::buffer)
      continue;
    const Expr at = substitute(stage.position, epilogue_digits_[joined.index()], extents_);
    Expr rest = at - Expr::digit(shape_.m);
    if (rest.uses(shape_.m) || at.factor_of(shape_.n) == 1) continue;
    const int64_t line = shape_.y >= 0 ? at.factor_of(shape_.y) : 0;
    if (shape_.y >= 0) rest = rest - Expr::digit(shape_.y) * line;
    lines_joined_ &= line == shape_.m_extent && !(shape_.y >= 0 && rest.uses(shape_.y));
    turned_[joined.index()] = at;
    any_turned_ = true;
  }
}

// Storing few columns element by element is as fast as transposing them.
bool GemmEmitter::is_turned(int64_t columns) const {
  if (!any_turned_ || columns == gemm_.lanes) return any_turned_;
  const auto turned = std::count_if(turned_.begin(), turned_.end(),
                                    [](const auto& place) { return place.has_value(); });
  return columns >= cost::kLeastTurned && turned == 1;
}

// Stores vector v of the tile, of which `columns` lanes are elements. Lines that continue into each
// other fill the lanes together.
void GemmEmitter::emit_turned(const Panel& panel, const Tile& tile, int v, int64_t columns,
                              Block* block) {
  const int64_t rows = tile.rows->rows, lines = gemm_.my > 1 ? tile.lines->rows : 1;
  const int64_t together = lines_joined_ ? lines * rows : rows;
  for (int64_t start = 0; start < lines * rows; start += together)
    for (int64_t first = 0; first < together; first += gemm_.lanes)
      emit_square(panel, tile, v, columns,
                  {start + first, std::min<int64_t>(gemm_.lanes, together - first)}, block);
}

// Transposes and stores the tile's rows `rows`, counted through its lines.
void GemmEmitter::emit_square(const Panel& panel, const Tile& tile, int v, int64_t columns,
                              const Rows& rows, Block* block) {
  const int64_t in_line = tile.rows->rows, lanes = gemm_.lanes;
  const VarId l = k_.add_var("l");
  const Expr lane = Expr::digit(s_.add_scope(l, columns));
  auto digits_at = [&](int64_t row, const Expr& column) {
    std::vector<Expr> digits(digits_.begin(),
                             digits_.begin() + static_cast<long>(stage_.out.size()));
    if (shape_.y >= 0) digits[shape_.y] = tile.y0 + Expr(row / in_line);
    digits[shape_.m] = tile.m0 + Expr(row % in_line);
    digits[shape_.n] = panel.number * width_ + Expr(v * lanes) + column;
    return digits;
  };
  Block body;
  std::vector<std::vector<Kept>> kept;  // by row
  for (int64_t row = rows.first; row < rows.first + rows.count; ++row) {
    const std::vector<ExprId> at = acc_at(Expr(row / in_line), Expr(row % in_line), v);
    kept.emplace_back();
    Block one = finished(digits_at(row, lane), k_.load(tile.acc, at), &kept.back());
    for (Stmt& stmt : one) body.push_back(std::move(stmt));
    if (columns == lanes) continue;
    body.push_back(make_store(tile.acc, at, kept.back()[0].x));
    kept.back()[0].x = k_.load(tile.acc, at);
  }
  VarId all = l;  // lanes
  if (columns < lanes) {
    block->push_back(lanes_loop(l, columns, std::move(body)));
    body = {};
    all = k_.add_var("l");
  }
  const Expr turned_lane = columns < lanes ? Expr::digit(s_.add_scope(all, lanes)) : lane;
  for (size_t i = 0; i < kept[0].size(); ++i) {
    const Kept& what = kept[0][i];
    const Stage& stage = s_.placed_.graph.stages[static_cast<size_t>(what.stage)];
    std::vector<ExprId> square;
    for (const std::vector<Kept>& row : kept) square.push_back(row[i].x);
    square.resize(static_cast<size_t>(lanes), zero(Type::f32));
    turn(&k_, &square, k_.ref(all), Type::f32, &body);
    Block stores;
    for (int64_t column = 0; column < columns; ++column) {
      std::vector<Expr> digits = digits_at(rows.first, Expr(column));
      digits[shape_.m] = digits[shape_.m] + turned_lane;
      const Expr at =
          substitute(*turned_[static_cast<size_t>(what.stage)], digits, s_.scope_extents_);
      stores.push_back(make_store(s_.outputs_[static_cast<size_t>(stage.values[0].output)],
                                  {index(at)}, square[static_cast<size_t>(column)]));
    }
    if (rows.count < lanes) {
      const ExprId inside = k_.compare(Op::lt, k_.ref(all), k_.constant(rows.count));
      stores = {make_if(inside, std::move(stores))};
    }
    for (Stmt& stmt : stores) body.push_back(std::move(stmt));
  }
  block->push_back(lanes_loop(all, lanes, std::move(body)));
}

}  // namespace heddle::stitch
