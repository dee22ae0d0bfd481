#include "lower/trim_tiles.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "kernel/linear.h"
#include "kernel/rewriter.h"
#include "lower/trim_parts.h"
#include "lower/trim_products.h"

namespace heddle::lower::trimming {
namespace {

using kernel::BufferId, kernel::Expr, kernel::ExprId, kernel::Kernel, kernel::LoopKind, kernel::Op;
using kernel::Rewriter, kernel::Space, kernel::Stmt, kernel::StmtKind, kernel::Type, kernel::VarId;

// The back end takes 32,768 instructions a phase; of all bodies of one loop, by a rough count.
constexpr int64_t kMostCode = 12288;

class Balancer {
 public:
  Balancer(Kernel* kernel, const Tiles& tiles)
      : k_(*kernel), tiles_(tiles), first_(tiles.first), each_(tiles.each) {
    rows_ = has_first() && has_others() ? std::min(first_.rows, each_.rows)
                                        : std::max(first_.rows, each_.rows);
    more_ = first_.rows > rows_ ? 1 : 0;
    if (has_others()) count_ = k_.expr(each_.loop->extent).imm;
    number_ = has_others() && !tiles.stay ? each_.loop->var : k_.add_var("tile");
  }

  std::vector<Stmt> run() {
    if (!can_be_balanced()) return {};
    std::vector<Stmt> result;
    auto let = [&](const char* name, ExprId value, std::vector<Stmt>* block) {
      const VarId var = k_.add_var(name);
      block->push_back(make_let(var, value));
      return k_.ref(var);
    };
    auto divided = [&](ExprId x, ExprId by) { return k_.binary(Op::floor_div, x, by); };
    const ExprId all = k_.binary(Op::min, tiles_.left, k_.constant(tiles_.most));
    const ExprId rows = let("rows", at_least(all, 0), &result);
    const ExprId more = k_.binary(Op::add, rows, k_.constant(rows_ - 1 - more_));
    ExprId number = divided(more, k_.constant(rows_));
    if (more_ > 0) number = k_.binary(Op::max, number, k_.binary(Op::min, rows, k_.constant(1)));
    const ExprId count = let("tiles", number, &result);
    const ExprId some = at_least(count, 1);
    const ExprId low = let("low", divided(rows, some), &result);
    const ExprId tall =
        let("tall", k_.binary(Op::sub, rows, k_.binary(Op::mul, low, count)), &result);
    if (has_first()) find_fetched(first_);
    if (has_others()) find_fetched(each_);
    for (auto& [parts, of] : fetched_)
      of.share =
          let("share", divided(k_.binary(Op::add, some, k_.constant(parts - 1)), some), &result);
    std::vector<Stmt> body;
    const ExprId tile = k_.ref(number_), below = k_.binary(Op::mul, tile, low);
    start_ = let("start", k_.binary(Op::add, below, k_.binary(Op::min, tile, tall)), &body);
    const ExprId taller =
        k_.binary(Op::min, at_least(k_.binary(Op::sub, tall, tile), 0), k_.constant(1));
    const ExprId height = let("height", k_.binary(Op::add, low, taller), &body);
    for (auto& [parts, of] : fetched_) {
      of.first = k_.binary(Op::mul, tile, of.share);
      const ExprId left = k_.binary(Op::sub, k_.constant(parts), of.first);
      of.count = let("fetched", at_least(k_.binary(Op::min, of.share, left), 0), &body);
    }
    if (has_first()) {  // rows of the others are counted from those behind it
      start_ = k_.binary(Op::sub, start_, k_.constant(first_.rows));
      std::vector<Stmt> one = by_height(first_, first_heights_, height);
      std::vector<Stmt> others = by_height(each_, heights_, height);
      if (has_others())
        one = {
            make_if(k_.compare(Op::lt, tile, k_.constant(1)), std::move(one), std::move(others))};
      append(std::move(one), &body);
    } else {
      append(by_height(each_, heights_, height), &body);
    }
    result.push_back(make_loop(LoopKind::serial, number_, count, std::move(body)));
    if (tiles_.left_with_beyond.valid()) {
      const VarId row = k_.add_var("beyond");
      start_ = k_.binary(Op::add, rows, k_.ref(row));
      if (has_first()) start_ = k_.binary(Op::sub, start_, k_.constant(first_.rows));
      const ExprId beyond = at_least(k_.binary(Op::sub, tiles_.left_with_beyond, rows), 0);
      result.push_back(
          make_loop(LoopKind::serial, row, beyond, without_products(k_, of_height(each_, 1))));
    }
    return result;
  }

