// Private to stitch: the code of one kernel of the GEMM family (docs/gemm.md, stages.md §4.9).
// gemm.cc creates the tasks and iterates over the tiles, gemm_tile.cc computes a tile,
// gemm_fragments.cc a tile with a matrix instruction, gemm_lines.cc a convolution with one,
// gemm_panel.cc reads B, gemm_ahead.cc prefetches, gemm_turned.cc stores transposed outputs,
// gemm_cut.cc blocks K.
#pragma once

#include "schedule/gemm.h"
#include "stage/gemm_axis.h"
#include "stage/window_lines.h"
#include "stitch/stitcher.h"

namespace heddle::stitch {

using stage::AxisPart;
using stage::Gemm;
using stage::GemmShape;
using stage::Run;
using stage::Segment;
using stage::Window;

class GemmEmitter {
 public:
  GemmEmitter(Stitcher* s, int row);
  std::vector<kernel::Group> emit();

  // For chains (chain.cc). Reads A from `buffer` instead of an input: element `at` (an expression
  // over the product's digits) minus `base` (in scope).
  void read_from(BufferId buffer, Expr at, Expr base);
  void make_panel();  // of copy_b
  // All panels against one block of rows.
  void emit_block(const std::vector<Expr>& batch, const AxisPart& lines, const AxisPart& rows,
                  const Expr& y0, const Expr& m0, Block* block);
  // For pools after a convolution (pooled.cc). Multiplies the panels of columns [column, column +
  // width) by `lines` whole lines from `first` on, at most `most_lines`.
  void emit_strip(const std::vector<Expr>& batch, const Expr& column, int64_t width,
                  const Expr& first, ExprId lines, int64_t most_lines, Block* block);

 private:
  // One column panel: its number, and the columns that it has.
  struct Panel {
    Expr number;
    int64_t width = 0;
    int vectors = 0;
  };
  // One register tile: its lines and rows, where it starts, and its number against this panel.
  struct Tile {
    const Run *lines = nullptr, *rows = nullptr;
    Expr y0, m0, number;
    BufferId acc;  // [line, row, vector]
    // On fragments: how many of 16 rows; sums, and operands of one step.
    int64_t fragment_rows = 0;
    BufferId d, a, b;
  };
  // Range of a loop over k: `count` elements from `low` on. `moving`: the window whose part inside
  // the image depends on a loop variable, and the range with it.
  struct KRange {
    int digit = -1;
    int64_t low = 0, count = 1;
    const Window* moving = nullptr;
  };

  // gemm.cc
  void count_words();
  kernel::Group group(const AxisPart& lines, const AxisPart& rows, int64_t panels,
                      int64_t first_panel, int64_t width);
  void add_grid(kernel::Group* group, const std::string& name, int64_t extent, Expr* value);
  void emit_panel(const Panel& panel, const AxisPart& lines, const AxisPart& rows, const Expr& y0,
                  const Expr& m0, Block* block);
  void emit_tiles(const Panel& panel, const AxisPart& lines, const AxisPart& rows, const Expr& y0,
                  const Expr& m0, Block* block);
  // All tiles of one line, the task's number `number`.
  void emit_line(const Panel& panel, const AxisPart& rows, const Expr& y, const Expr& number,
                 Block* block);
  // Calls emit(start, number) for each tile of a run, in a loop where there are several.
  template <typename Emit>
  void for_run(const char* name, const Run& run, const Expr& origin, const Expr& first,
               Block* block, Emit&& emit);

