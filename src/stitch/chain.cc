// A chain of products (stages.md §4.7): each task takes one block of rows through all of them, with
// the intermediate values in scratch, row by row. Links of rows process the block row by row.
#include "schedule/chain_rows.h"

#include <algorithm>

#include "stitch/gemm_emitter.h"
#include "stitch/row_emitter.h"

namespace heddle::stitch {

using stage::Chain;
using stage::Kept;
using stage::Link;

class ChainEmitter {
 public:
  explicit ChainEmitter(Stitcher* s)
      : s_(*s),
        k_(s->kernel_),
        graph_(s->placed_.graph),
        chain_(*s->placed_.chain()),
        records_(chain_.records) {
    find_nodes();
    add_buffers();
    for (size_t i = 0; i < chain_.links.size(); ++i) {
      links_.push_back(nullptr);
      if (chain_.links[i].rows) continue;
      links_.back() = std::make_unique<GemmEmitter>(s, static_cast<int>(nodes_[i][0]));
      links_.back()->make_panel();
    }
  }

  std::vector<kernel::Group> emit() {
    const Stage& stage = graph_.stage(chain_.links[0].base);
    std::vector<kernel::Group> groups;
    for (const AxisPart& lines : line_parts(records_[0], chain_.links[0].shape, stage))
      for (const AxisPart& rows : row_parts(records_[0], chain_.links[0].shape, stage))
        groups.push_back(group(lines, rows));
    return groups;
  }

 private:
  // A task's block: the values of the batch's digits, its first line and row, and their counts.
  struct Place {
    std::vector<Expr> batch;
    Expr y, m;
    int64_t lines = 1, rows = 1;
  };

  // The schedule's rows by link, in the innermost loop over tasks.
  void find_nodes() {
    const auto& nodes = s_.placed_.schedule.nodes;
    const std::vector<int>* body = &s_.placed_.schedule.phases.at(0).at(0).body;
    auto parallel = [&](int number) {
      const auto* loop = std::get_if<stage::Loop>(&nodes.at(static_cast<size_t>(number)));
      return loop && loop->kind == stage::LoopKind::parallel ? loop : nullptr;
    };
    while (body->size() == 1 && parallel(body->at(0))) body = &parallel(body->at(0))->body;
    for (int number : *body) {
      nodes_.emplace_back();
      std::vector<int> inside{number};
      while (const auto* loop =
                 std::get_if<stage::Loop>(&nodes.at(static_cast<size_t>(inside.at(0)))))
        inside = loop->body;
      for (int row : inside) nodes_.back().push_back(static_cast<size_t>(row));
    }
    HEDDLE_CHECK(nodes_.size() == chain_.links.size(), "{} rows for {} links", nodes_.size(),
                 chain_.links.size());
  }

  // Values kept between links have the rows of a block; values inside a link of rows, one row.
  void add_buffers() {
    const int64_t rows = block_rows(chain_, graph_, records_);
    for (size_t i = 0; i < chain_.links.size(); ++i) {
      const Link& link = chain_.links[i];
      for (const Kept& kept : link.kept) {
        const size_t number = kept.stage.index();
        buffers_[number] = kept.over.valid()
                               ? buffers_.at(kept.over.index())
                               : k_.add_scratch(fmt::format("d{}", number),
                                                graph_.stage(kept.stage).values[0].type,
                                                rows * row_pitch(graph_, kept));
        s_.homes_[number][0].kind = Home::Kind::buffer;  // settle() sets the address
      }
      if (!link.rows) continue;
      for (StageId id : link.joined) {
        const stage::Placed& placed = s_.placed_.placement.stages[id.index()];
        if (placed.space != stage::Space::scratch || buffers_.count(id.index())) continue;
        const Stage& stage = graph_.stage(id);
        for (size_t v = 0; v < stage.values.size(); ++v) {
          Home& home = s_.homes_[id.index()][v];
          home = Home{};
          home.kind = Home::Kind::buffer;
          home.buffer = k_.add_scratch(fmt::format("s{}_{}", id.index(), v), stage.values[v].type,
                                       volume(placed.need));
          home.origin.assign(stage.out.size(), Expr(0));
          for (int digit : link.row_digits[id.index()])
            home.pitch.push_back(digit == link.shape.n ? 1 : 0);
        }
      }
    }
  }

  kernel::Group group(const AxisPart& lines, const AxisPart& rows) {
    const GemmShape& shape = chain_.links[0].shape;
    const Stage& stage = graph_.stage(chain_.links[0].base);
    kernel::Group group;
    auto add_grid = [&](const std::string& name, int64_t extent) {
      VarId var = k_.add_var(name);
      group.grid.push_back({var, k_.constant(extent)});
      return Expr::digit(s_.add_scope(var, extent));
    };
    Place at;
    for (int d : shape.batch) at.batch.push_back(add_grid(stage.out[d].name, stage.out[d].extent));
    auto add_blocks = [&](const char* name, const AxisPart& part) {
      return part.blocks > 1 ? add_grid(name, part.blocks) * part.step : Expr(0);
    };
    const Expr y0 = add_blocks("lines_of", lines), m0 = add_blocks("rows_of", rows);
    at.y = y0 + Expr(lines.runs.front().start);
    at.m = m0 + Expr(rows.runs.front().start);
    at.lines = count_rows(lines);
    at.rows = count_rows(rows);
    for (size_t i = 0; i < chain_.links.size(); ++i) {
      const Link& link = chain_.links[i];
      for (const Kept& kept : link.kept) settle(link, kept, at);
      if (link.rows) {
        emit_rows(i, at, &group.body);
        continue;
      }
      if (i > 0) read_before(i, at);
      if (i == 0) {
        links_[i]->emit_block(at.batch, lines, rows, y0, m0, &group.body);
      } else if (link.counted) {
        AxisPart all{1, 0, {Run{0, 1, at.lines * at.rows, {}}}};
        AxisPart one{1, 0, {Run{0, 1, 1, {}}}};
        links_[i]->emit_block({}, one, retile(all, records_[i].mr), Expr(0), counted(at),
                              &group.body);
      } else {
        const int64_t tall = records_[i].my;
        links_[i]->emit_block(at.batch, retile(lines, tall), retile(rows, records_[i].mr), y0, m0,
                              &group.body);
      }
    }
    return group;
  }

