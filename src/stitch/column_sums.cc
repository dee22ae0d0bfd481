// Reductions over the rows of a product (schedule/column_sums.h): a task adds every row of its
// tiles to one vector register per vector of columns, and stores these after its last row.
#include "schedule/column_sums.h"

#include <algorithm>

#include "stitch/gemm_emitter.h"

namespace heddle::stitch {

void GemmEmitter::find_sums() {
  for (StageId id : row_.joined)
    if (id == row_.joined[0] || !s_.placed_.graph.stage(id).is_reduction()) joined_.push_back(id);
  for (const stage::ColumnSum& sum : row_.gemm()->sums) column_sums_.push_back({sum, {}});
}

void GemmEmitter::start_sums(const Panel& panel, Block* block) {
  for (Sum& sum : column_sums_) {
    const Stage& stage = s_.placed_.graph.stage(sum.what.stage);
    kernel::Buffer registers;
    registers.name = "sums";
    registers.type = stage.values[0].type;
    registers.extents = {panel.vectors};
    registers.space = kernel::Space::reg;
    registers.lanes = gemm_.lanes;
    sum.registers = k_.add_buffer(registers);
    const Node& init = stage.nodes[static_cast<size_t>(stage.values[0].init)];
    Block clear;
    for (int v = 0; v < panel.vectors; ++v)
      clear.push_back(
          make_store(sum.registers, {k_.constant(v)}, emit_constant(&k_, init.type, init.bits)));
    block->push_back(lanes_loop(k_.add_var("l"), gemm_.lanes, std::move(clear)));
  }
}

// Adds one row of vector `vector_`, at the given digits of the product.
void GemmEmitter::add_to_sums(const std::vector<Expr>& digits, Block* block) {
  for (const Sum& sum : column_sums_) {
    const Stage& stage = s_.placed_.graph.stage(sum.what.stage);
    std::vector<Expr> mine(stage.out.size() + stage.red.size(), Expr(0));
    for (size_t d = 0; d < sum.what.product.size(); ++d)
      if (sum.what.product[d] >= 0) mine[d] = digits[static_cast<size_t>(sum.what.product[d])];
    mine[static_cast<size_t>(sum.what.row)] = digits[static_cast<size_t>(shape_.m)];
    if (sum.what.line >= 0)
      mine[static_cast<size_t>(sum.what.line)] = digits[static_cast<size_t>(shape_.y)];
    Stitcher::Context context =
        s_.context(static_cast<int>(sum.what.stage.index()), std::move(mine));
    const ExprId x = s_.node(&context, stage.values[0].result);
    const std::vector<ExprId> at{k_.constant(vector_)};
    const std::vector<ExprId> both =
        emit_combine(&k_, *stage.combine, {k_.load(sum.registers, at), x});
    block->push_back(make_store(sum.registers, at, both[0]));
  }
}

void GemmEmitter::store_sums(const Panel& panel, Block* block) {
  for (const Sum& sum : column_sums_) {
    for (int v = 0; v < panel.vectors; ++v) {
      const int64_t here = std::min<int64_t>(gemm_.lanes, panel.width - int64_t{v} * gemm_.lanes);
      VarId l = k_.add_var("l");
      const Expr column = Expr::digit(s_.add_scope(l, here));
      std::vector<Expr> mine;
      for (int digit : sum.what.product) {
        if (digit < 0)
          mine.push_back(row_block_);
        else if (digit == shape_.n)
          mine.push_back(panel.number * width_ + Expr(int64_t{v} * gemm_.lanes) + column);
        else
          mine.push_back(digits_[static_cast<size_t>(digit)]);
      }
      Block store;
      s_.store_value(static_cast<int>(sum.what.stage.index()), 0, mine,
                     k_.load(sum.registers, {k_.constant(v)}), &store);
      block->push_back(lanes_loop(l, here, std::move(store)));
    }
  }
}

}  // namespace heddle::stitch