  // gemm_tile.cc
  BufferId sum_registers(std::vector<int64_t> extents);
  void emit_tile(const Panel& panel, Tile tile, Block* block);
  void emit_segment(const Panel& panel, const Tile& tile, const Segment& lines, const Segment& rows,
                    Block* block);
  std::vector<KRange> k_ranges(const Segment& lines, const Segment& rows) const;
  int64_t merge_inner(std::vector<KRange>* ranges);
  int64_t unrolling(int64_t inner, size_t segments) const;
  Expr moving_range(const KRange& range, ExprId* trips, Block* block);
  void emit_inner(const Panel& panel, const Tile& tile, const Segment& lines, const Segment& rows,
                  const KRange& range, int64_t count, Block* block);
  ExprId guard_of_lines();
  ExprId word_of(const std::vector<ExprId>& parts);
  ExprId add_product(ExprId a, ExprId b, ExprId sum);
  std::vector<ExprId> acc_at(const Expr& line, const Expr& row, int v);
  Block over_tile(const Segment& lines, const Segment& rows,
                  const std::function<Block(const Expr& line, const Expr& row)>& body);
  void emit_step(const Panel& panel, const Tile& tile, const Segment& lines, const Segment& rows,
                 Block* block);
  void emit_epilogue(const Panel& panel, const Tile& tile, Block* block);
  // A value that is not stored yet.
  struct Kept {
    int stage = 0, value = 0;
    ExprId x;
  };
  // `kept`: receives the values of transposed stages (turned_); all others are stored.
  Block finished(const std::vector<Expr>& digits, ExprId sum, std::vector<Kept>* kept = nullptr);

  // gemm_fragments.cc
  BufferId fragments(const char* name, Type type, std::vector<int64_t> extents);
  Stmt move_fragment(kernel::StmtKind kind, BufferId fragment, const std::vector<int64_t>& number,
                     BufferId memory, const Expr& at, int64_t stride);
  void emit_fragments(const Panel& panel, const Tile& tile, Block* block);
  void sum_fragments(const Panel& panel, Tile tile, const Expr& start, Block* block);
  void emit_fragment_step(const Panel& panel, const Tile& tile, int digit, Block* block);
  void emit_rows(const Panel& panel, const Tile& tile, const Expr& start, Block* block);
  void emit_turned_rows(const Panel& panel, const Tile& tile, const Expr& start, Block* block);

  // gemm_lines.cc
  void emit_lines(int64_t full, int64_t rest, std::vector<kernel::Group>* groups);
  kernel::Group lines_group(const AxisPart& lines, int64_t tasks, int64_t panels,
                            int64_t first_panel, int64_t width);
  void copy_lines(const Expr& y0, int64_t count, Block* block);
  void multiply_lines(const Panel& panel, const Expr& y0, int64_t count, Block* block);

  // column_sums.cc
  void find_sums();
  void start_sums(const Panel& panel, Block* block);
  void add_to_sums(const std::vector<Expr>& digits, Block* block);
  void store_sums(const Panel& panel, Block* block);

  // gemm_cut.cc
  void emit_cut(int64_t full, int64_t rest, std::vector<kernel::Group>* groups);
  kernel::Group cut_group(const AxisPart& lines, const AxisPart& rows, int64_t tasks,
                          int64_t panels, int64_t first_panel, int64_t width);
  void move_sums(const Panel& panel, const Tile& tile, bool load, Block* block);

  // gemm_turned.cc
  void find_turned();
  bool is_turned(int64_t columns) const;
  void emit_turned(const Panel& panel, const Tile& tile, int v, int64_t columns, Block* block);
  struct Rows {
    int64_t first = 0, count = 0;
  };
  void emit_square(const Panel& panel, const Tile& tile, int v, int64_t columns, const Rows& rows,
                   Block* block);

  // gemm_panel.cc
  void copy_panel(const Panel& panel, Block* block);
  void copy_columns(const Panel& panel, int v, Block* block);
  std::pair<int, int64_t> run_of_b();
  void turn_columns(const Panel& panel, int v, int along, int64_t elems, Block* block);
  void turn_square(const Panel& panel, int v, int along, int64_t count, Block* block);
  ExprId b_vector(const Panel& panel, int v, int lane_scope);
  ExprId rounded(ExprId x);  // of B
  ExprId columns_load(BufferId buffer, const Expr& at, int lane_scope, int v, int64_t width);
  int64_t b_factor(int digit) const;  // elements between neighbours, in place or in the copy

