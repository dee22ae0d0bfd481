#include "schedule/pooled.h"

#include <algorithm>
#include <cmath>

#include "cost/chain_cost.h"
#include "cost/gemm_time.h"
#include "schedule/gemm_tiles.h"
#include "schedule/strategy.h"
#include "schedule/tuning.h"
#include "schedule/windows.h"

namespace heddle::schedule {

using index::Expr;

namespace {

bool is_pool(const Stage& stage) { return stage.instr->is(hlo::Opcode::reduce_window); }

class Matcher {
 public:
  Matcher(const StageGraph& graph, StageId conv, const GemmShape& shape,
          const target::Target& target)
      : graph_(graph), conv_(conv), target_(target) {
    result_.shape = shape;
  }

  Pooled run() {
    result_.decision = collect();
    if (result_.decision) result_.decision = find_value();
    if (result_.decision) result_.decision = read_window();
    if (result_.decision) result_.decision = check_kept();
    if (result_.decision) result_.decision = check_behind();
    return std::move(result_);
  }

 private:
  Decision collect() {
    enum class Part { other, joined, pooled };
    std::vector<Part> part(graph_.stages.size(), Part::other);
    for (size_t i = 0; i < graph_.stages.size(); ++i) {
      const Stage& stage = graph_.stages[i];
      bool of_joined = false, of_pooled = false, of_others = false;
      for (const Load& load : stage.loads) {
        if (load.source.input >= 0) continue;
        const Part source = part[load.source.stage.index()];
        of_joined |= source == Part::joined;
        of_pooled |= source == Part::pooled;
        of_others |= source == Part::other;
      }
      const bool is_conv = StageId(i) == conv_;
      const bool pool = is_pool(stage) && of_joined && !result_.pool.valid();
      if (of_others || (is_conv ? of_joined || of_pooled : of_joined == of_pooled) ||
          (stage.is_reduction() && !is_conv && !pool))
        return Decision::no("gemm-epilogue", "{} does not follow the tiles of {}", stage.name,
                            graph_.stage(conv_).name);
      part[i] = is_conv || (of_joined && !pool) ? Part::joined : Part::pooled;
      if (pool)
        result_.pool = StageId(i);
      else
        (part[i] == Part::joined ? result_.joined : result_.behind).push_back(StageId(i));
    }
    if (!result_.pool.valid()) return Decision::no("pool-window", "no pool");
    return Decision::yes();
  }

  Decision find_value() {
    const Stage& pool = graph_.stage(result_.pool);
    for (const Load& load : pool.loads) {
      if (load.source.input >= 0) continue;
      if (load_) return Decision::no("pool-window", "{} reads several values", pool.name);
      load_ = &load;
    }
    result_.value = load_->source.stage;
    for (StageId id : result_.joined) {
      for (const Value& value : graph_.stage(id).values) {
        if (value.output < 0) continue;
        if (!(id == result_.value))
          return Decision::no("chain-consumers", "{} is also read outside the kernel",
                              graph_.stage(id).name);
        result_.keeps = true;
      }
    }
    std::vector<std::vector<Expr>> digits;
    if (Decision inverted = invert_epilogue(graph_, result_.joined, &digits); !inverted)
      return inverted;
    const std::vector<int64_t> extents = graph_.stage(conv_).out_extents();
    const Stage& value = graph_.stage(result_.value);
    for (size_t d = 0; d < value.out.size(); ++d) {
      int digit = -1;
      if (!digits[result_.value.index()][d].is_digit(&digit) ||
          extents[static_cast<size_t>(digit)] != value.out[d].extent)
        return Decision::no("gemm-epilogue", "{} has different dimensions from the convolution",
                            value.name);
      result_.value_digits.push_back(digit);
    }
    return Decision::yes();
  }

  Decision no(const char* why) const {
    return Decision::no("pool-window", "{}: {}", graph_.stage(result_.pool).name, why);
  }

