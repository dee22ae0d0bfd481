// Private to stitch: rows of joined stages (rows.cc), reductions whose lanes run along an output
// digit (columns.cc), lists (top_k.cc, top_k_lanes.cc), windows of images (windows.cc), transposes
// of squares in registers (turns.cc), running sums (scan.cc), scattered rows (scatter.cc), the
// values and combines of all these (row_values.cc, extremes.cc).
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "stitch/stitcher.h"

namespace heddle::stitch {

// A reduction of values with their positions to the least or largest value (NaN first) and the
// first or last position of equals: which of the two kernel operators each takes.
struct Extreme {
  Op value, position;
};
std::optional<Extreme> extreme_of(const hlo::Computation& combine);  // extremes.cc

class RowEmitter {
 public:
  RowEmitter(Stitcher* s, int number, int lanes)
      : s_(*s),
        k_(s->kernel_),
        row_(std::get<Row>(s->placed_.schedule.nodes[number])),
        number_(number),
        lanes_(lanes) {}
  void emit(Block* block);
  // Emits the row at the given out digits (by stage, in scope) instead of those of the schedule's
  // loops.
  void emit_at(const std::vector<std::vector<Expr>>& digits, Block* block);
  // Initialises what is accumulated over the loop around the row.
  void emit_start(Block* block);

 private:
  struct Member {
    int stage = 0;
    std::vector<Expr> digits;                // in scope
    std::vector<int64_t> extents;            // at this place
    std::vector<BufferId> partials;          // of a reduction, by value; of a scan: its carries
    bool swept = false;                      // a reduction with accumulators in its home
    std::unordered_map<int, ExprId> shared;  // nodes that are the same for all lanes, named
  };

