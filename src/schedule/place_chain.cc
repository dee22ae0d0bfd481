// The schedule of a chain: loops over blocks of rows, and in them one row of stages per product
// and, for links of rows, a loop over the rows of the block. The footprints prove that nothing is
// computed twice; it is not assumed.
#include "schedule/strategy.h"

#include <algorithm>

#include "cost/code_size.h"
#include "schedule/chain_rows.h"
#include "stage/gemm_axis.h"
#include "stage/stage_builder.h"

namespace heddle::schedule {

using index::Expr;

namespace {

// The back end accepts 32,768 instructions per phase; an unrolled tile's products are only part of
// them.
constexpr int64_t kMostOfChain = 12288;

class ChainPlacer {
 public:
  ChainPlacer(StageGraph graph, const target::Target& target) : target_(target) {
    result_.graph = std::move(graph);
    split_rows(&result_.graph);
  }

  PlacedFusion run() {
    chain_ = match_chain(result_.graph);
    result_.decision = chain_.decision;
    if (result_.decision) result_.decision = choose();
    if (!result_.decision) return std::move(result_);
    build();
    result_.placement = place_values(result_.graph, result_.schedule, target_);
    result_.decision = result_.placement.decision;
    if (result_.decision) result_.decision = check_once();
    chain_.records = std::move(records_);
    result_.form = std::move(chain_);
    return std::move(result_);
  }

 private:
  Decision choose() {
    records_ = choose_chain(chain_, result_.graph, target_);
    const int64_t bytes = resident_bytes(chain_, result_.graph, records_);
    const int64_t most = stage::scratch_limit(target_);
    if (bytes > most)
      return Decision::no("chain-residence",
                          "{} rows between the products take {} bytes, only {} fit",
                          records_[0].m_block * records_[0].y_block, bytes, most);
    int64_t code = 0;
    for (size_t i = 0; i < chain_.links.size(); ++i) {
      const Link& link = chain_.links[i];
      const Gemm& gemm = records_[i];
      if (link.rows) {
        Gemm unrolled;  // like the loops of a row
        unrolled.nv = 4;
        std::vector<StageId> all{link.joined[0]};
        all.insert(all.end(), link.joined.begin(), link.joined.end());
        code += cost::code_of_tile(result_.graph, all, unrolled);
        continue;
      }
      const Stage& stage = result_.graph.stage(link.joined[0]);
      if (Decision fits = fits_family(gemm, link.shape, stage); !fits) return fits;
      if (Decision fits = cost::fits_in_code(result_.graph, link.joined, gemm); !fits) return fits;
      code += cost::code_of_tile(result_.graph, link.joined, gemm) +
              int64_t{gemm.mr} * gemm.nv * gemm.ku;
    }
    if (code > kMostOfChain)
      return Decision::no("chain-residence",
                          "about {} instructions for a tile of each, only {} fit", code,
                          kMostOfChain);
    if (const int64_t all = code_of_all(); all > cost::kMostOfKernel)
      return Decision::no("chain-residence",
                          "about {} instructions for all kinds of blocks, only {} fit", all,
                          cost::kMostOfKernel);
    return Decision::yes();
  }

  // Every kind of block of the first link, at an edge or inside, has tiles of all links.
  int64_t code_of_all() const {
    const Link& first = chain_.links[0];
    const Stage& base = result_.graph.stage(first.base);
    int64_t code =
        first.rows ? 0 : cost::code_of_tiles(result_.graph, first.joined, records_[0], first.shape);
    for (const stage::AxisPart& lines : line_parts(records_[0], first.shape, base))
      for (const stage::AxisPart& rows : row_parts(records_[0], first.shape, base))
        for (size_t i = 1; i < chain_.links.size(); ++i) {
          const Link& link = chain_.links[i];
          if (link.rows) continue;
          const stage::AxisPart all{
              1, 0, {stage::Run{0, 1, count_rows(lines) * count_rows(rows), {}}}};
          const stage::AxisPart tiles = retile(link.counted ? all : rows, records_[i].mr);
          const int64_t each = cost::code_of_tile(result_.graph, link.joined, records_[i]) +
                               int64_t{records_[i].mr} * records_[i].nv * (8 + records_[i].ku * 3);
          code += each * static_cast<int64_t>(tiles.runs.size());
        }
    return code;
  }