 private:
  bool has_first() const { return first_.loop != nullptr; }
  bool has_others() const { return each_.loop != nullptr; }
  VarId tile() const { return each_.loop->var; }

  ExprId at_least(ExprId x, int64_t least) { return k_.binary(Op::max, x, k_.constant(least)); }

  static void append(std::vector<Stmt> from, std::vector<Stmt>* to) {
    std::move(from.begin(), from.end(), std::back_inserter(*to));
  }

  // --- how the body uses the variable ----------------------------------------------------------

  bool can_be_balanced() {
    if (has_others() && !std::all_of(each_.loop->body.begin(), each_.loop->body.end(),
                                     [&](const Stmt& stmt) { return knows_rows(stmt); }))
      return false;
    return choose_heights(tiles_.taller) || choose_heights(tiles_.taller + 1);
  }

  // A factor of the loop's variable that is one of rows; none: it is something else.
  std::optional<int64_t> rows_factor(const Expr& expr) const {
    if (expr.op != Op::mul) return std::nullopt;
    for (int side = 0; side < 2; ++side) {
      const Expr &var = k_.expr(expr.operands[side]), &factor = k_.expr(expr.operands[1 - side]);
      if (var.op == Op::var && var.var == tile() && factor.op == Op::constant &&
          factor.imm % each_.rows == 0)
        return factor.imm / each_.rows;
    }
    return std::nullopt;
  }

  // Where scratch or fetched lines are numbered by tiles, any number will do.
  bool knows_rows(ExprId id, bool by_tiles) {
    if (!id.valid() || !known_.insert(std::pair(id.value, by_tiles)).second) return true;
    const Expr& expr = k_.expr(id);
    if (expr.op == Op::var) return expr.var != tile() || by_tiles;
    if (rows_factor(expr)) return true;
    if (expr.op == Op::load) by_tiles = is_scratch(expr.buffer);
    return std::all_of(expr.operands.begin(), expr.operands.end(),
                       [&](ExprId operand) { return knows_rows(operand, by_tiles); });
  }

  bool knows_rows(const Stmt& stmt) {
    if (stmt.kind == StmtKind::branch && shared_parts(stmt, each_).parts > 0) return true;
    const bool by_tiles = stmt.kind == StmtKind::prefetch ||
                          (stmt.kind == StmtKind::store && is_scratch(stmt.buffer));
    auto known = [&](ExprId id) { return knows_rows(id, by_tiles); };
    auto inside = [&](const Stmt& inner) { return knows_rows(inner); };
    return std::all_of(stmt.indices.begin(), stmt.indices.end(), known) &&
           knows_rows(stmt.extent, false) && knows_rows(stmt.value, false) &&
           knows_rows(stmt.mask, false) &&
           std::all_of(stmt.body.begin(), stmt.body.end(), inside) &&
           std::all_of(stmt.otherwise.begin(), stmt.otherwise.end(), inside);
  }

  bool is_scratch(BufferId buffer) const { return k_.buffer(buffer).space == Space::scratch; }

  // --- which heights there are -----------------------------------------------------------------

