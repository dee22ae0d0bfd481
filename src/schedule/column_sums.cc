#include "schedule/column_sums.h"

#include <algorithm>
#include <cmath>

#include "cost/code_size.h"
#include "schedule/bounded_rows.h"
#include "schedule/gemm_tiles.h"
#include "schedule/strategy.h"

namespace heddle::schedule {

using index::Expr;

namespace {

// The most rows of one task if their number has no better divisor; the most elements of the second
// phase, which is one task.
constexpr int64_t kMostRows = 4096, kMostSums = 65536;

// Digits of a reduction that together enumerate one digit of the product (mixed radix).
struct Radix {
  std::vector<std::pair<int, int64_t>> digits;  // and their factors
  int inner = -1;                               // the digit with factor 1
};

bool match_radix(const Expr& x, const Stage& stage, int64_t extent, Radix* radix) {
  if (!x.is_affine() || x.constant() != 0) return false;
  const std::vector<int64_t> extents = stage.extents();
  std::vector<std::pair<int64_t, int>> factors;
  for (const index::Term& term : x.terms()) {
    if (term.atom.kind != index::Atom::Kind::digit) return false;
    factors.emplace_back(term.factor, term.atom.id);
  }
  // A block of one row has a digit of extent 1: it comes first.
  std::sort(factors.begin(), factors.end(), [&](const auto& one, const auto& other) {
    return std::pair(one.first, extents[static_cast<size_t>(one.second)]) <
           std::pair(other.first, extents[static_cast<size_t>(other.second)]);
  });
  int64_t next = 1;
  for (const auto& [factor, digit] : factors) {
    if (factor != next) return false;
    radix->digits.emplace_back(digit, factor);
    next *= extents[static_cast<size_t>(digit)];
  }
  if (next != extent || factors.empty()) return false;
  radix->inner = factors[0].second;
  return radix->inner >= static_cast<int>(stage.out.size());
}

// Whether an index depends only on the row number, not on the individual digits that form it.
bool counts_rows(const Expr& x, const Radix& radix) {
  Expr rest = x;
  for (const auto& [digit, factor] : radix.digits) {
    if (x.factor_of(digit) != x.factor_of(radix.inner) * factor) return false;
    rest = rest - Expr::digit(digit) * x.factor_of(digit);
  }
  return std::none_of(radix.digits.begin(), radix.digits.end(),
                      [&](const auto& one) { return rest.uses(one.first); });
}

// The product's element that a load reads through maps of the epilogue, element for element
// (invert_epilogue), over the digits of the reader.
std::vector<Expr> at_product(const StageGraph& graph, StageId product, const Load& load,
                             const std::vector<int64_t>& box) {
  std::vector<Expr> at = load.coordinates;
  for (StageId id = load.source.stage; !(id == product);) {
    const Stage& map = graph.stage(id);
    const auto reads = std::find_if(map.loads.begin(), map.loads.end(),
                                    [](const Load& each) { return each.source.input < 0; });
    std::vector<Expr> next;
    for (const Expr& x : reads->coordinates) next.push_back(substitute(x, at, box));
    at = std::move(next);
    id = reads->source.stage;
  }
  return at;
}

bool starts_neutral(const Stage& stage) {
  if (stage.values.size() != 1 || stage.values[0].init < 0 || !stage.combine) return false;
  const Node& init = stage.nodes[static_cast<size_t>(stage.values[0].init)];
  const hlo::Instr* root = stage.combine->root();
  if (init.kind != Node::Kind::constant || root->operands().size() != 2) return false;
  for (const hlo::Instr* operand : root->operands())
    if (!operand->is(hlo::Opcode::parameter)) return false;
  if (root->operand(0) == root->operand(1) || stage.values[0].type != Type::f32) return false;
  const hlo::Instr* start = stage.instr->operand(1);
  if (!stage.instr->is(hlo::Opcode::reduce) || !start->is(hlo::Opcode::constant)) return false;
  const double value = start->literal().get_f64(0);
  return (root->is(hlo::Opcode::add) && value == 0) ||
         (root->is(hlo::Opcode::maximum) && value == -INFINITY) ||
         (root->is(hlo::Opcode::minimum) && value == INFINITY);
}

// Whether rows behind a bounded extent are masked (opt/mask_padding): loops over all rows, written
// out at the edges, would not stop there.
bool is_masked(const hlo::Instr* reduce) {
  if (!is_bounded(reduce)) return false;
  const hlo::Instr* summed = hlo::behind_shapes(reduce->operand(0));
  if (!summed->is(hlo::Opcode::select)) return false;
  const hlo::Instr* predicate = hlo::behind_shapes(summed->operand(0));
  return predicate->is(hlo::Opcode::parameter) || predicate->is(hlo::Opcode::compare);
}

// Why the summands depend on more than the elements of the rows; null if they do not.
const char* check_reads(const Stage& stage, const Radix& rows, const Radix& lines) {
  for (const Load& load : stage.loads)
    if (load.source.input >= 0 && (!counts_rows(load.coordinates[0], rows) ||
                                   (lines.inner >= 0 && !counts_rows(load.coordinates[0], lines))))
      return "reads an input by other rows";
  for (const Node& node : stage.nodes)
    if (node.kind == Node::Kind::index || node.kind == Node::Kind::guard)
      return "depends on where a row is";
  return nullptr;
}

}  // namespace

Decision match_column_sum(const StageGraph& graph, const std::vector<StageId>& joined,
                          const GemmShape& shape, StageId reduce, ColumnSum* sum) {
  const Stage& stage = graph.stage(reduce);
  auto no = [&](const char* why) {
    return Decision::no("gemm-epilogue", "{}: {}", stage.name, why);
  };
  if (is_masked(stage.instr)) return no("masked behind the last row");
  if (!starts_neutral(stage)) return no("not a plain sum of f32, a maximum or a minimum");
  const std::vector<int64_t> box = graph.stage(joined[0]).out_extents();
  sum->stage = reduce;
  sum->product.assign(stage.out.size(), -2);
  Radix rows, lines;
  bool any = false;
  for (const Load& load : stage.loads) {
    if (!load.guards.empty()) return no("reads a part");
    if (load.source.input >= 0) continue;
    any = true;
    const std::vector<Expr> at = at_product(graph, joined[0], load, stage.extents());
    for (size_t d = 0; d < at.size(); ++d) {
      const int digit = static_cast<int>(d);
      int own = -1;
      if (digit == shape.m || digit == shape.y) {
        Radix here;
        if (!match_radix(at[d], stage, box[d], &here)) return no("reduces over a part of the rows");
        Radix& known = digit == shape.m ? rows : lines;
        if (known.inner >= 0 && known.digits != here.digits) return no("reads different rows");
        known = here;
      } else if (at[d].is_digit(&own) && own < static_cast<int>(stage.out.size())) {
        sum->product[static_cast<size_t>(own)] = digit;
      } else {
        return no("reduces over columns, or over a batch");
      }
    }
  }
  if (!any || rows.inner < 0 || (shape.y >= 0 && lines.inner < 0)) return no("not over the rows");
  size_t reduced = 0;
  for (const Radix* radix : {&rows, &lines}) {
    for (const auto& [digit, factor] : radix->digits) {
      if (digit >= static_cast<int>(stage.out.size())) {
        ++reduced;
        continue;
      }
      // Must be the outermost digit, or a block's rows would not be contiguous.
      if (sum->block != 0 || digit != radix->digits.back().first)
        return no("its rows do not form blocks");
      sum->product[static_cast<size_t>(digit)] = -1;
      sum->block = factor;
    }
  }
  if (reduced != stage.red.size() ||
      std::find(sum->product.begin(), sum->product.end(), -2) != sum->product.end())
    return no("has dimensions of its own");
  if (const char* why = check_reads(stage, rows, lines)) return no(why);
  sum->row = rows.inner;
  sum->line = lines.inner;
  return Decision::yes();
}

namespace {

class SumPlacer {
 public:
  SumPlacer(StageGraph graph, StageId dot, const GemmShape& shape, const target::Target& target)
      : dot_(dot), shape_(shape), target_(target) {
    result_.graph = std::move(graph);
  }

