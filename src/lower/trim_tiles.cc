#include "lower/trim_tiles.h"

#include <algorithm>
#include <map>
#include <optional>

#include "kernel/rewriter.h"
#include "lower/trim_parts.h"

namespace heddle::lower::trimming {
namespace {

using kernel::BufferId, kernel::Expr, kernel::ExprId, kernel::Kernel, kernel::LoopKind, kernel::Op;
using kernel::Rewriter, kernel::Space, kernel::Stmt, kernel::StmtKind, kernel::Type, kernel::VarId;

// The back end takes 32,768 instructions a phase; of all bodies of one loop, by a rough count.
constexpr int64_t kMostCode = 12288;

class Balancer {
 public:
  Balancer(Kernel* kernel, const Tiles& tiles)
      : k_(*kernel),
        tiles_(tiles),
        tile_(tiles.loop->var),
        count_(kernel->expr(tiles.loop->extent).imm) {}

  std::vector<Stmt> run() {
    for (const Stmt& stmt : tiles_.loop->body)
      if (!knows_rows(stmt)) return {};
    if (!choose_heights(0) && !choose_heights(1)) return {};
    std::vector<Stmt> result;
    auto let = [&](const char* name, ExprId value, std::vector<Stmt>* block) {
      const VarId var = k_.add_var(name);
      block->push_back(make_let(var, value));
      return k_.ref(var);
    };
    auto at_least = [&](ExprId x, int64_t least) {
      return k_.binary(Op::max, x, k_.constant(least));
    };
    auto divided = [&](ExprId x, ExprId by) { return k_.binary(Op::floor_div, x, by); };
    const ExprId all = k_.binary(Op::min, tiles_.left, k_.constant(count_ * tiles_.rows));
    const ExprId rows = let("rows", at_least(all, 0), &result);
    const ExprId more = k_.binary(Op::add, rows, k_.constant(tiles_.rows - 1));
    const ExprId count = let("tiles", divided(more, k_.constant(tiles_.rows)), &result);
    const ExprId some = at_least(count, 1);
    const ExprId low = let("low", divided(rows, some), &result);
    const ExprId tall =
        let("tall", k_.binary(Op::sub, rows, k_.binary(Op::mul, low, count)), &result);
    find_fetched(tiles_.loop->body);
    for (auto& [parts, of] : fetched_)
      of.share =
          let("share", divided(k_.binary(Op::add, some, k_.constant(parts - 1)), some), &result);
    std::vector<Stmt> body;
    const ExprId tile = k_.ref(tile_), below = k_.binary(Op::mul, tile, low);
    start_ = let("start", k_.binary(Op::add, below, k_.binary(Op::min, tile, tall)), &body);
    const ExprId taller =
        k_.binary(Op::min, at_least(k_.binary(Op::sub, tall, tile), 0), k_.constant(1));
    const ExprId height = let("height", k_.binary(Op::add, low, taller), &body);
    for (auto& [parts, of] : fetched_) {
      of.first = k_.binary(Op::mul, tile, of.share);
      const ExprId left = k_.binary(Op::sub, k_.constant(parts), of.first);
      of.count = let("fetched", at_least(k_.binary(Op::min, of.share, left), 0), &body);
    }
    std::vector<Stmt>* last = &body;
    for (auto at = heights_.rbegin(); at != heights_.rend(); ++at) {
      std::vector<Stmt> one = of_height(*at);
      if (std::next(at) == heights_.rend()) {
        std::move(one.begin(), one.end(), std::back_inserter(*last));
        break;
      }
      const ExprId fits_less = k_.constant(*std::next(at));
      last->push_back(make_if(k_.compare(Op::gt, height, fits_less), std::move(one)));
      last = &last->back().otherwise;
    }
    result.push_back(make_loop(LoopKind::serial, tile_, count, std::move(body)));
    return result;
  }

 private:
  // --- how the body uses the variable ----------------------------------------------------------

  // A factor of the loop's variable that is one of rows; none: it is something else.
  std::optional<int64_t> rows_factor(const Expr& expr) const {
    if (expr.op != Op::mul) return std::nullopt;
    for (int side = 0; side < 2; ++side) {
      const Expr &var = k_.expr(expr.operands[side]), &factor = k_.expr(expr.operands[1 - side]);
      if (var.op == Op::var && var.var == tile_ && factor.op == Op::constant &&
          factor.imm % tiles_.rows == 0)
        return factor.imm / tiles_.rows;
    }
    return std::nullopt;
  }

  // Where scratch or fetched lines are numbered by tiles, any number will do.
  bool knows_rows(ExprId id, bool by_tiles) {
    if (!id.valid() || !known_.insert(std::pair(id.value, by_tiles)).second) return true;
    const Expr& expr = k_.expr(id);
    if (expr.op == Op::var) return expr.var != tile_ || by_tiles;
    if (rows_factor(expr)) return true;
    if (expr.op == Op::load) by_tiles = is_scratch(expr.buffer);
    return std::all_of(expr.operands.begin(), expr.operands.end(),
                       [&](ExprId operand) { return knows_rows(operand, by_tiles); });
  }