  // All that several tiles have, which lie side by side; one tile alone may be taller than its
  // rows, by a quarter or by `more`. False: too much code, or a tile behind the first would have
  // rows that only the first one can.
  bool choose_heights(int64_t more) {
    heights_.clear();
    first_heights_.clear();
    std::set<int64_t> alone;
    for (int64_t rows = std::clamp<int64_t>(tiles_.least, 1, tiles_.most); rows <= tiles_.most;
         ++rows) {
      if (rows % tiles_.granule != 0 && rows != tiles_.most) continue;
      const int64_t count = std::max<int64_t>(1, (rows - more_ + rows_ - 1) / rows_);
      const int64_t low = rows / count, tall = rows % count;
      if (count == 1) {
        alone.insert(rows);
        continue;
      }
      if (has_first()) first_heights_.insert(low + std::min<int64_t>(tall, 1));
      heights_.insert(low);
      if (tall > (has_first() ? 1 : 0)) heights_.insert(low + 1);
    }
    if (has_first() && !first_heights_.empty() && *first_heights_.begin() < tiles_.edge)
      return false;
    std::set<int64_t>& heights = has_first() ? first_heights_ : heights_;
    if (!alone.empty() && heights.empty()) heights.insert(*alone.rbegin());
    for (auto at = alone.rbegin(); at != alone.rend(); ++at) {
      const auto taller = heights.lower_bound(*at);
      if (taller == heights.end() || *taller > *at + std::max(more, *at / 4)) heights.insert(*at);
    }
    return code_of(each_, heights_) + code_of(first_, first_heights_) <= kMostCode;
  }

  int64_t code_of(const Tile& tile, const std::set<int64_t>& heights) const {
    if (tile.loop == nullptr) return 0;
    const int64_t written = std::accumulate(heights.begin(), heights.end(), int64_t{0});
    return code_of(tile.loop->body) * written / tile.rows;
  }

  // Vector instructions, roughly.
  int64_t code_of(const std::vector<Stmt>& body) const {
    int64_t total = 0;
    for (const Stmt& stmt : body) {
      for (ExprId id : expressions(stmt)) {
        std::set<uint32_t> seen;
        total += code_of(id, &seen);
      }
      int64_t times = 1;
      if (stmt.kind == StmtKind::loop && k_.expr(stmt.extent).op == Op::constant) {
        const int64_t extent = k_.expr(stmt.extent).imm;
        if (stmt.loop == LoopKind::unrolled) times = extent;
        if (stmt.loop == LoopKind::vector) times = (extent + stmt.lanes - 1) / stmt.lanes;
      }
      total += times * (code_of(stmt.body) + code_of(stmt.otherwise));
    }
    return total;
  }

  int64_t code_of(ExprId id, std::set<uint32_t>* seen) const {
    if (!id.valid() || !seen->insert(id.value).second) return 0;
    const Expr& expr = k_.expr(id);
    if (expr.type == Type::s64) return 0;  // indices
    int64_t total = 0;
    switch (expr.op) {
      case Op::constant:
      case Op::var:
        break;
      case Op::load:
      case Op::add:
      case Op::sub:
      case Op::mul:
      case Op::fma:
      case Op::dot:
      case Op::max:
      case Op::min:
      case Op::select:
        total = 1;
        break;
      default:
        total = op_operands(expr.op) == 1 ? 24 : 8;
    }
    for (ExprId operand : expr.operands) total += code_of(operand, seen);
    return total;
  }

  // --- a body of so many rows ------------------------------------------------------------------

  // The body of the height that there is.
  std::vector<Stmt> by_height(const Tile& tile, const std::set<int64_t>& heights, ExprId height) {
    if (tile.loop == nullptr) return {};
    std::vector<Stmt> result;
    std::vector<Stmt>* last = &result;
    for (auto at = heights.rbegin(); at != heights.rend(); ++at) {
      std::vector<Stmt> one = of_height(tile, *at);
      if (std::next(at) == heights.rend()) {
        append(std::move(one), last);
        break;
      }
      const ExprId fits_less = k_.constant(*std::next(at));
      last->push_back(make_if(k_.compare(Op::gt, height, fits_less), std::move(one)));
      last = &last->back().otherwise;
    }
    return result;
  }