  // gemm_ahead.cc
  void prefetch_next(const Panel& panel, const Tile& tile, int64_t steps, Block* block);
  void prefetch_rows(const Tile& tile, const KRange& range, const Expr& step, int64_t steps,
                     int64_t count, Block* block);
  void prefetch_results(const Panel& panel, const Tile& tile, Block* block);
  void prefetch_tile(const Panel& panel, const Tile& tile, BufferId buffer, const Expr& place,
                     bool for_write, Block* block);
  void add_prefetch(BufferId buffer, const Expr& at, int level, bool for_write, Block* block);

  // A loaded element, converted to the type of the product, then to that of the sums.
  ExprId widened(ExprId x) { return k_.convert(k_.convert(x, stage_.values[0].type), shape_.type); }
  ExprId zero(Type type) { return emit_constant(&k_, type, 0); }
  ExprId index(const Expr& x) { return s_.index_expr(x); }
  // Linear index of an operand's element at `digits_`.
  Expr operand(int load) const { return substitute(coordinate(load), digits_, s_.scope_extents_); }
  // Linear index over the digits. With k in words: that of a word's first element, or of the word
  // where B is packed in words.
  const Expr& coordinate(int load) const { return load == shape_.b_load ? b_place_ : a_place_; }
  // Elements of the operand between neighbours in a word.
  int64_t part_step(const Expr& place) const { return place.factor_of(shape_.k.back()) / word_; }
  Type operand_type() const { return word_ > 1 ? gemm_.mma->word() : shape_.type; }
  BufferId input_of(int load) const { return s_.inputs_[stage_.loads[load].source.input]; }
  // Place of the current k in a row-major panel.
  Expr k_linear() const;
  // Start of the current block of K along a digit of k.
  Expr k_start(int digit) const { return digit == shape_.k[0] ? block_.start : Expr(0); }
  Stmt lanes_loop(VarId var, int64_t extent, Block body) {
    return make_loop(LoopKind::vector, var, k_.constant(extent), std::move(body), gemm_.lanes);
  }

  Stitcher& s_;
  kernel::Kernel& k_;
  const Row& row_;
  const Gemm& gemm_;
  int dot_;
  const Stage& stage_;
  const GemmShape& shape_;
  const int64_t word_;  // elements of k in a word; the innermost digit of k counts words
  BufferId a_;
  Expr a_place_, b_place_;
  Expr a_at_, a_base_;  // over the digits; in scope
  int64_t width_ = 0;
  std::vector<int64_t> extents_;   // of the dot's digits
  std::vector<int64_t> k_places_;  // by shape_.k: stride in the panel, in words
  BufferId panel_;                 // the scratch for copy_b
  // The current block of K (its start, its length, whether it is the first or the last) where K is
  // blocked, along its outermost digit. Else all of K.
  struct KBlock {
    Expr start;
    int64_t count = 0;
    bool first = true, last = true;
    Expr panel;  // which of the task's `panels`
    int64_t panels = 1;
    bool panels_stay = false;    // the next task has the same ones
    Expr first_line, first_row;  // of the task
  } block_;
  BufferId sums_;  // [panel, line, row, vector, lane] or, of fragments, [panel, tile, row, ...]; of
                   // one tile where K is not blocked
  int64_t rows_ = 0, panel_sums_ = 0;               // of a line in a task, at most; of a panel
  std::optional<stage::WindowLines> window_lines_;  // copied for fragments
  BufferId lines_;                                  // the copy
  bool is_cut_ = false;
  // Reductions over the rows, and their accumulators for the current panel.
  struct Sum {
    stage::ColumnSum what;
    BufferId registers;
  };
  std::vector<Sum> column_sums_;
  std::vector<StageId> joined_;  // the row's stages without these reductions
  Expr row_block_;               // number of the task's block of rows
  int vector_ = 0;               // of the tile: the one whose epilogue is being emitted
  std::vector<Expr> digits_;     // of the dot, in scope: out, then reduced
  std::vector<std::vector<Expr>> epilogue_digits_;
  // By stage: the position of its elements over the dot's digits, if they are stored along the rows
  // of a tile; nullopt: along its columns.
  std::vector<std::optional<Expr>> turned_;
  bool any_turned_ = false, lines_joined_ = false;  // a tile's rows continue in the next line
};

}  // namespace heddle::stitch