  Decision read_window() {
    const Stage& pool = graph_.stage(result_.pool);
    const GemmShape& shape = result_.shape;
    const std::optional<WindowForm> form = match_window(pool, target_);
    if (!form) return no("no window with the channels in lanes");
    result_.form = *form;
    if (shape.y < 0 || shape.m < 0 || pool.values.size() != 1) return no("no image of lines");
    for (int d : shape.batch)
      if (is_group(shape, graph_.stage(conv_), d)) return no("groups of features");
    const int out = static_cast<int>(pool.out.size());
    std::vector<bool> known(pool.out.size(), false);
    for (size_t d = 0; d < result_.value_digits.size(); ++d) {
      const Expr& x = load_->coordinates[d];
      const int digit = result_.value_digits[d];
      int own = -1;
      if (digit == shape.y) {
        if (Decision lines = read_lines(x); !lines) return lines;
        own = result_.line;
      } else if (digit == shape.m) {
        own = form->column;
        for (int o = 0; o < out; ++o)
          if (o != own && x.uses(o)) return no("its columns move with other digits");
      } else if (!x.is_digit(&own) || own >= out || (digit == shape.n) != (own == form->lane)) {
        return no("it moves along images or features");
      } else if (own != form->lane) {
        result_.batch.push_back(own);
      }
      if (known[static_cast<size_t>(own)]) return no("one digit moves along two");
      known[static_cast<size_t>(own)] = true;
    }
    if (std::find(known.begin(), known.end(), false) != known.end())
      return no("it has a digit of its own");
    return Decision::yes();
  }

  // Matches the coordinate of the lines: stride·line + the window's offset.
  Decision read_lines(const Expr& x) {
    const Stage& pool = graph_.stage(result_.pool);
    const int out = static_cast<int>(pool.out.size());
    if (!x.is_affine()) return no("its lines are not evenly spaced");
    result_.first = x.constant();
    result_.reach = 1;
    for (const index::Term& term : x.terms()) {
      if (term.atom.kind != index::Atom::Kind::digit || term.factor <= 0)
        return no("its lines are not evenly spaced");
      const int digit = term.atom.id;
      if (digit >= out) {
        result_.reach += term.factor * (pool.red[static_cast<size_t>(digit - out)].extent - 1);
        continue;
      }
      if (result_.line >= 0 || digit == result_.form.lane || digit == result_.form.column)
        return no("its lines move with other digits");
      result_.line = digit;
      result_.stride = term.factor;
    }
    return result_.line < 0 ? no("one line") : Decision::yes();
  }

  // If the convolution's result is an output, each of its lines must be stored exactly once.
  Decision check_kept() const {
    if (!result_.keeps) return Decision::yes();
    const Stage& pool = graph_.stage(result_.pool);
    if (result_.first == 0 && result_.reach == result_.stride &&
        pool.out[static_cast<size_t>(result_.line)].extent * result_.stride ==
            result_.shape.y_extent)
      return Decision::yes();
    return Decision::no("chain-consumers", "{} is also read outside the kernel",
                        graph_.stage(result_.value).name);
  }

  // Maps after the pool must have its digits, and read and write contiguously along the lanes.
  Decision check_behind() const {
    const Stage& pool = graph_.stage(result_.pool);
    const int lane = result_.form.lane;
    const std::vector<Expr> same = index::identity(pool.out_extents()).results;
    auto beside = [&](const Expr& x) {
      return !x.uses(lane) || (x.factor_of(lane) == 1 && !(x - Expr::digit(lane)).uses(lane));
    };
    if (pool.position.factor_of(lane) != 1) return no("its results lie across the lanes");
    for (StageId id : result_.behind) {
      const Stage& map = graph_.stage(id);
      bool follows = map.out_extents() == pool.out_extents() && map.position.factor_of(lane) == 1 &&
                     beside(map.position);
      for (const Load& load : map.loads)
        follows &= load.source.input < 0 ? load.coordinates == same && load.guards.empty()
                                         : beside(load.coordinates[0]);
      if (!follows)
        return Decision::no("gemm-epilogue", "{} does not match {} element by element", map.name,
                            pool.name);
    }
    return Decision::yes();
  }