  void build() {
    Schedule& schedule = result_.schedule;
    schedule.name = result_.graph.name;
    schedule.target = target_.name;
    Group group;
    group.lanes = records_[0].lanes;
    invert();
    // Products must come first among the nodes (is_gemm).
    std::vector<int> node(chain_.links.size(), -1);
    for (size_t i = 0; i < chain_.links.size(); ++i) {
      if (chain_.links[i].rows) continue;
      node[i] = static_cast<int>(schedule.nodes.size());
      schedule.nodes.emplace_back(
          Row{chain_.links[i].joined, {}, GemmTile{records_[i], chain_.links[i].shape, {}}});
    }
    for (size_t i = 0; i < chain_.links.size(); ++i) {
      if (chain_.links[i].rows) node[i] = add_rows(i, group.lanes);
      group.body.push_back(node[i]);
    }
    const Link& link = chain_.links[0];
    const GemmShape& shape = link.shape;
    // Innermost first: each loop is put around the existing body.
    if (records_[0].m_block < shape.m_extent)
      around("rows_of", shape.m, records_[0].m_block, &group);
    if (shape.y >= 0 && records_[0].y_block < shape.y_extent)
      around("lines_of", shape.y, records_[0].y_block, &group);
    const Stage& first = result_.graph.stage(link.base);
    for (size_t i = shape.batch.size(); i-- > 0;)
      around(first.out[static_cast<size_t>(shape.batch[i])].name, shape.batch[i], 1, &group);
    schedule.phases.push_back({group});
  }

  void invert() {
    digits_.resize(chain_.links.size());
    for (size_t i = 0; i < chain_.links.size(); ++i) {
      const Link& link = chain_.links[i];
      if (!link.rows) {
        HEDDLE_CHECK(static_cast<bool>(invert_epilogue(result_.graph, link.joined, &digits_[i])),
                     "a chain's epilogue was inverted before");
        continue;
      }
      digits_[i].resize(link.row_digits.size());
      for (StageId id : link.joined)
        for (int digit : link.row_digits[id.index()])
          digits_[i][id.index()].push_back(Expr::digit(digit));
    }
  }

  // Wraps the link's stages in a loop over the rows of a line, or of all lines of the block, and
  // where needed one over lines.
  int add_rows(size_t number, int lanes) {
    const Link& link = chain_.links[number];
    Schedule& schedule = result_.schedule;
    std::vector<int> body;
    for (Row& row : rows_of_link(result_.graph, link, lanes)) {
      body.push_back(static_cast<int>(schedule.nodes.size()));
      schedule.nodes.emplace_back(std::move(row));
    }
    auto loop = [&](const char* var, int digit, int64_t trips) {
      Loop made;
      made.var = var;
      made.kind = LoopKind::serial;
      made.trips = trips;
      made.body = std::move(body);
      for (StageId stage : link.joined) {
        const std::vector<int>& digits = link.row_digits[stage.index()];
        for (size_t d = 0; d < digits.size(); ++d)
          if (digits[d] == digit) made.drives.push_back({stage, static_cast<int>(d), 1});
      }
      body = {static_cast<int>(schedule.nodes.size())};
      schedule.nodes.emplace_back(std::move(made));
    };
    const int64_t lines = std::min(records_[0].y_block, chain_.links[0].shape.y_extent);
    const int64_t rows = std::min(records_[0].m_block, chain_.links[0].shape.m_extent);
    loop("row", link.shape.m, link.counted ? lines * rows : rows);
    if (link.shape.y >= 0 && !link.counted) loop("line", link.shape.y, lines);
    return body[0];
  }

  // Adds a loop over a digit of the first product and the corresponding digits of all other stages.
  void around(const std::string& var, int digit, int64_t by, Group* group) {
    Loop loop;
    loop.var = var;
    loop.kind = LoopKind::parallel;
    loop.body = std::move(group->body);
    const Stage& first = result_.graph.stage(chain_.links[0].base);
    loop.trips = (first.out[static_cast<size_t>(digit)].extent + by - 1) / by;
    for (size_t i = 0; i < chain_.links.size(); ++i) drive(i, digit, by, &loop);
    group->body = {static_cast<int>(result_.schedule.nodes.size())};
    result_.schedule.nodes.emplace_back(std::move(loop));
  }

