#include "schedule/chain_rows.h"

#include <algorithm>

namespace heddle::schedule {

namespace {

bool holds(const std::vector<StageId>& list, StageId id) {
  return std::find(list.begin(), list.end(), id) != list.end();
}

// Translates a digit of `from`'s base to the corresponding digit of `to`'s base.
int converted(const Link& from, int digit, const Link& to) {
  if (digit == from.shape.n) return to.shape.n;
  if (digit == from.shape.m) return to.shape.m;
  if (digit == from.shape.y) return to.shape.y;
  const auto at = std::find(from.shape.batch.begin(), from.shape.batch.end(), digit);
  return to.shape.batch.at(static_cast<size_t>(at - from.shape.batch.begin()));
}

class RowMatcher {
 public:
  RowMatcher(const StageGraph& graph, const Chain& chain, size_t number, RowDigits* digits)
      : graph_(graph), chain_(chain), number_(number), link_(chain.links[number]), of_(*digits) {}

  Decision run() {
    of_.assign(graph_.stages.size(), {});
    for (StageId id : link_.joined) of_[id.index()].assign(graph_.stage(id).out.size(), -1);
    if (holds(link_.joined, link_.base)) {
      const size_t count = of_[link_.base.index()].size();
      for (size_t d = 0; d < count; ++d) of_[link_.base.index()][d] = static_cast<int>(d);
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (StageId id : link_.joined)
        for (const Load& load : graph_.stage(id).loads)
          if (load.source.input < 0) changed |= follow(id, load);
    }
    for (StageId id : link_.joined)
      if (Decision fits = check(id); !fits) return fits;
    return Decision::yes();
  }

 private:
  // The block's digit for each out digit of `source`; empty if its rows are numbered differently.
  std::vector<int> known(StageId source) const {
    if (holds(link_.joined, source)) return of_[source.index()];
    for (size_t i = 0; i < number_; ++i) {
      const Link& link = chain_.links[i];
      if (link.counted != link_.counted) continue;
      for (const Kept& kept : link.kept) {
        if (!(kept.stage == source)) continue;
        std::vector<int> digits;
        for (int digit : kept.digits) digits.push_back(converted(link, digit, link_));
        return digits;
      }
    }
    return {};
  }

  bool is_row(int digit) const { return digit >= 0 && digit != link_.shape.n; }

  bool set(StageId id, int own, int digit) {
    int& known = of_[id.index()][static_cast<size_t>(own)];
    const Digit& mine = graph_.stage(id).out[static_cast<size_t>(own)];
    const Digit& base = graph_.stage(link_.base).out[static_cast<size_t>(digit)];
    if (known >= 0 || mine.extent != base.extent) return false;
    known = digit;
    return true;
  }

  bool follow(StageId reader, const Load& load) {
    const std::vector<int> from = known(load.source.stage);
    const auto out = static_cast<int>(graph_.stage(reader).out.size());
    bool changed = false;
    for (size_t j = 0; j < from.size(); ++j) {
      int own = -1;
      if (!load.coordinates[j].is_digit(&own) || own >= out) continue;
      const int mine = of_[reader.index()][static_cast<size_t>(own)];
      if (is_row(from[j])) changed |= set(reader, own, from[j]);
      if (is_row(mine) && from[j] < 0) changed |= set(load.source.stage, static_cast<int>(j), mine);
    }
    return changed;
  }

  Decision check(StageId id) {
    const Stage& stage = graph_.stage(id);
    std::vector<int>& mine = of_[id.index()];
    auto no = [&](const char* why) {
      return Decision::no("chain-rows", "{}: {}", stage.name, why);
    };
    for (int& digit : mine) {
      if (digit >= 0) continue;
      if (std::find(mine.begin(), mine.end(), link_.shape.n) != mine.end())
        return no("has digits that are neither the block's rows nor its columns");
      digit = link_.shape.n;
    }
    std::vector<int> sorted = mine;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
      return no("uses the rows twice");
    if (stage.red.size() > 1) return no("reduces over more than columns");
    const bool columns = std::find(mine.begin(), mine.end(), link_.shape.n) != mine.end();
    if (!stage.red.empty() && (columns || stage.kind != hlo::StageKind::reduce))
      return no("does not reduce a row to one value");
    for (const Load& load : stage.loads) {
      if (load.source.input >= 0) continue;
      const std::vector<int> from = known(load.source.stage);
      for (size_t j = 0; j < from.size(); ++j) {
        int own = -1;
        if (!is_row(from[j])) continue;
        if (!load.coordinates[j].is_digit(&own) || own >= static_cast<int>(mine.size()) ||
            mine[static_cast<size_t>(own)] != from[j])
          return no("takes its rows from elsewhere");
      }
    }
    return Decision::yes();
  }