  const StageGraph& graph_;
  const StageId conv_;
  const target::Target& target_;
  const Load* load_ = nullptr;  // the pool's load of the value
  Pooled result_;
};

int64_t images(const Stage& conv, const GemmShape& shape) {
  int64_t count = 1;
  for (int d : shape.batch) count *= conv.out[static_cast<size_t>(d)].extent;
  return count;
}

int64_t bytes_of_a(const StageGraph& graph, const Stage& conv, const GemmShape& shape) {
  const Load& a = conv.loads[static_cast<size_t>(shape.a_load)];
  return graph.inputs[static_cast<size_t>(a.source.input)].shape.bytes();
}

// The total of the convolution's lines that `strips` strips of `by` pooled lines compute.
int64_t lines_of_strips(const Pooled& pooled, int64_t by, int64_t strips) {
  int64_t lines = 0;
  for (int64_t i = 0; i < strips; ++i) {
    const int64_t begin = i * by * pooled.stride + pooled.first;
    const int64_t end = begin + (by - 1) * pooled.stride + pooled.reach;
    lines +=
        std::max<int64_t>(0, std::min(end, pooled.shape.y_extent) - std::max<int64_t>(begin, 0));
  }
  return lines;
}

double line_cycles(const Gemm& record, const GemmShape& shape, const target::Target& target) {
  Gemm whole = record;
  whole.kc = shape.k_extent;
  return cost::gemm_cycles(whole, shape.m_extent, shape.n_extent, shape.k_extent, target);
}

double weight_bytes(const GemmShape& shape, int lanes) {
  return static_cast<double>((shape.n_extent + lanes - 1) / lanes * lanes * shape.k_extent *
                             tensor::type_bytes(shape.type));
}

// The factor by which the last round of tasks leaves cores idle.
double idle_factor(int64_t tasks, const target::Target& target) {
  const int64_t cores = std::max(target.cores, 1);
  return static_cast<double>((tasks + cores - 1) / cores * cores) / static_cast<double>(tasks);
}

class PooledPlacer {
 public:
  PooledPlacer(StageGraph graph, StageId conv, const GemmShape& shape, const target::Target& target)
      : target_(target) {
    result_.graph = std::move(graph);
    pooled_ = match_pooled(result_.graph, conv, shape, target);
  }

  PlacedFusion run() {
    result_.decision = pooled_.decision;
    if (result_.decision) result_.decision = choose();
    if (!result_.decision) return std::move(result_);
    build();
    result_.placement = place_values(result_.graph, result_.schedule, target_);
    result_.decision = result_.placement.decision;
    result_.form = std::move(pooled_);
    return std::move(result_);
  }

 private:
  const Stage& conv() const { return result_.graph.stage(pooled_.joined[0]); }
  const Stage& pool() const { return result_.graph.stage(pooled_.pool); }

  // One panel of features per task if all panels are equal, else all features; and the number of
  // lines of least cost: lines computed twice, idle cores, and panels that every task reads again.
  Decision choose() {
    const GemmShape& shape = pooled_.shape;
    if (tile_of(shape, conv(), *find_product(shape, conv(), target_), target_))
      return Decision::no("pool-window", "{}: an instruction on tiles computes it", conv().name);
    record_ = choose_gemm(shape, conv(), bytes_of_a(result_.graph, conv(), shape), target_,
                          find_product(shape, conv(), target_));
    record_.my = 1;
    record_.m_block = shape.m_extent;
    record_.kc = shape.k_extent;
    record_.panels = 0;
    record_.panels_first = false;
    record_.shared = 1;
    if (Decision fits = fits_family(record_, shape, conv()); !fits) return fits;
    const int64_t panel = int64_t{record_.nv} * record_.lanes;
    width_ = shape.n_extent % panel == 0 ? panel : shape.n_extent;
    const int64_t pooled_lines = pool().out[static_cast<size_t>(pooled_.line)].extent;
    const int64_t others = images(conv(), shape) * (shape.n_extent / width_);
    const int64_t room = stage::scratch_limit(target_) / 2;  // beside a panel of weights
    const int64_t type_bytes =
        tensor::type_bytes(result_.graph.stage(pooled_.value).values[0].type);
    const int64_t line_bytes = shape.m_extent * pooled_pitch(width_, record_.lanes) * type_bytes;
    double least = 0;
    for (int64_t by = 1; by <= pooled_lines; ++by) {
      const int64_t strips = pooled_lines / by;
      const int64_t lines = (by - 1) * pooled_.stride + pooled_.reach;
      if (pooled_lines % by != 0 || lines * line_bytes > room) continue;
      constexpr double kBytesPerCycle = 16;  // from the second cache
      const double cycles =
          static_cast<double>(lines_of_strips(pooled_, by, strips)) *
              line_cycles(record_, shape, target_) +
          static_cast<double>(strips) * weight_bytes(shape, record_.lanes) / kBytesPerCycle;
      const double here = cycles * idle_factor(strips * others, target_);
      if (by_ > 0 && here > 0.998 * least) continue;
      least = here;
      by_ = by;
      record_.y_block = lines;
    }
    if (by_ == 0)
      return Decision::no("chain-residence", "{} lines of {} bytes, only {} fit", pooled_.reach,
                          line_bytes, room);
    return Decision::yes();
  }

