#include "lower/trim_lines.h"

#include <algorithm>
#include <set>

#include "kernel/linear.h"

namespace heddle::lower::trimming {
namespace {

using kernel::Expr, kernel::ExprId, kernel::Op, kernel::Space, kernel::Stmt, kernel::StmtKind;

// What is loaded in some body, and what is stored into registers: the buffer and its indices.
using Visitor = std::function<void(BufferId, const std::vector<ExprId>&)>;

class Touches {
 public:
  Touches(const Kernel& kernel, Visitor visit) : k_(kernel), visit_(std::move(visit)) {}

  void block(const std::vector<Stmt>& body) {
    for (const Stmt& stmt : body) {
      if (stmt.kind == StmtKind::store && k_.buffer(stmt.buffer).space == Space::reg)
        visit_(stmt.buffer, stmt.indices);
      for (ExprId id : expressions(stmt)) expr(id);
      block(stmt.body);
      block(stmt.otherwise);
    }
  }

 private:
  void expr(ExprId id) {
    if (!id.valid() || !seen_.insert(id.value).second) return;
    const Expr& expr_ = k_.expr(id);
    const std::vector<ExprId> operands(expr_.operands.begin(), expr_.operands.end());
    if (expr_.op == Op::load) visit_(expr_.buffer, operands);
    for (ExprId operand : operands) expr(operand);
  }

  const Kernel& k_;
  Visitor visit_;
  std::set<uint32_t> seen_;
};

class TileFinder {
 public:
  TileFinder(const Kernel& kernel, const std::vector<Variable>& variables, const Stmt& loop)
      : k_(kernel), variables_(variables), loop_(loop) {
    find_variables(loop.body, &inside_);
  }

  std::optional<Tile> run() {
    const Fact& fact = *variables_[loop_.var.index()].fact;
    tile_ = {&loop_, fact.factor, {}};
    for (const uint32_t var : inside_) {
      if (var >= variables_.size()) continue;  // of fewer rows further in
      const Variable& inner = variables_[var];
      if (!inner.fact || inner.fact->group != fact.group ||
          inner.fact->base.count(loop_.var.value) == 0)
        continue;
      const Fact& own = *inner.fact;
      if (inner.kind != LoopKind::unrolled || inner.extent != tile_.rows || own.factor != 1 ||
          own.scale != 1 || own.low != own.high || own.low != fact.low)
        return std::nullopt;
      tile_.written_out.emplace(var, 0);
    }
    if (tile_.written_out.empty()) return std::nullopt;
    return tile_;
  }

  // By the rows of registers: loops in which no array has the dimension of the rows.
  std::optional<Tile> run_windows() {
    if (!run()) return std::nullopt;
    Touches(k_, [&](BufferId buffer, const std::vector<ExprId>& indices) {
      if (!is_register(buffer)) return;
      for (size_t d = 0; d < indices.size(); ++d)
        for (const auto& [var, first] : tile_.written_out)
          if (kernel::linear(k_, indices[d]).factor(kernel::VarId(var)) != 0)
            rows_of_.emplace(buffer.value, d);
    }).block(loop_.body);
    bool known = true;
    Touches(k_, [&](BufferId buffer, const std::vector<ExprId>& indices) {
      known = known && (!is_register(buffer) || has_row(buffer, indices));
    }).block(loop_.body);
    if (!known) return std::nullopt;
    return tile_;
  }

 private:
  bool is_register(BufferId buffer) const { return k_.buffer(buffer).space == Space::reg; }

  bool has_row(BufferId buffer, const std::vector<ExprId>& indices) {
    const auto rows = rows_of_.find(buffer.value);
    if (rows == rows_of_.end()) return false;
    const kernel::Linear row = kernel::linear(k_, indices[rows->second]);
    if (row.terms.size() != 1 || row.terms[0].factor != 1 || !row.terms[0].var.valid() ||
        !row.terms[0].dims.empty() || row.constant < 0)
      return false;
    const uint32_t var = row.terms[0].var.value;
    return var < variables_.size() && inside_.count(var) > 0 &&
           variables_[var].kind == LoopKind::unrolled && variables_[var].extent > 0 &&
           tile_.written_out.emplace(var, row.constant).first->second == row.constant;
  }