  std::vector<Stmt> of_height(const Tile& tile, int64_t height) {
    Rewriter copy(&k_);
    copy.fresh = true;
    if (&tile == &first_)
      copy.replace(tile.loop->var, k_.constant(0));
    else if (number_ != tile.loop->var)
      copy.replace(tile.loop->var, k_.ref(number_));
    copy.instead = [&](ExprId, const Expr& expr) -> std::optional<ExprId> {
      const auto factor = &tile == &first_ ? std::nullopt : rows_factor(expr);
      if (!factor) return std::nullopt;
      return k_.binary(Op::mul, start_, k_.constant(*factor));
    };
    copy.statement = [&](const Stmt& from, Stmt made, std::vector<Stmt>* to) {
      if (from.kind == StmtKind::loop) {
        const auto rows = tile.written_out.find(from.var.value);
        if (rows != tile.written_out.end()) {
          const int64_t all = k_.expr(from.extent).imm;
          made.extent = k_.constant(std::clamp<int64_t>(height - rows->second, 0, all));
        }
      }
      to->push_back(std::move(made));
    };
    std::vector<Stmt> result = copy.block(tile.loop->body);
    fetch_for_all(tile, tile.loop->body, &copy, &result);
    return result;
  }

  // Something else than rows, divided into parts of which each tile fetches one: all tiles, or the
  // first ones.
  struct Shared {
    int64_t parts = 0;   // 0: there is no such thing
    int64_t before = 0;  // tiles in front of those of the loop
    ExprId elsewhere;    // above 0 where nothing is left to fetch; invalid: it never is
  };

  Shared shared_parts(const Stmt& stmt, const Tile& tile) {
    const VarId var = tile.loop->var;
    if (stmt.kind == StmtKind::prefetch) {
      const bool is_shared =
          !has_first() && !tiles_.has_rows(stmt.buffer) && mentions(k_, stmt.indices.at(0), var);
      return {is_shared ? count_ : 0, 0, {}};
    }
    if (stmt.kind != StmtKind::branch || !stmt.otherwise.empty()) return {};
    const Expr test = k_.expr(stmt.value);
    if (test.op != Op::lt || k_.expr(test.operands[1]).op != Op::constant) return {};
    const auto fetches = [&](const Stmt& inner) {
      return inner.kind == StmtKind::prefetch && !tiles_.has_rows(inner.buffer) &&
             mentions(k_, inner.indices.at(0), var);
    };
    if (!std::all_of(stmt.body.begin(), stmt.body.end(), fetches)) return {};
    const kernel::Linear number = kernel::linear(k_, test.operands[0]);
    if (number.factor(var) != 1 || !number.is_of_variables()) return {};
    Shared result{k_.expr(test.operands[1]).imm, number.constant, {}};
    if (number.terms.size() > 1) {  // of all lines: the first one fetches all
      const ExprId of_line = k_.binary(Op::sub, test.operands[0], k_.ref(var));
      result.elsewhere = k_.binary(Op::sub, of_line, k_.constant(number.constant));
    }
    if (has_first()) return result;
    if (number.terms.size() > 1 || number.constant != 0) return {};
    result.parts = std::clamp<int64_t>(result.parts, 0, count_);
    return result;
  }

  void find_fetched(const Tile& tile) { find_fetched(tile, tile.loop->body); }

  void find_fetched(const Tile& tile, const std::vector<Stmt>& body) {
    for (const Stmt& stmt : body) {
      if (const int64_t parts = shared_parts(stmt, tile).parts; parts > 0) {
        fetched_.try_emplace(parts);
        continue;
      }
      find_fetched(tile, stmt.body);
      find_fetched(tile, stmt.otherwise);
    }
  }