  const StageGraph& graph_;
  const Chain& chain_;
  const size_t number_;
  const Link& link_;
  RowDigits& of_;
};

// Adds the stage to the row's loop over columns, if it may share it.
bool try_join(const StageGraph& graph, StageId stage, int digit, Row* row) {
  const Stage& first = graph.stage(row->joined[0]);
  auto reduces_to_columns = [&](const Stage& one) { return one.is_reduction() && one.red.empty(); };
  if (row->own.empty() || reduces_to_columns(first) || reduces_to_columns(graph.stage(stage)) ||
      graph.stage(stage).extents()[static_cast<size_t>(digit)] !=
          first.extents()[static_cast<size_t>(row->own[0].digits[0])])
    return false;
  Row joined = *row;
  joined.joined.push_back(stage);
  joined.own[0].digits.push_back(digit);
  for (const Load& load : graph.stage(stage).loads) {
    if (load.source.input >= 0) continue;
    const auto found = std::find(row->joined.begin(), row->joined.end(), load.source.stage);
    if (found == row->joined.end()) continue;
    if (graph.stage(*found).is_reduction() ||
        !reads_current_point(graph, joined, row->joined.size(),
                             static_cast<size_t>(found - row->joined.begin())))
      return false;
  }
  *row = std::move(joined);
  return true;
}

// Whether `made` may overwrite `old`: no reader of `old` comes after the store of `made`, or reads
// another column in the row that stores it.
bool may_replace(const StageGraph& graph, const std::vector<Row>& rows, const Kept& old,
                 const Kept& made, const std::vector<StageId>& before,
                 const std::vector<StageId>& link) {
  if (old.column < 0 || made.column < 0 || row_bytes(graph, old) != row_bytes(graph, made) ||
      graph.stage(made.stage).is_reduction() ||
      graph.stage(old.stage).values[0].type != graph.stage(made.stage).values[0].type)
    return false;
  const auto last = std::find_if(rows.begin(), rows.end(),
                                 [&](const Row& row) { return holds(row.joined, made.stage); });
  const auto store = std::find(last->joined.begin(), last->joined.end(), made.stage);
  for (size_t i = old.stage.index() + 1; i < graph.stages.size(); ++i) {
    const StageId reader(i);
    for (const Load& load : graph.stages[i].loads) {
      if (load.source.input >= 0 || !(load.source.stage == old.stage)) continue;
      if (!holds(link, reader)) {
        if (!holds(before, reader)) return false;
        continue;
      }
      const auto row = std::find_if(rows.begin(), rows.end(),
                                    [&](const Row& one) { return holds(one.joined, reader); });
      if (row > last) return false;
      if (row < last) continue;
      const auto at = std::find(row->joined.begin(), row->joined.end(), reader);
      const int digit =
          row->own.empty() ? -1 : row->own[0].digits[static_cast<size_t>(at - row->joined.begin())];
      if (at > store || digit < 0 ||
          !(load.coordinates[static_cast<size_t>(old.column)] == index::Expr::digit(digit)))
        return false;
    }
  }
  return true;
}

}  // namespace

void share_places(const StageGraph& graph, Chain* chain) {
  std::vector<StageId> taken;
  for (size_t i = 1; i < chain->links.size(); ++i) {
    Link& link = chain->links[i];
    if (!link.rows) continue;
    const std::vector<Row> rows = rows_of_link(graph, link, /*lanes=*/1);
    for (Kept& made : link.kept) {
      for (const Kept& old : chain->links[i - 1].kept) {
        if (made.over.valid() || holds(taken, old.stage) ||
            !may_replace(graph, rows, old, made, chain->links[i - 1].joined, link.joined))
          continue;
        made.over = old.stage;
        taken.push_back(old.stage);
      }
    }
  }
}

Decision match_row_digits(const StageGraph& graph, const Chain& chain, size_t number,
                          RowDigits* digits) {
  return RowMatcher(graph, chain, number, digits).run();
}

std::vector<Row> rows_of_link(const StageGraph& graph, const Link& link, int lanes) {
  std::vector<Row> rows;
  for (StageId id : link.joined) {
    const Stage& stage = graph.stage(id);
    const std::vector<int>& mine = link.row_digits[id.index()];
    int digit = -1;
    if (!stage.red.empty())
      digit = static_cast<int>(stage.out.size());
    else if (const auto at = std::find(mine.begin(), mine.end(), link.shape.n); at != mine.end())
      digit = static_cast<int>(at - mine.begin());
    if (digit < 0) {
      rows.push_back({{id}, {}, {}});
      continue;
    }
    // Four sums at a time, where a row is long enough.
    const int64_t extent = stage.extents()[static_cast<size_t>(digit)];
    const int64_t by = !stage.red.empty() && extent >= 4 * lanes ? 4 * lanes : lanes;
    if (!rows.empty() && try_join(graph, id, digit, &rows.back())) {
      rows.back().own[0].by = std::max(rows.back().own[0].by, by);
      continue;
    }
    rows.push_back({{id}, {{LoopKind::vector, {digit}, by}}, {}});
  }
  return rows;
}

}  // namespace heddle::schedule
