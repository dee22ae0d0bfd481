// A chain of products (stages.md §4.7): in each task one block of rows goes through all of them,
// and what lies between two stays in scratch, row behind row.
#include <algorithm>

#include "stitch/gemm_emitter.h"

namespace heddle::stitch {

using schedule::Chain;
using schedule::Link;

class ChainEmitter {
 public:
  explicit ChainEmitter(Stitcher* s)
      : s_(*s), k_(s->kernel_), graph_(s->placed_.graph), chain_(match_chain(graph_)) {
    HEDDLE_CHECK(static_cast<bool>(chain_.decision), "{}", chain_.decision.reason());
    for (size_t i = 0; i < chain_.links.size(); ++i) {
      const Row& row = std::get<Row>(s_.placed_.schedule.nodes.at(i));
      HEDDLE_CHECK(row.gemm && row.joined == chain_.links[i].joined, "row {} is no link", i);
      records_.push_back(*row.gemm);
      links_.push_back(std::make_unique<GemmEmitter>(s, static_cast<int>(i), &chain_.links[i]));
      links_.back()->make_panel();
    }
  }

  std::vector<kernel::Group> emit() {
    add_buffers();
    const Stage& stage = graph_.stage(chain_.links[0].joined[0]);
    std::vector<kernel::Group> groups;
    for (const AxisPart& lines : line_parts(records_[0], chain_.links[0].shape, stage))
      for (const AxisPart& rows : row_parts(records_[0], chain_.links[0].shape, stage))
        groups.push_back(group(lines, rows));
    return groups;
  }

 private:
  void add_buffers() {
    const int64_t bytes = resident_bytes(chain_, graph_, records_);
    int64_t all = 0;  // bytes of a row, of all values
    for (size_t i = 0; i + 1 < chain_.links.size(); ++i) all += row_bytes(i);
    for (size_t i = 0; i + 1 < chain_.links.size(); ++i) {
      kernel::Buffer buffer;
      buffer.name = fmt::format("d{}", i);
      buffer.type = graph_.stage(chain_.links[i].value).values[0].type;
      // Every value has the same rows.
      const int64_t mine = bytes / all * row_bytes(i);
      buffer.extents = {mine / tensor::type_bytes(buffer.type)};
      buffer.space = kernel::Space::scratch;
      buffer.offset_bytes = k_.scratch_bytes;
      buffer.aligned_bytes = 64;
      k_.scratch_bytes += mine;
      buffers_.push_back(k_.add_buffer(buffer));
    }
  }

  int64_t row_bytes(size_t i) const {
    const Type type = graph_.stage(chain_.links[i].value).values[0].type;
    return row_pitch(graph_, chain_.links[i]) * tensor::type_bytes(type);
  }

  kernel::Group group(const AxisPart& lines, const AxisPart& rows) {
    const GemmShape& shape = chain_.links[0].shape;
    const Stage& stage = graph_.stage(chain_.links[0].joined[0]);
    kernel::Group group;
    auto add_grid = [&](const std::string& name, int64_t extent) {
      VarId var = k_.add_var(name);
      group.grid.push_back({var, k_.constant(extent)});
      return Expr::digit(s_.add_scope(var, extent));
    };
    std::vector<Expr> batch;
    for (int d : shape.batch) batch.push_back(add_grid(stage.out[d].name, stage.out[d].extent));
    auto add_blocks = [&](const char* name, const AxisPart& part) {
      return part.blocks > 1 ? add_grid(name, part.blocks) * part.step : Expr(0);
    };
    const Expr y0 = add_blocks("lines_of", lines), m0 = add_blocks("rows_of", rows);
    // The first line and row of the block.
    const Expr y = y0 + Expr(lines.runs.front().start), m = m0 + Expr(rows.runs.front().start);
    for (size_t i = 0; i < chain_.links.size(); ++i) {
      const Link& link = chain_.links[i];
      if (i + 1 < chain_.links.size()) settle(i, batch, y, m, count_rows(rows));
      if (i > 0) read_before(i, y, m, batch, count_rows(rows));
      if (i == 0) {
        links_[i]->emit_block(batch, lines, rows, y0, m0, &group.body);
      } else if (link.counted) {
        AxisPart all{1, 0, {Run{0, 1, count_rows(lines) * count_rows(rows), {}}}};
        AxisPart one{1, 0, {Run{0, 1, 1, {}}}};
        links_[i]->emit_block({}, one, retile(all, records_[i].mr), Expr(0), counted(batch, y, m),
                              &group.body);
      } else {
        const int64_t tall = records_[i].my;
        links_[i]->emit_block(batch, retile(lines, tall), retile(rows, records_[i].mr), y0, m0,
                              &group.body);
      }
    }
    return group;
  }