  PlacedFusion run() {
    result_.decision = collect();
    if (result_.decision) result_.decision = choose();
    if (!result_.decision) return std::move(result_);
    if (parts_ > 1) split();
    build();
    result_.decision = cost::fits_in_code(result_.graph, gemm_row().joined, record_);
    if (!result_.decision) return std::move(result_);
    result_.placement = place_values(result_.graph, result_.schedule, target_);
    result_.decision = result_.placement.decision;
    return std::move(result_);
  }

 private:
  const Row& gemm_row() const { return std::get<Row>(result_.schedule.nodes[0]); }

  Decision collect() {
    enum class Part { other, joined, sum, behind };
    std::vector<Part> part(result_.graph.stages.size(), Part::other);
    for (size_t i = 0; i < result_.graph.stages.size(); ++i) {
      const Stage& stage = result_.graph.stages[i];
      if (StageId(i) == dot_) {
        part[i] = Part::joined;
        joined_.push_back(dot_);
        continue;
      }
      bool of_joined = false, of_sums = false, of_others = false;
      for (const Load& load : stage.loads) {
        if (load.source.input >= 0) continue;
        const Part source = part[load.source.stage.index()];
        of_joined |= source == Part::joined;
        of_sums |= source == Part::sum || source == Part::behind;
        of_others |= source == Part::other;
      }
      if (of_others || of_joined == of_sums)
        return Decision::no("gemm-epilogue", "{} does not follow the tiles of {}", stage.name,
                            result_.graph.stage(dot_).name);
      part[i] = of_sums ? Part::behind : stage.is_reduction() ? Part::sum : Part::joined;
      if (part[i] == Part::behind && stage.is_reduction())
        return Decision::no("gemm-epilogue", "{} reduces what is already reduced", stage.name);
      (part[i] == Part::behind ? behind_
       : part[i] == Part::sum  ? sums_
                               : joined_)
          .push_back(StageId(i));
    }
    std::vector<std::vector<Expr>> digits;
    if (Decision inverted = invert_epilogue(result_.graph, joined_, &digits); !inverted)
      return inverted;
    for (StageId id : sums_) {
      ColumnSum sum;
      if (Decision match = match_column_sum(result_.graph, joined_, shape_, id, &sum); !match)
        return match;
      // An out digit among the rows, before the split, is an image of a batch, whose rows form a
      // block.
      if ((sum.block != 0 && shape_.y >= 0) || (id != sums_[0] && sum.block != image_))
        return Decision::no("gemm-epilogue", "{}: reduces over a part of the rows",
                            result_.graph.stage(id).name);
      image_ = sum.block;
    }
    return Decision::yes();
  }