  const Kernel& k_;
  const std::vector<Variable>& variables_;
  const Stmt& loop_;
  std::set<uint32_t> inside_;
  std::map<uint32_t, size_t> rows_of_;  // by register buffer: the dimension of the rows
  Tile tile_;
};

// Whether no row lacks what is behind an edge, as far as the loops that are there tell.
bool is_whole(const Tile& tile, const std::vector<Variable>& variables) {
  return std::all_of(tile.written_out.begin(), tile.written_out.end(), [&](const auto& rows) {
    return rows.second == 0 && variables[rows.first].extent == tile.rows;
  });
}

// The windows of rows: of row r, columns [r * step + low, r * step + high] of the input, which has
// `all` at its bound. Where all are behind an edge there is no code for them.
struct Columns {
  int64_t step = 0, low = INT64_MAX, high = INT64_MIN, all = 0;

  bool add(const Columns& other) {  // false: they are of other inputs
    const bool is_same = step == 0 || (step == other.step && all == other.all);
    *this = {other.step, std::min(low, other.low), std::max(high, other.high), other.all};
    return is_same;
  }
};

class ColumnFinder {
 public:
  ColumnFinder(const Kernel& kernel, const TrimRequest& request,
               const std::vector<Variable>& variables, const Tile& tile)
      : k_(kernel), request_(request), variables_(variables), tile_(tile) {}

  std::optional<Columns> run() {
    Touches(k_, [&](BufferId buffer, const std::vector<ExprId>& indices) {
      if (buffer.index() < request_.globals.size()) load(buffer, kernel::linear(k_, indices[0]));
    }).block(tile_.loop->body);
    if (!known_ || columns_.step == 0) return std::nullopt;
    return columns_;
  }

 private:
  // Other dimensions of the input have larger or smaller strides than its columns.
  void load(BufferId buffer, const Linear& index) {
    for (const TrimDigit& digit : request_.globals[buffer.index()]) {
      const int64_t bound = request_.groups[static_cast<size_t>(digit.group)].bound;
      const int64_t line = digit.stride * bound;
      const auto row =
          std::find_if(index.terms.begin(), index.terms.end(), [&](const Linear::Term& term) {
            return term.var.valid() && tile_.written_out.count(term.var.value) > 0;
          });
      if (!digit.window ||
          (row != index.terms.end() && (row->factor % digit.stride != 0 || row->factor >= line)))
        continue;
      known_ = known_ && row != index.terms.end() && row->factor > 0;
      if (!known_) return;
      const int64_t first = (index.constant % line + line) % line;
      int64_t last = first;
      for (const Linear::Term& term : index.terms) {
        if (term.var == row->var || term.var == tile_.loop->var || std::abs(term.factor) >= line)
          continue;
        known_ = known_ && term.var.valid() && term.var.index() < variables_.size() &&
                 variables_[term.var.index()].extent > 0 && term.factor > 0;
        if (!known_) return;
        last += (variables_[term.var.index()].extent - 1) * term.factor;
      }
      const int64_t step = row->factor / digit.stride;
      const int64_t number =
          variables_[tile_.loop->var.index()].fact->low + tile_.written_out.at(row->var.value);
      known_ = columns_.add(
          {step, first / digit.stride - number * step, last / digit.stride - number * step, bound});
    }
  }