  void build() {
    Schedule& schedule = result_.schedule;
    schedule.name = result_.graph.name;
    schedule.target = target_.name;
    schedule.nodes.emplace_back(Row{pooled_.joined, {}, GemmTile{record_, pooled_.shape, {}}});
    schedule.nodes.emplace_back(window_row());
    Group group;
    group.lanes = record_.lanes;
    group.body = {0, 1};
    // Innermost first: each loop is put around the existing body. Panels share their rows of A.
    const Stage& stage = pool();
    if (width_ < pooled_.shape.n_extent) around("panel_of", pooled_.form.lane, width_, &group);
    if (by_ < stage.out[static_cast<size_t>(pooled_.line)].extent)
      around("lines_of", pooled_.line, by_, &group);
    for (size_t i = pooled_.batch.size(); i-- > 0;)
      around(stage.out[static_cast<size_t>(pooled_.batch[i])].name, pooled_.batch[i], 1, &group);
    schedule.phases.push_back({group});
  }

  void around(const std::string& var, int digit, int64_t by, Group* group) {
    Loop loop;
    loop.var = var;
    loop.kind = LoopKind::parallel;
    loop.trips = pool().out[static_cast<size_t>(digit)].extent / by;
    loop.drives.push_back({pooled_.pool, digit, by});
    for (StageId id : pooled_.behind) loop.drives.push_back({id, digit, by});
    if (pooled_.keeps) drive_kept(digit, by, &loop);
    loop.body = std::move(group->body);
    group->body = {static_cast<int>(result_.schedule.nodes.size())};
    result_.schedule.nodes.emplace_back(std::move(loop));
  }

  // If the convolution's result is an output, the loop also drives its digits that move with the
  // pool's.
  void drive_kept(int digit, int64_t by, Loop* loop) const {
    const Load* load = nullptr;
    for (const Load& each : pool().loads)
      if (each.source.input < 0) load = &each;
    std::vector<std::vector<Expr>> digits;
    HEDDLE_CHECK(static_cast<bool>(invert_epilogue(result_.graph, pooled_.joined, &digits)),
                 "an epilogue was inverted before");
    for (size_t d = 0; d < pooled_.value_digits.size(); ++d) {
      const int64_t factor = load->coordinates[d].factor_of(digit);
      if (factor == 0) continue;
      const Expr mine = Expr::digit(pooled_.value_digits[d]);
      for (StageId id : pooled_.joined)
        for (size_t other = 0; other < digits[id.index()].size(); ++other)
          if (digits[id.index()][other] == mine)
            loop->drives.push_back({id, static_cast<int>(other), by * factor});
    }
  }

  // Loops as of other windows: lines, blocks of columns, lines of the window, its columns, lanes.
  Row window_row() const {
    Row row;
    row.joined = {pooled_.pool};
    row.joined.insert(row.joined.end(), pooled_.behind.begin(), pooled_.behind.end());
    const Stage& stage = pool();
    const WindowForm& form = pooled_.form;
    const int out = static_cast<int>(stage.out.size());
    auto add = [&](LoopKind kind, int digit, int64_t by) {
      Own own{kind, std::vector<int>(row.joined.size(), digit < out ? digit : -1), by};
      own.digits[0] = digit;
      row.own.push_back(std::move(own));
    };
    if (by_ > 1) add(LoopKind::serial, pooled_.line, 1);
    add(LoopKind::unrolled, form.column, form.columns);
    for (int digit : form.rows) add(LoopKind::serial, digit, 1);
    if (form.across >= 0)
      add(LoopKind::unrolled, form.across,
          stage.red[static_cast<size_t>(form.across - out)].extent);
    add(LoopKind::vector, form.lane, record_.lanes);
    return row;
  }