  // Chooses blocks with equal numbers of rows (or lines, if there are any).
  Decision choose() {
    const Stage& stage = result_.graph.stage(dot_);
    const Load& a = stage.loads[static_cast<size_t>(shape_.a_load)];
    const int64_t a_bytes = result_.graph.inputs[static_cast<size_t>(a.source.input)].shape.bytes();
    const target::Target plain = without_tiles(target_);
    const auto choose_for = [&](const target::Target& target) {
      return choose_gemm(shape_, stage, a_bytes, target, find_product(shape_, stage, target));
    };
    record_ = choose_for(target_);
    // Fragments need blocks of whole tiles and no lines, but this function chooses the rows of a
    // block.
    if (record_.tile) record_ = choose_for(without_tiles(target_));
    record_.panels = 0;
    record_.shared = 1;
    record_.kc = shape_.k_extent;
    // Tiles of several lines have different blocks at the edges: only one block of all lines will
    // do.
    if (record_.my > 1 && record_.y_block < shape_.y_extent)
      return Decision::no("gemm-epilogue", "{}: blocks of unequal lines", stage.name);
    const bool lines = shape_.y >= 0;
    const int64_t extent = lines ? shape_.y_extent : shape_.m_extent;
    const int64_t unit = lines ? shape_.m_extent : 1;
    const int64_t wanted = std::min(extent, lines ? record_.y_block : record_.m_block);
    // The first red digit, the outermost of the rows, is divided; it must be equal for all sums.
    int64_t divided = 0;
    for (StageId id : sums_) {
      const int64_t outer = result_.graph.stage(id).red[0].extent;
      divided = divided == 0 || divided == outer ? outer : 1;
    }
    if (image_ > 0) divided = 1;
    parts_ = (extent + wanted - 1) / wanted;
    while (parts_ <= divided && (divided % parts_ != 0 || extent % parts_ != 0)) ++parts_;
    // No divisor nearby: all rows in one block, if that leaves enough tasks or the block is small.
    if (parts_ > divided || 2 * (extent / parts_) < wanted) parts_ = 1;
    const int64_t block = image_ > 0 ? image_ : extent / parts_;
    const int64_t width = int64_t{record_.nv} * record_.lanes;
    int64_t tasks = extent / block * ((shape_.n_extent + width - 1) / width);
    for (int d : shape_.batch) tasks *= stage.out[static_cast<size_t>(d)].extent;
    const bool alone = block > wanted;
    if (alone && (block * unit > kMostRows || (block * unit > 512 && tasks < 4 * target_.cores)))
      return Decision::no("gemm-epilogue", "{} rows have no divisor near {}", extent * unit,
                          wanted * unit);
    if (image_ > 0) share_panels();
    (lines ? record_.y_block : record_.m_block) = block;
    if (lines) record_.m_block = shape_.m_extent;
    for (StageId id : behind_)
      if (result_.graph.stage(id).out_elems() > kMostSums || result_.graph.stage(id).out.empty())
        return Decision::no("gemm-epilogue", "{}: too much for one task after the sums",
                            result_.graph.stage(id).name);
    for (StageId id : sums_)
      if (result_.graph.stage(id).out_elems() * parts_ > kMostSums)
        return Decision::no("gemm-epilogue", "{}: {} partial sums for one task",
                            result_.graph.stage(id).name,
                            result_.graph.stage(id).out_elems() * parts_);
    return fits_family(record_, shape_, stage);
  }