  void find_members();
  // Whether it is a reduction with accumulators in this row.
  bool accumulates(const Member& member) const {
    return stage_of(member).is_reduction() && !member.swept;
  }
  // Accumulates one element into the home of a swept reduction.
  void sweep_value(Stitcher::Context* context, const Member& member,
                   const std::vector<Expr>& digits, Block* block);
  const stage::StageGraph& graph() const { return s_.placed_.graph; }
  const Stage& stage_of(const Member& member) const { return graph().stages[member.stage]; }
  // Loop index at which the partial results of a reduction start: its first reduced loop.
  size_t reduced_from(size_t m) const;
  std::vector<ExprId> starts(Stitcher::Context* context, const Stage& stage, bool* neutral);
  std::vector<ExprId> combine(const Stage& stage, const std::vector<ExprId>& a,
                              const std::vector<ExprId>& b);
  // Accumulation of one element, with products contracted to fma.
  ExprId multiply_add(ExprId a, ExprId b, ExprId c);
  static bool is_product(const Stage& stage, int number);
  static bool sums_products(const Stage& stage, int number);
  ExprId summand(Stitcher::Context* context, const Stage& stage, int number);
  std::vector<ExprId> accumulate(Stitcher::Context* context, const Stage& stage,
                                 const std::vector<ExprId>& accumulators);
  // Gives the results of a reduction their home, combined with the initial value if the start was
  // neutral.
  void finish(Member* member, std::vector<ExprId> results, Block* block);
  // Gives a finished value its home: a named register, or memory.
  void keep(Member* member, int value, ExprId x, Block* block);
  void emit_members(Block* block);
  void emit_scalar(Block* block);
  void emit_level(size_t level, Block* block);
  int unroll() const;
  int slots(size_t m) const;
  void init_partials(size_t m, Block* block);
  BufferId partial_buffer(const Stage& stage, int number, int value, int count);
  Stmt lanes_loop(VarId var, int64_t extent, Block body);
  Stmt unrolled(VarId var, int64_t extent, Stmt inner);
  void emit_lanes(Block* block);
  // Names the lane-invariant nodes of the members' bodies, before the loop over lanes.
  void name_shared(Block* block);
  std::vector<int64_t> lane_breaks(int64_t extent);
  // Maps only: one loop over everything, or one between each two breaks; a driven digit's last
  // strip may be shorter.
  void emit_whole_lanes(int64_t extent, Block* block);
  void emit_unbroken_lanes(int64_t extent, Block* block);
  bool has_rows_in_lanes(int64_t extent) const;
  void emit_straight_lanes(int64_t extent, Block* block);
  void emit_wide_lanes(int64_t extent, Block* block);
  void emit_wide_points(const Expr& first, VarId lane, int64_t lanes, Block* block);
  int64_t widest_bytes() const;
  int wide_lanes(int64_t extent) const;
  // All members at one iteration of the lanes; `slot` is the unrolled accumulator.
  void emit_point(const Expr& lane, ExprId slot, Block* block);
  std::vector<ExprId> name_all(const std::vector<ExprId>& values, Block* block);
  void map_value(Stitcher::Context* context, const Member& member, int value,
                 const std::vector<Expr>& digits, Block* block);
  // Unrolled steps, then lanes, by halves.
  void combine_partials(size_t m, Block* block);
  void combine_lanes(const Member& member, const Extreme& extreme, Block* block);
  // serial out digits { blocks of vectors { init; serial red digits { lanes }; write } }
  void emit_columns(Block* block);
  void emit_columns_outer(const std::vector<const stage::Own*>& out,
                          const std::vector<const stage::Own*>& red, size_t level, Block* block);
  // `width` columns from `base`; with `start` valid, only those below `total`.
  struct ColumnBlock {
    Expr base;
    int64_t width = 0;
    ExprId start;
    int64_t total = 0;
    // Number of vectors of `lanes` columns, rounded up.
    int vectors(int lanes) const { return static_cast<int>((width + lanes - 1) / lanes); }
  };
  void emit_column_block(const std::vector<const stage::Own*>& red, const ColumnBlock& columns,
                         Block* block);
  void each_vector(const ColumnBlock& columns,
                   const std::function<void(Stitcher::Context*, int, Block*)>& body, Block* block);
  // Wraps loops around a body, given outermost first: serial, except the innermost, of `kind`.
  void add_around(const std::vector<std::pair<VarId, ExprId>>& loops, Block body, Block* block,
                  LoopKind kind = LoopKind::serial);
  bool shares_loads(const Member& member, int digit, int lane) const;
  // serial out digits { blocks of columns { vectors { init; rows of the window { taps }; maps } } }
  struct Window;
  void emit_window(Block* block);
  void find_window_words(Window* window);
  ExprId window_word(const Window& window, const Stitcher::Context& context, int load);
  ExprId window_product(const Window& window, Stitcher::Context* context, ExprId sum,
                        const std::function<ExprId(ExprId)>& name);
  void emit_window_outer(const Window& window, size_t level, Block* block);
  struct WindowRows;
  void find_window_rows(const Window& window, WindowRows* rows, Block* block);
  bool is_inside(const Window& window, int64_t first, int64_t count);
  static int64_t tap_count(const Window& window);
  static std::vector<std::pair<int, int64_t>> tap_digits(const Window& window, int64_t tap);
  std::vector<std::pair<int64_t, int64_t>> order_of_taps(const Window& window,
                                                         int64_t columns) const;
  void emit_window_columns(const Window& window, Block* block);
  void emit_window_block(const Window& window, const Expr& first, int64_t columns, Block* block);
  void emit_window_tile(const Window& window, int64_t columns, int64_t width, Block* block);
  void emit_window_taps(const Window& window, BufferId sums, int64_t slot, int64_t columns,
                        Block* block);
  void finish_window_point(ExprId sum, Block* block);
  // Running sums (scan.cc).
  int64_t carries(const Member& member, size_t m, size_t level) const;
  void start_scans(size_t level, Block* block);
  bool scans_along_lanes() const;
  void emit_scan_lanes(int64_t extent, Block* block);
  ExprId run_on(const Member& member, ExprId x, Block* block);
  // Rows into a table (scatter.cc).
  struct OwnRows {
    ExprId low, count;
  };
  void start_rows(const OwnRows& own, Block* block);
  void look_through(const Member& member, const OwnRows& own, Block* block);
  ExprId place_in_table(const std::vector<Expr>& digits);
  // Squares of lanes by lanes over two digits of a map (turns.cc).
  struct Square {
    int across, along;
    int64_t rows, columns;
  };
  void emit_scatters(Block* block);
  void emit_turn(Block* block);
  void each_square(int digit, const std::function<void(int64_t, Block*)>& body, Block* block);
  void emit_square(int across, int along, int64_t rows, int64_t columns, Block* block);
  void load_square(const stage::Load& load, BufferId from, BufferId turned, const Square& square,
                   Block* block);
  // The type of a narrow element during a transpose: its bits are the low ones of 32.
  static Type lane_type(Type type);
  ExprId to_lane(ExprId x, Type type);
  ExprId from_lane(ExprId x, Type type);
  // Sorted lists of keys and places (top_k.cc).
  struct TopK;
  void emit_top_k(Block* block);
  void emit_top_rows(TopK* top, int digit, Block* block);
  void emit_top_lanes(TopK* top, int digit, Block* block);
  // Rows in lanes (top_k_lanes.cc): `rows` rows from `first` on along a digit.
  struct LaneRows {
    int digit;
    Expr first;
    int64_t rows;
  };
  BufferId lane_registers(const std::string& name, Type type, int64_t count);
  int64_t top_slots(const TopK& top) const;
  void emit_top_block(const TopK& top, int digit, const Expr& first, int64_t rows, Block* block);
  void in_lanes(const LaneRows& at, const std::function<void(Block*)>& emit, Block* to);
  void turn_keys(const TopK& top, int digit, int64_t rows, Block* block);
  std::pair<ExprId, ExprId> lane_element(const TopK& top, const Expr& at);
  // An element of a list that is sorted by networks.
  struct ListElement {
    ExprId key, place;
  };
  void exchange(std::vector<ListElement>* list, const std::vector<std::pair<int, int>>& network,
                Block* block);
  std::vector<ListElement> sorted_list(const TopK& top, const Expr& from, int64_t count,
                                       Block* block);
  void keep_list(const TopK& top, const std::vector<ListElement>& list, Block* block);
  void merge_list(const TopK& top, const Expr& from, int64_t count, BufferId left, Block* block);
  void find_equals(const TopK& top, const LaneRows& at, BufferId left, BufferId equal,
                   Block* block);
  ExprId merge_all(const TopK& top, const LaneRows& at, Block* block);
  void insert_all(const TopK& top, const LaneRows& at, Block* block);
  void start_lists(const TopK& top, Block* block);
  void store_lists(const TopK& top, const LaneRows& at, Block* block);
  void store_turned(const TopK& top, const LaneRows& at, int64_t from, int64_t count, Block* block);
  ExprId named(const char* name, ExprId x, Block* block);
  void emit_top_row(TopK top, Block* block);
  void insert_in_lanes(const TopK& top, const Expr& at, bool filling, Block* block);
  void insert_in_row(const TopK& top, const Expr& at, bool filling, Block* block);
  void store_top(const TopK& top, const Expr& at, ExprId key, ExprId place, Block* block);
  void add_list(TopK* top);
  std::pair<ExprId, ExprId> top_element(const TopK& top, const Expr& at);
  ExprId greatest_key(const TopK& top, const Expr& base, Block* block);
  ExprId key_of(const TopK& top, ExprId x);
  ExprId value_of(const TopK& top, ExprId key);
  ExprId turned_bits(const TopK& top, ExprId bits);
  ExprId key_constant(const TopK& top, uint64_t bits);
  ExprId key_zero();
  // Threads of a GPU as lanes (gpu_rows.cc).
  bool is_gpu() const;
  int shuffled_lanes() const;
  std::vector<ExprId> combine_subgroups(const Member& member, VarId lane, Block body, Block* block);
  void load_square_through_scratch(const stage::Load& load, BufferId from, BufferId turned,
                                   const Square& square, Block* block);
  // Moves a digit of every member that has that loop.
  void move(const stage::Own& own, const Expr& by);

  Stitcher& s_;
  kernel::Kernel& k_;
  const Row& row_;
  int number_;
  int lanes_;
  std::vector<Member> members_;
  BufferId turn_tile_;         // scratch, of a GPU
  ExprId lane_;                // of the current loop over rows in lanes
  ExprId scan_lane_;           // of the lanes along a scan; else not valid
  std::vector<Expr> scan_at_;  // by loop of the row: its current iteration
  // Steps of the unrolled loop around the lanes, each with its own sums (a chain), and the current
  // step.
  int chains_ = 0;
  ExprId chain_;
};

}  // namespace heddle::stitch