  // The number of the block's first row where all are counted through.
  Expr counted(const std::vector<Expr>& batch, const Expr& y, const Expr& m) const {
    const Link& first = chain_.links[0];
    const Stage& value = graph_.stage(first.value);
    Expr number;
    for (size_t d = 0; d < value.out.size(); ++d) {
      const int digit = first.value_digits[d];
      if (digit == first.shape.n) continue;
      number = number * value.out[d].extent;
      if (digit == first.shape.m)
        number = number + m;
      else if (digit == first.shape.y)
        number = number + y;
      else
        number = number + batch[static_cast<size_t>(
                              std::find(first.shape.batch.begin(), first.shape.batch.end(), digit) -
                              first.shape.batch.begin())];
    }
    return number;
  }

  // Where the value of link i lies: rows of the block one behind the other, columns in a row.
  void settle(size_t i, const std::vector<Expr>& batch, const Expr& y, const Expr& m,
              int64_t rows) {
    const Link& link = chain_.links[i];
    const int64_t pitch = row_pitch(graph_, link);
    Home& home = s_.homes_[link.value.index()][0];
    home = Home{};
    home.kind = Home::Kind::buffer;
    home.buffer = buffers_[i];
    for (int digit : link.value_digits) {
      home.origin.push_back(Expr(0));
      home.pitch.push_back(0);
      if (digit == link.shape.n) {
        home.pitch.back() = 1;
      } else if (digit == link.shape.m) {
        home.origin.back() = link.counted ? counted(batch, y, m) : m;
        home.pitch.back() = pitch;
      } else if (digit == link.shape.y) {
        home.origin.back() = y;
        home.pitch.back() = pitch * rows;
      }
    }
  }

  void read_before(size_t i, const Expr& y, const Expr& m, const std::vector<Expr>& batch,
                   int64_t rows) {
    const Link &link = chain_.links[i], &before = chain_.links[i - 1];
    const int64_t pitch = row_pitch(graph_, before);
    const schedule::Load& load = graph_.stage(link.joined[0]).loads[link.shape.a_load];
    Expr at = Expr::digit(link.shape.m) * pitch, base;
    if (link.counted) {
      base = counted(batch, y, m) * pitch;
    } else {
      base = m * pitch;
      if (link.shape.y >= 0) {
        at = at + Expr::digit(link.shape.y) * (pitch * rows);
        base = base + y * (pitch * rows);
      }
    }
    for (size_t d = 0; d < before.value_digits.size(); ++d)
      if (before.value_digits[d] == before.shape.n) at = at + load.coordinates[d];
    links_[i]->read_from(buffers_[i - 1], at, base);
  }

  Stitcher& s_;
  kernel::Kernel& k_;
  const schedule::StageGraph& graph_;
  const Chain chain_;
  std::vector<Gemm> records_;
  std::vector<std::unique_ptr<GemmEmitter>> links_;
  std::vector<BufferId> buffers_;
};

std::vector<kernel::Group> emit_chain(Stitcher* stitcher) { return ChainEmitter(stitcher).emit(); }

}  // namespace heddle::stitch