  // Neighbouring tasks share a panel of B rather than their rows of A if B is too large for the
  // second cache.
  void share_panels() {
    const int64_t second = target_.second_cache_bytes();
    record_.panels_first = shape_.k_extent * shape_.n_extent * 4 > second / 2;
  }

  void split() {
    for (size_t i = sums_.size(); i-- > 0;) {
      result_.graph = split_reduction(result_.graph, sums_[i], parts_);
      const size_t at = sums_[i].index();
      for (std::vector<StageId>* list : {&joined_, &sums_, &behind_})
        for (StageId& id : *list)
          if (id.index() > at) id = StageId(id.index() + 1);
      behind_.push_back(StageId(at + 1));
    }
    std::sort(behind_.begin(), behind_.end(),
              [](StageId a, StageId b) { return a.index() < b.index(); });
  }

  void build() {
    Schedule& schedule = result_.schedule;
    schedule.name = result_.graph.name;
    schedule.target = target_.name;
    Row row;
    row.joined = joined_;
    row.joined.insert(row.joined.end(), sums_.begin(), sums_.end());
    GemmTile tile{record_, shape_, {}};
    for (StageId id : sums_) {
      tile.sums.emplace_back();
      const Decision match =
          match_column_sum(result_.graph, joined_, shape_, id, &tile.sums.back());
      HEDDLE_CHECK(static_cast<bool>(match), "{}", match.reason());
    }
    row.kind = std::move(tile);
    schedule.nodes.emplace_back(std::move(row));
    schedule.phases.push_back({Group{{0}, record_.lanes}});
    if (behind_.empty()) return;
    Group last;
    last.lanes = target_.lanes(Type::f32);
    for (StageId id : behind_) {
      const Stage& stage = result_.graph.stage(id);
      Row one{{id}, {}, {}};
      const int out = static_cast<int>(stage.out.size());
      for (int d = 0; d < out + static_cast<int>(stage.red.size()); ++d)
        if (d != out - 1) one.own.push_back({LoopKind::serial, {d}, 1});
      one.own.push_back({LoopKind::vector, {out - 1}, last.lanes});
      last.body.push_back(static_cast<int>(schedule.nodes.size()));
      schedule.nodes.emplace_back(std::move(one));
    }
    schedule.phases.push_back({last});
  }

  const StageId dot_;
  const GemmShape& shape_;
  const target::Target& target_;
  PlacedFusion result_;
  Gemm record_;
  int64_t parts_ = 1;
  int64_t image_ = 0;  // rows per image if each image has its sums, else 0
  std::vector<StageId> joined_, sums_, behind_;
};

}  // namespace

bool column_sums_applies(const Problem& problem, const PlacedFusion&) {
  return problem.product() && problem.product()->match.decision &&
         problem.product()->match.shape.m >= 0 && problem.has(hlo::StageKind::reduce);
}

PlacedFusion place_column_sums(const Problem& problem) {
  const Problem::Product& product = *problem.product();
  return SumPlacer(problem.graph, product.stage, product.match.shape, problem.target).run();
}

}  // namespace heddle::schedule