  bool knows_rows(const Stmt& stmt) {
    if (stmt.kind == StmtKind::branch && shared_parts(stmt) > 0) return true;
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
  // rows, by a quarter or by `more`. False: too much code.
  bool choose_heights(int64_t more) {
    heights_.clear();
    const int64_t most = count_ * tiles_.rows;
    std::set<int64_t> alone;
    for (int64_t rows = std::clamp<int64_t>(tiles_.least, 1, most); rows <= most; ++rows) {
      if (rows % tiles_.granule != 0 && rows != most) continue;
      const int64_t count = (rows + tiles_.rows - 1) / tiles_.rows, low = rows / count;
      if (count == 1) {
        alone.insert(rows);
        continue;
      }
      heights_.insert(low);
      if (rows % count != 0) heights_.insert(low + 1);
    }
    if (!alone.empty() && heights_.empty()) heights_.insert(*alone.rbegin());
    for (auto at = alone.rbegin(); at != alone.rend(); ++at) {
      const auto taller = heights_.lower_bound(*at);
      if (taller == heights_.end() || *taller > *at + std::max(more, *at / 4)) heights_.insert(*at);
    }
    int64_t written = 0;
    for (int64_t height : heights_) written += height;
    return code_of(tiles_.loop->body) * written / tiles_.rows <= kMostCode;
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

  std::vector<Stmt> of_height(int64_t height) {
    Rewriter copy(&k_);
    copy.fresh = true;
    copy.instead = [&](ExprId, const Expr& expr) -> std::optional<ExprId> {
      const auto factor = rows_factor(expr);
      if (!factor) return std::nullopt;
      return k_.binary(Op::mul, start_, k_.constant(*factor));
    };
    copy.statement = [&](const Stmt& from, Stmt made, std::vector<Stmt>* to) {
      if (from.kind == StmtKind::loop && tiles_.written_out.count(from.var.value) > 0)
        made.extent = k_.constant(height);
      to->push_back(std::move(made));
    };
    std::vector<Stmt> result = copy.block(tiles_.loop->body);
    fetch_for_all(tiles_.loop->body, &copy, &result);
    return result;
  }

  // Into how many parts something else than rows is divided, of which each tile fetches one: all
  // tiles, or the first ones. 0: `stmt` fetches no such part.
  int64_t shared_parts(const Stmt& stmt) const {
    if (stmt.kind == StmtKind::prefetch)
      return !tiles_.has_rows(stmt.buffer) && mentions(k_, stmt.indices.at(0), tile_) ? count_ : 0;
    if (stmt.kind != StmtKind::branch || !stmt.otherwise.empty()) return 0;
    const Expr& test = k_.expr(stmt.value);
    if (test.op != Op::lt) return 0;
    const Expr &tile = k_.expr(test.operands[0]), &most = k_.expr(test.operands[1]);
    const bool is_first = tile.op == Op::var && tile.var == tile_ && most.op == Op::constant &&
                          std::all_of(stmt.body.begin(), stmt.body.end(), [&](const Stmt& inner) {
                            return inner.kind == StmtKind::prefetch && shared_parts(inner) > 0;
                          });
    return is_first ? std::clamp<int64_t>(most.imm, 0, count_) : 0;
  }

  void find_fetched(const std::vector<Stmt>& body) {
    for (const Stmt& stmt : body) {
      if (const int64_t parts = shared_parts(stmt); parts > 0) {
        fetched_.try_emplace(parts);
        continue;
      }
      find_fetched(stmt.body);
      find_fetched(stmt.otherwise);
    }
  }

  // Each tile fetches the parts of several, so that all parts are fetched. Written out: a loop
  // there would keep sums out of registers. Nested: where each fetches one, one test is made.
  void fetch_for_all(const std::vector<Stmt>& from, Rewriter* copy, std::vector<Stmt>* made) {
    std::vector<Stmt> result;
    for (size_t i = 0; i < from.size(); ++i) {
      const int64_t parts = shared_parts(from[i]);
      if (parts == 0) {
        fetch_for_all(from[i].body, copy, &(*made)[i].body);
        fetch_for_all(from[i].otherwise, copy, &(*made)[i].otherwise);
        result.push_back(std::move((*made)[i]));
        continue;
      }
      const Fetched& of = fetched_.at(parts);
      const bool is_plain = from[i].kind == StmtKind::prefetch;
      std::vector<Stmt> fetches;  // of this part and of those behind it
      for (int64_t part = most_fetched(parts); part-- > 0;) {
        const ExprId number = k_.binary(Op::add, of.first, k_.constant(part));
        std::vector<Stmt> here;
        if (is_plain) here.push_back(fetch_of((*made)[i], from[i], number, copy));
        for (size_t j = 0; j < from[i].body.size(); ++j)
          here.push_back(fetch_of((*made)[i].body[j], from[i].body[j], number, copy));
        std::move(fetches.begin(), fetches.end(), std::back_inserter(here));
        fetches.clear();
        const ExprId is_left = k_.compare(Op::gt, of.count, k_.constant(part));
        fetches.push_back(make_if(is_left, std::move(here)));
      }
      result.push_back(std::move(fetches.front()));
    }
    *made = std::move(result);
  }

  int64_t most_fetched(int64_t parts) const {
    const int64_t least = std::clamp<int64_t>(tiles_.least, 1, count_ * tiles_.rows);
    const int64_t fewest = (least + tiles_.rows - 1) / tiles_.rows;
    return (parts + fewest - 1) / fewest;
  }

  // The part of tile `number`.
  Stmt fetch_of(Stmt stmt, const Stmt& from, ExprId number, Rewriter* copy) {
    Rewriter index(&k_);
    index.instead = [&](ExprId, const Expr& expr) -> std::optional<ExprId> {
      if (expr.op != Op::var) return std::nullopt;
      return expr.var == tile_ ? number : k_.ref(copy->var(expr.var));
    };
    for (size_t j = 0; j < stmt.indices.size(); ++j) stmt.indices[j] = index.expr(from.indices[j]);
    return stmt;
  }

  Kernel& k_;
  const Tiles& tiles_;
  const VarId tile_;
  const int64_t count_;
  std::set<std::pair<uint32_t, bool>> known_;
  std::set<int64_t> heights_;
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