  const target::Target& target_;
  PlacedFusion result_;
  Pooled pooled_;
  Gemm record_;
  int64_t width_ = 0, by_ = 0;  // features, and pooled lines, of a task
};

}  // namespace

Pooled match_pooled(const StageGraph& graph, StageId conv, const GemmShape& shape,
                    const target::Target& target) {
  return Matcher(graph, conv, shape, target).run();
}

bool pooled_applies(const Problem& problem, const PlacedFusion&) {
  return problem.product() && problem.product()->is_conv &&
         std::any_of(problem.graph.stages.begin(), problem.graph.stages.end(), is_pool);
}

PlacedFusion place_pooled(const Problem& problem) {
  const Problem::Product& conv = *problem.product();
  return PooledPlacer(problem.graph, conv.stage, conv.match.shape, problem.target).run();
}

int64_t pooled_pitch(int64_t columns, int lanes) { return (columns + lanes - 1) / lanes * lanes; }

PooledStrip pooled_strip(const PlacedFusion& placed) {
  const Pooled& pooled = *placed.pooled();
  const index::Region& need = placed.placement.stages[pooled.pool.index()].need;
  const int64_t by = need[static_cast<size_t>(pooled.line)].extent;
  return {(by - 1) * pooled.stride + pooled.reach,
          need[static_cast<size_t>(pooled.form.lane)].extent};
}

PooledTime pooled_time(const PlacedFusion& placed, const target::Target& target) {
  const Pooled& pooled = *placed.pooled();
  const GemmShape& shape = pooled.shape;
  const Stage& conv = placed.graph.stage(pooled.joined[0]);
  const Gemm& record = std::get<Row>(placed.schedule.nodes[0]).gemm()->record;
  const Gemm alone = choose_gemm(shape, conv, bytes_of_a(placed.graph, conv, shape), target,
                                 find_product(shape, conv, target));
  const int64_t batch = images(conv, shape), cores = std::max(target.cores, 1);
  const double weights = weight_bytes(shape, record.lanes);
  auto panels = [&](int64_t width) { return (shape.n_extent + width - 1) / width; };
  auto time = [&](int64_t lines, int64_t passes, int64_t tasks) {
    return line_cycles(record, shape, target) * static_cast<double>(lines * batch) /
               target.clock_ghz / static_cast<double>(cores) * idle_factor(tasks, target) +
           static_cast<double>(passes) * cost::moved_ns(weights, target);
  };
  const PooledStrip strip = pooled_strip(placed);
  const int64_t pooled_lines =
      placed.graph.stage(pooled.pool).out[static_cast<size_t>(pooled.line)].extent;
  const int64_t by = (strip.lines - pooled.reach) / pooled.stride + 1, strips = pooled_lines / by;
  const int64_t blocks = (shape.y_extent + alone.y_block - 1) / alone.y_block;
  PooledTime result;
  result.together_ns = time(lines_of_strips(pooled, by, strips), strips * batch,
                            strips * batch * panels(strip.width));
  result.apart_ns = time(shape.y_extent, blocks * batch,
                         blocks * batch * panels(int64_t{alone.nv} * alone.lanes));
  // The convolution's result is written (unless it is an output anyway), and read again by another
  // kernel.
  const double between =
      static_cast<double>(conv.out_elems() * tensor::type_bytes(conv.values[0].type));
  result.apart_ns += (pooled.keeps ? 1 : 2) * cost::moved_ns(between, target) + target.launch_ns;
  return result;
}

std::string pooled_key(const PlacedFusion& placed) {
  const Pooled& pooled = *placed.pooled();
  const GemmShape& shape = pooled.shape;
  const Stage& conv = placed.graph.stage(pooled.joined[0]);
  const Stage& pool = placed.graph.stage(pooled.pool);
  std::string key = gemm_key(shape, conv, bytes_of_a(placed.graph, conv, shape)) + " then pool";
  for (const Digit& digit : pool.red) key += fmt::format(" {}", digit.extent);
  key += " to";
  for (const Digit& digit : pool.out) key += fmt::format(" {}", digit.extent);
  return key;
}

}  // namespace heddle::schedule