  void drive(size_t number, int digit, int64_t by, Loop* loop) const {
    const Link& link = chain_.links[number];
    const GemmShape &shape = link.shape, &first = chain_.links[0].shape;
    const int64_t step = by;
    int mine = -1;
    if (link.counted) {
      mine = shape.m;
      by *= rows_within(digit);
    } else if (digit == first.m) {
      mine = shape.m;
    } else if (digit == first.y) {
      mine = shape.y;
    } else {
      const auto at = std::find(first.batch.begin(), first.batch.end(), digit);
      mine = shape.batch[static_cast<size_t>(at - first.batch.begin())];
    }
    const Expr row = Expr::digit(mine);
    const Expr part = link.counted && !link.rows ? part_of_row(number, digit) : row;
    for (StageId stage : link.joined) {
      const std::vector<Expr>& from = digits_[number][stage.index()];
      for (size_t d = 0; d < from.size(); ++d) {
        if (from[d] == row)
          loop->drives.push_back({stage, static_cast<int>(d), by});
        else if (from[d] == part)
          loop->drives.push_back({stage, static_cast<int>(d), step});
      }
    }
  }

  // A digit of the first product as a function of a counted link's row.
  Expr part_of_row(size_t number, int digit) const {
    const Link &first = chain_.links[0], &link = chain_.links[number];
    std::vector<int64_t> extents;
    size_t place = 0;
    for (size_t d = 0; d < first.value_digits.size(); ++d) {
      if (first.value_digits[d] == first.shape.n) continue;
      if (first.value_digits[d] == digit) place = extents.size();
      extents.push_back(result_.graph.stage(first.value).out[d].extent);
    }
    const index::Map map = index::reshape({link.shape.m_extent}, extents);
    const std::vector<int64_t> box = result_.graph.stage(link.base).out_extents();
    return substitute(map.results[place], {Expr::digit(link.shape.m)}, box);
  }

  // Rows of a counted link per step of a digit of the first product.
  int64_t rows_within(int digit) const {
    const Link& first = chain_.links[0];
    int64_t rows = 1;
    for (size_t d = first.value_digits.size(); d-- > 0;) {
      if (first.value_digits[d] == digit) break;
      if (first.value_digits[d] != first.shape.n)
        rows *= result_.graph.stage(first.value).out[d].extent;
    }
    return rows;
  }

  // Checks that products and kept values are computed once, except for blocks that are not full.
  Decision check_once() const {
    double most = 1;
    for (const ScheduleNode& node : result_.schedule.nodes) {
      const Loop* loop = std::get_if<Loop>(&node);
      if (!loop || loop->kind != LoopKind::parallel) continue;
      if (loop->drives.empty()) continue;
      const Drive& drive = loop->drives[0];
      most *= static_cast<double>(loop->trips * drive.by) /
              static_cast<double>(
                  result_.graph.stage(drive.stage).extents()[static_cast<size_t>(drive.digit)]);
    }
    for (const Link& link : chain_.links) {
      std::vector<StageId> once = link.rows ? link.joined : std::vector{link.joined[0]};
      for (const Kept& kept : link.kept) once.push_back(kept.stage);
      for (StageId id : once) {
        const Placed& placed = result_.placement.stages[id.index()];
        if (placed.recompute > most * 1.000001)
          return Decision::no("chain-operand", "{} would be computed {:.3g} times",
                              result_.graph.stage(id).name, placed.recompute);
      }
    }
    return Decision::yes();
  }

  const target::Target& target_;
  PlacedFusion result_;
  Chain chain_;
  std::vector<Gemm> records_;
  std::vector<std::vector<std::vector<Expr>>> digits_;  // by link, stage and digit
};

}  // namespace

bool chain_applies(const Problem& problem, const PlacedFusion&) { return has_chain(problem.graph); }

PlacedFusion place_chain(const Problem& problem) {
  return ChainPlacer(problem.graph, problem.target).run();
}

bool product_and_rows_applies(const Problem& problem, const PlacedFusion&) {
  return may_have_rows(problem.graph);
}

PlacedFusion place_product_and_rows(const Problem& problem) { return place_chain(problem); }

}  // namespace heddle::schedule