  // Each tile fetches the parts of several, so that all parts are fetched. Written out: a loop
  // there would keep sums out of registers. Nested: where each fetches one, one test is made.
  void fetch_for_all(const Tile& tile, const std::vector<Stmt>& from, Rewriter* copy,
                     std::vector<Stmt>* made) {
    std::vector<Stmt> result;
    for (size_t i = 0; i < from.size(); ++i) {
      const Stmt& stmt = from[i];
      Stmt& copied = (*made)[i];
      const Shared shared = shared_parts(stmt, tile);
      if (shared.parts == 0) {
        fetch_for_all(tile, stmt.body, copy, &copied.body);
        fetch_for_all(tile, stmt.otherwise, copy, &copied.otherwise);
        result.push_back(std::move(copied));
        continue;
      }
      const Fetched& of = fetched_.at(shared.parts);
      const bool is_plain = stmt.kind == StmtKind::prefetch;
      std::vector<Stmt> fetches;  // of this part and of those behind it
      for (int64_t part = most_fetched(shared.parts); part-- > 0;) {
        const ExprId number = k_.binary(Op::add, of.first, k_.constant(part - shared.before));
        std::vector<Stmt> here;
        if (is_plain) here.push_back(fetch_of(copied, stmt, tile, number, copy));
        for (size_t j = 0; j < stmt.body.size(); ++j)
          here.push_back(fetch_of(copied.body[j], stmt.body[j], tile, number, copy));
        append(std::move(fetches), &here);
        fetches.clear();
        const ExprId is_left = k_.compare(Op::gt, of.count, k_.constant(part));
        fetches.push_back(make_if(is_left, std::move(here)));
      }
      if (shared.elsewhere.valid())
        fetches = {make_if(k_.compare(Op::lt, copy->expr(shared.elsewhere), k_.constant(1)),
                           std::move(fetches))};
      result.push_back(std::move(fetches.front()));
    }
    *made = std::move(result);
  }

  int64_t most_fetched(int64_t parts) const {
    const int64_t least = std::clamp<int64_t>(tiles_.least, 1, tiles_.most);
    const int64_t fewest = (least + rows_ - 1) / rows_;
    return (parts + fewest - 1) / fewest;
  }

  // The part of tile `number`.
  Stmt fetch_of(Stmt stmt, const Stmt& from, const Tile& tile, ExprId number, Rewriter* copy) {
    Rewriter index(&k_);
    index.instead = [&](ExprId, const Expr& expr) -> std::optional<ExprId> {
      if (expr.op != Op::var) return std::nullopt;
      return expr.var == tile.loop->var ? number : k_.ref(copy->var(expr.var));
    };
    for (size_t j = 0; j < stmt.indices.size(); ++j) stmt.indices[j] = index.expr(from.indices[j]);
    return stmt;
  }

  Kernel& k_;
  const Tiles& tiles_;
  const Tile &first_, &each_;
  int64_t rows_ = 1;   // of a tile, at most; the first one may have one more
  int64_t more_ = 0;   // 1: it does
  VarId number_;       // of the tile
  int64_t count_ = 0;  // of tiles behind the first, at the bound
  std::set<std::pair<uint32_t, bool>> known_;
  std::set<int64_t> first_heights_, heights_;
  struct Fetched {
    ExprId share;         // of a tile, at most
    ExprId first, count;  // of this tile
  };
  std::map<int64_t, Fetched> fetched_;  // by the number of parts
  ExprId start_;
};

}  // namespace

void find_variables(const std::vector<Stmt>& body, std::set<uint32_t>* found) {
  for (const Stmt& stmt : body) {
    if (stmt.var.valid()) found->insert(stmt.var.value);
    find_variables(stmt.body, found);
    find_variables(stmt.otherwise, found);
  }
}

std::vector<Stmt> balance(Kernel* kernel, const Tiles& tiles) {
  return Balancer(kernel, tiles).run();
}

}  // namespace heddle::lower::trimming