  // The number of the block's first row where rows are counted through all batches and lines.
  Expr counted(const Place& at) const {
    const Link& first = chain_.links[0];
    const Stage& value = graph_.stage(first.value);
    Expr number;
    for (size_t d = 0; d < value.out.size(); ++d) {
      const int digit = first.value_digits[d];
      if (digit == first.shape.n) continue;
      number = number * value.out[d].extent;
      if (digit == first.shape.m)
        number = number + at.m;
      else if (digit == first.shape.y)
        number = number + at.y;
      else
        number = number + at.batch[static_cast<size_t>(
                              std::find(first.shape.batch.begin(), first.shape.batch.end(), digit) -
                              first.shape.batch.begin())];
    }
    return number;
  }

  // Sets the address of a kept value: the rows of the block in sequence, columns contiguous.
  void settle(const Link& link, const Kept& kept, const Place& at) {
    const int64_t pitch = row_pitch(graph_, kept);
    Home& home = s_.homes_[kept.stage.index()][0];
    home = Home{};
    home.kind = Home::Kind::buffer;
    home.buffer = buffers_.at(kept.stage.index());
    for (int digit : kept.digits) {
      home.origin.push_back(Expr(0));
      home.pitch.push_back(0);
      if (digit == link.shape.n) {
        home.pitch.back() = 1;
      } else if (digit == link.shape.m) {
        home.origin.back() = link.counted ? counted(at) : at.m;
        home.pitch.back() = pitch;
      } else if (digit == link.shape.y) {
        home.origin.back() = at.y;
        home.pitch.back() = pitch * at.rows;
      }
    }
  }

  void read_before(size_t i, const Place& at) {
    const Link &link = chain_.links[i], &before = chain_.links[i - 1];
    const auto kept = std::find_if(before.kept.begin(), before.kept.end(),
                                   [&](const Kept& one) { return one.stage == before.value; });
    const int64_t pitch = row_pitch(graph_, *kept);
    const stage::Load& load = graph_.stage(link.joined[0]).loads[link.shape.a_load];
    Expr element = Expr::digit(link.shape.m) * pitch, base;
    if (link.counted) {
      base = counted(at) * pitch;
    } else {
      base = at.m * pitch;
      if (link.shape.y >= 0) {
        element = element + Expr::digit(link.shape.y) * (pitch * at.rows);
        base = base + at.y * (pitch * at.rows);
      }
    }
    for (size_t d = 0; d < before.value_digits.size(); ++d)
      if (before.value_digits[d] == before.shape.n) element = element + load.coordinates[d];
    links_[i]->read_from(buffers_.at(before.value.index()), element, base);
  }

  // All rows of the block, one after the other.
  void emit_rows(size_t i, const Place& at, Block* block) {
    const Link& link = chain_.links[i];
    const int64_t lines = link.counted ? 1 : at.lines;
    const int64_t rows = link.counted ? at.lines * at.rows : at.rows;
    VarId line = k_.add_var("line"), row = k_.add_var("row");
    const Expr y = lines > 1 ? Expr::digit(s_.add_scope(line, lines)) : Expr(0);
    const Expr m = rows > 1 ? Expr::digit(s_.add_scope(row, rows)) : Expr(0);
    std::vector<std::vector<Expr>> digits(graph_.stages.size());
    for (StageId id : link.joined) {
      for (int digit : link.row_digits[id.index()]) {
        const auto& batch = link.shape.batch;
        const auto found = std::find(batch.begin(), batch.end(), digit);
        Expr x;
        if (digit == link.shape.m)
          x = m + (link.counted ? counted(at) : at.m);
        else if (digit == link.shape.y)
          x = y + at.y;
        else if (found != batch.end())
          x = at.batch[static_cast<size_t>(found - batch.begin())];
        digits[id.index()].push_back(x);
      }
    }
    Block body;
    for (size_t node : nodes_[i])
      RowEmitter(&s_, static_cast<int>(node), records_[0].lanes).emit_at(digits, &body);
    for (const auto& [var, count] : {std::pair(row, rows), std::pair(line, lines)}) {
      if (count == 1) continue;
      Block outer;
      outer.push_back(make_loop(LoopKind::serial, var, k_.constant(count), std::move(body)));
      body = std::move(outer);
    }
    for (Stmt& stmt : body) block->push_back(std::move(stmt));
  }

  Stitcher& s_;
  kernel::Kernel& k_;
  const stage::StageGraph& graph_;
  const Chain& chain_;
  std::vector<std::vector<size_t>> nodes_;           // by link: the schedule's rows
  const std::vector<Gemm>& records_;                 // by link
  std::vector<std::unique_ptr<GemmEmitter>> links_;  // null: of rows
  std::map<size_t, BufferId> buffers_;               // by stage that is kept
};

std::vector<kernel::Group> emit_chain(Stitcher* stitcher) { return ChainEmitter(stitcher).emit(); }

}  // namespace heddle::stitch