  const Kernel& k_;
  const TrimRequest& request_;
  const std::vector<Variable>& variables_;
  const Tile& tile_;
  Columns columns_;
  bool known_ = true;
};

}  // namespace

bool loads_windows(const Kernel& kernel, const TrimRequest& request,
                   const std::vector<Stmt>& body) {
  bool reads = false;
  Touches(kernel, [&](BufferId buffer, const std::vector<ExprId>&) {
    if (buffer.index() >= request.globals.size()) return;
    const std::vector<TrimDigit>& digits = request.globals[buffer.index()];
    reads = reads || std::any_of(digits.begin(), digits.end(),
                                 [](const TrimDigit& digit) { return digit.window; });
  }).block(body);
  return reads;
}

std::optional<Tile> tile_of(const Kernel& kernel, const std::vector<Variable>& variables,
                            const Stmt& loop) {
  return TileFinder(kernel, variables, loop).run();
}

std::map<uint32_t, uint32_t> find_lines(const std::vector<Stmt>& body,
                                        const std::vector<Variable>& variables,
                                        const IsTiles& is_tiles) {
  std::map<uint32_t, uint32_t> last;
  const auto continues = [&](const Stmt& before, const Stmt& stmt) {
    const Variable& variable = variables[before.var.index()];
    const Fact &one = *variable.fact, &next = *variables[stmt.var.index()].fact;
    return one.group == next.group && one.base == next.base &&
           next.low == one.low + variable.extent * one.factor;
  };
  for (const Stmt& stmt : body) {
    last.merge(find_lines(stmt.body, variables, is_tiles));
    last.merge(find_lines(stmt.otherwise, variables, is_tiles));
  }
  for (size_t first = 0, end = 1; first < body.size(); first = end, end = first + 1) {
    if (!is_tiles(body[first])) continue;
    while (end < body.size() && is_tiles(body[end]) && continues(body[end - 1], body[end])) ++end;
    for (size_t i = first; i < end; ++i) last.emplace(body[i].var.value, body[end - 1].var.value);
  }
  return last;
}

std::optional<Tiles> tiles_of_line(const Kernel& kernel, const TrimRequest& request,
                                   const std::vector<Variable>& variables,
                                   const std::vector<Stmt>& loops) {
  std::vector<Tile> tiles;  // of the first loops, as far as they are known
  std::vector<Columns> own;
  Columns window;  // of all
  bool known = true;
  for (const Stmt& loop : loops) {
    const std::optional<Tile> tile = TileFinder(kernel, variables, loop).run_windows();
    known = known && tile;
    if (!tile) break;
    tiles.push_back(*tile);
    const auto columns = ColumnFinder(kernel, request, variables, *tile).run();
    known = known && columns && window.add(*columns);
    own.push_back(columns.value_or(Columns{}));
  }
  if (tiles.empty()) return std::nullopt;
  Tiles result;
  const auto extent = [&](const Stmt& loop) { return variables[loop.var.index()].extent; };
  const auto low = [&](const Stmt& loop) { return variables[loop.var.index()].fact->low; };
  size_t next = 0;
  if (extent(loops[0]) == 1) {
    result.first = tiles[0];
    result.most = tiles[0].rows;
    if (loops.size() == 1) return result;
    next = 1;
  }
  if (known && is_whole(tiles[next], variables) && own[next].low == window.low &&
      own[next].high == window.high) {
    // Rows that may be moved: no column of theirs is behind an edge.
    const int64_t step = window.step;
    const int64_t first = window.low >= 0 ? 0 : (step - 1 - window.low) / step;
    const int64_t end = (window.all - 1 - window.high) / step + 1;
    const int64_t all =
        low(loops.back()) + extent(loops.back()) * variables[loops.back().var.index()].fact->factor;
    result.each = tiles[next];
    result.edge = std::max<int64_t>(0, first - low(loops[0]));
    result.most = std::min(end, all) - low(loops[0]);
  }
  if (result.most < 1 ||
      (result.first.loop == nullptr && (result.each.loop == nullptr || result.edge > 0)))
    return std::nullopt;
  return result;
}

}  // namespace heddle::lower::trimming
