#include "schedule/windows.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "hlo/module.h"
#include "schedule/gemm.h"

namespace heddle::schedule {

using index::Expr;

namespace {

// Limits of the code that is unrolled for one block of columns.
constexpr int64_t kMostTaps = 160;
constexpr int64_t kMostColumns = 8;
constexpr int64_t kMostAcross = 32;
// The same for groups that share lanes: every input that is moved across lanes serves all columns.
constexpr int64_t kMostGroupTaps = 512;
constexpr int64_t kMostGroupColumns = 16;

bool is_zero(const Node& node) {
  if (node.kind != Node::Kind::constant) return false;
  // -0 too: it adds nothing to a sum of products.
  const int bits = tensor::type_bits(node.type);
  const uint64_t sign = tensor::is_float(node.type) ? uint64_t{1} << (bits - 1) : 0;
  return (node.bits & ~sign) == 0;
}

// Whether the combine ignores the element, whatever the other operand.
bool is_neutral(const Stage& stage, const Node& node) {
  const hlo::Instr* root = stage.combine ? stage.combine->root() : nullptr;
  if (!root || node.kind != Node::Kind::constant || root->operands().size() != 2) return false;
  const Node& init = stage.nodes[stage.values[0].init];
  switch (root->opcode()) {
    case hlo::Opcode::add:
      return is_zero(node) && !tensor::is_complex(node.type);
    // The initial value takes part anyway, and repeating it changes nothing.
    case hlo::Opcode::maximum:
    case hlo::Opcode::minimum:
      return init.kind == Node::Kind::constant && init.bits == node.bits && init.type == node.type;
    default:
      return false;
  }
}

// Collects the guards of nested select(inside, value, neutral).
template <typename Neutral>
void collect(const Stage& stage, int number, const Neutral& neutral,
             std::vector<index::Guard>* guards) {
  const Node* node = &stage.nodes[number];
  while (node->kind == Node::Kind::op) {
    if (node->opcode == hlo::Opcode::convert) {
      node = &stage.nodes[node->operands[0]];
      continue;
    }
    if (node->opcode != hlo::Opcode::select) return;
    const Node& condition = stage.nodes[node->operands[0]];
    if (condition.kind != Node::Kind::guard || !neutral(stage.nodes[node->operands[2]])) return;
    for (const index::Guard& guard : condition.guards)
      if (std::find(guards->begin(), guards->end(), guard) == guards->end())
        guards->push_back(guard);
    node = &stage.nodes[node->operands[1]];
  }
}

// How a coordinate changes along vectors of lanes that begin at multiples of `lanes`.
enum class Along { still, neighbours, groups, uneven };

Along moves_along(const Expr& x, int digit, int64_t lanes) {
  Along result = Along::still;
  for (const index::Term& term : x.terms()) {
    if (term.atom.kind == index::Atom::Kind::digit) {
      if (term.atom.id != digit) continue;
      if (term.factor != 1 || result != Along::still) return Along::uneven;
      result = Along::neighbours;
    } else if (term.atom.inner && term.atom.inner->uses(digit)) {
      int inner = -1;
      if (!term.atom.inner->is_digit(&inner)) return Along::uneven;
      const bool whole = term.atom.by % lanes == 0;  // a panel, the same for all lanes
      if (term.atom.kind == index::Atom::Kind::quotient) {
        if (whole) continue;
        if (lanes % term.atom.by != 0 || result != Along::still) return Along::uneven;
        result = Along::groups;
      } else {
        if (!whole || term.factor != 1 || result != Along::still) return Along::uneven;
        result = Along::neighbours;
      }
    }
  }
  return result;
}

// Whether lanes along `digit` read adjacent elements, or one element for all or for a group, in
// every load, and adjacent ones in some load.
bool suits_lanes(const Stage& stage, int digit, int64_t lanes) {
  bool moves = false;
  for (const Load& load : stage.loads) {
    for (size_t i = 0; i < load.coordinates.size(); ++i) {
      const Expr& x = load.coordinates[i];
      if (!x.uses(digit)) continue;
      const Along along = moves_along(x, digit, lanes);
      if (i + 1 != load.coordinates.size() || along == Along::uneven) return false;
      moves |= along == Along::neighbours;
    }
    for (const index::Guard& guard : load.guards)
      if (guard.value.uses(digit)) return false;
  }
  for (const Node& node : stage.nodes) {
    if (node.index.uses(digit)) return false;
    for (const index::Guard& guard : node.guards)
      if (guard.value.uses(digit)) return false;
  }
  return moves && stage.position.factor_of(digit) == 1;
}

// The distance between the inputs of neighbouring groups in an access; 0: it is not by groups.
int64_t group_step(const Expr& x, int lane) {
  int64_t step = 0;
  for (const index::Term& term : x.terms()) {
    int inner = -1;
    if (!term.atom.inner || !term.atom.inner->is_digit(&inner) || inner != lane) continue;
    if (term.atom.kind == index::Atom::Kind::remainder) return 0;
    step = term.factor;
  }
  return step;
}

// The load over which the window moves: it uses reduced digits and the lanes.
const Load* moving_load(const Stage& stage, int lane) {
  for (const Load& load : stage.loads) {
    if (load.coordinates.empty() || !load.coordinates.back().uses(lane)) continue;
    // The weights of a depthwise convolution move with the window too, but not with the image.
    const int out = static_cast<int>(stage.out.size());
    bool image = false, window = false;
    for (int d = 0; d < out + static_cast<int>(stage.red.size()); ++d) {
      const bool used = std::any_of(load.coordinates.begin(), load.coordinates.end(),
                                    [&](const Expr& x) { return x.uses(d); });
      if (d != lane) (d < out ? image : window) |= used;
    }
    if (image && window) return &load;
  }
  return nullptr;
}

// The distance between neighbours along `digit`, to order digits by the load's row-major position:
// later coordinates count less.
std::pair<int64_t, int64_t> distance(const Load& load, int digit) {
  for (size_t i = 0; i < load.coordinates.size(); ++i)
    if (load.coordinates[i].uses(digit))
      return {-static_cast<int64_t>(i), std::abs(load.coordinates[i].factor_of(digit))};
  return {INT64_MIN, 0};
}

// The used digit in [begin, end) whose neighbours are closest in memory; -1: none.
int closest(const Load& load, int begin, int end, const std::vector<int>& except) {
  int best = -1;
  for (int d = begin; d < end; ++d) {
    if (distance(load, d).second == 0 || std::find(except.begin(), except.end(), d) != except.end())
      continue;
    if (best < 0 || distance(load, d) < distance(load, best)) best = d;
  }
  return best;
}

// Whether the guard limits a row of the window to a range of its digit: it has no other reduced
// digit, and a positive factor.
bool gives_range(const Stage& stage, const index::Guard& guard, int row) {
  if (!guard.value.is_affine() || guard.value.factor_of(row) <= 0) return false;
  for (size_t r = 0; r < stage.red.size(); ++r) {
    const int digit = static_cast<int>(stage.out.size() + r);
    if (digit != row && guard.value.uses(digit)) return false;
  }
  return true;
}

// The length of equal blocks, of `most` columns at most.
int64_t even_blocks(int64_t extent, int64_t most) {
  const int64_t blocks = (extent + most - 1) / most;
  return (extent + blocks - 1) / blocks;
}

int64_t extent_of(const Stage& stage, int digit) {
  return digit < 0 ? 1 : stage.red[static_cast<size_t>(digit) - stage.out.size()].extent;
}

// Columns per block: registers hold accumulators, a row of weights, and one input after the other.
int64_t choose_group_columns(const Stage& stage, const WindowForm& form,
                             const target::Target& target) {
  const int64_t across = extent_of(stage, form.across);
  int64_t taps = across;
  for (int digit : form.inputs) taps *= extent_of(stage, digit);
  const int64_t wide = tensor::type_bytes(stage.values[0].type) > 4 ? 2 : 1;
  const int64_t registers = target.vector_registers / wide - 2 - std::min<int64_t>(across, 4);
  const int64_t most = std::min({registers, kMostGroupColumns, kMostGroupTaps / taps});
  return even_blocks(stage.out[static_cast<size_t>(form.column)].extent,
                     std::max<int64_t>(1, most));
}

// The most inputs that are live at once if `columns` columns process one tap after the other.
int64_t held_inputs(int64_t columns, int64_t stride, int64_t taps, int64_t step) {
  std::map<int64_t, std::pair<int64_t, int64_t>> uses;  // by position: the first and last use
  for (int64_t k = 0; k < taps; ++k)
    for (int64_t b = 0; b < columns; ++b) {
      const int64_t now = k * columns + b;
      uses.try_emplace(b * stride + k * step, now, now).first->second.second = now;
    }
  std::vector<int64_t> change(columns * taps, 0);
  for (const auto& [place, use] : uses) {
    ++change[use.first];
    --change[use.second];
  }
  int64_t held = 0, most = 0;
  for (const int64_t by : change) most = std::max(most, held += by);
  return most;
}

// Columns per block: registers hold accumulators, inputs that several of them use, an input and a
// weight.
int64_t choose_columns(const Stage& stage, const WindowForm& form, const Load& load,
                       const target::Target& target) {
  const int64_t across = extent_of(stage, form.across);
  const int64_t stride = distance(load, form.column).second;
  const int64_t step = form.across < 0 ? 0 : distance(load, form.across).second;
  int64_t columns = std::min(kMostColumns, std::max<int64_t>(1, kMostTaps / across));
  while (columns > 1 &&
         columns + held_inputs(columns, stride, across, step) + 2 > target.vector_registers)
    --columns;
  return even_blocks(stage.out[static_cast<size_t>(form.column)].extent, columns);
}

// Blocks of columns at the borders each have separate code; about this many at most.
constexpr int64_t kMostBorderBlocks = 16;

int64_t border_blocks(const Stage& stage, const WindowForm& form,
                      const std::vector<index::Guard>& guards) {
  const int64_t extent = stage.out[form.column].extent;
  int64_t left = 0, right = 0;
  for (const index::Guard& guard : guards) {
    if (!guard.value.uses(form.column)) continue;
    // The guard over one column, for any values of the other digits.
    const int64_t step = guard.value.factor_of(form.column);
    const index::Range rest =
        bounds(guard.value - Expr::digit(form.column) * step, stage.extents());
    if (step <= 0) return extent;
    auto first_from = [&](int64_t bound) {  // column with step·column >= bound
      return std::clamp<int64_t>(bound <= 0 ? 0 : (bound + step - 1) / step, 0, extent);
    };
    left = std::max(left, first_from(guard.low - rest.low));
    right = std::max(right, extent - first_from(guard.high - rest.high));
  }
  return (left + form.columns - 1) / form.columns + (right + form.columns - 1) / form.columns;
}

}  // namespace

std::vector<index::Guard> all_guards(const Stage& stage) {
  std::vector<index::Guard> guards;
  for (const Load& load : stage.loads)
    guards.insert(guards.end(), load.guards.begin(), load.guards.end());
  for (const Node& node : stage.nodes)
    guards.insert(guards.end(), node.guards.begin(), node.guards.end());
  return guards;
}

std::vector<index::Guard> border_guards(const Stage& stage) {
  std::vector<index::Guard> guards;
  if (stage.values.size() != 1) return guards;
  const Node& result = stage.nodes[stage.values[0].result];
  if (!stage.combine) {
    if (result.kind != Node::Kind::op || result.opcode != hlo::Opcode::multiply) return guards;
    for (int side : result.operands)
      collect(stage, side, [](const Node& node) { return is_zero(node); }, &guards);
    return guards;
  }
  collect(
      stage, stage.values[0].result, [&](const Node& node) { return is_neutral(stage, node); },
      &guards);
  return guards;
}

namespace {

// Assigns roles to the reduced digits: inputs of a group, across, rows.
void sort_reduced(const Stage& stage, const Load& load, int64_t lanes,
                  const std::vector<index::Guard>& guards, WindowForm* form) {
  const int out = static_cast<int>(stage.out.size());
  const int all = out + static_cast<int>(stage.red.size());
  const Expr& x = load.coordinates.back();
  const int64_t step = group_step(x, form->lane);
  std::vector<int> inputs;
  for (int r = out; r < all; ++r) {
    const int64_t factor = std::abs(x.factor_of(r));
    if (factor > 0 && factor * (extent_of(stage, r) - 1) < step) inputs.push_back(r);
  }
  form->across = closest(load, out, all, inputs);
  for (const index::Guard& guard : guards) {
    // A window digit that moves with an image digit other than the columns is a row.
    if (form->across >= 0 && guard.value.uses(form->across) && !guard.value.uses(form->column))
      form->across = -1;
  }
  if (form->across >= 0 && extent_of(stage, form->across) > kMostAcross) form->across = -1;
  for (int r = out; r < all; ++r)
    if (r != form->across && std::find(inputs.begin(), inputs.end(), r) == inputs.end())
      form->rows.push_back(r);
  // If a group fills whole vectors, an input is one element for all lanes, at any offset.
  const bool shares = moves_along(x, form->lane, lanes) == Along::groups;
  std::vector<int>* to = shares ? &form->inputs : &form->rows;
  to->insert(to->end(), inputs.begin(), inputs.end());
}

std::optional<WindowForm> match_elements(const Stage& stage, const target::Target& target) {
  const int out = static_cast<int>(stage.out.size());
  const int64_t lanes = target.lanes(Type::f32);
  WindowForm form;
  form.lane = out - 1;
  if (stage.out[form.lane].extent < 4 || !suits_lanes(stage, form.lane, lanes)) return std::nullopt;
  const Load* load = moving_load(stage, form.lane);
  if (!load) return std::nullopt;
  form.column = closest(*load, 0, out, {form.lane});
  const int all = out + static_cast<int>(stage.red.size());
  if (form.column < 0 || closest(*load, out, all, {}) < 0) return std::nullopt;
  const bool groups = group_step(load->coordinates.back(), form.lane) > 0;
  const std::vector<index::Guard> guards = all_guards(stage), borders = border_guards(stage);
  sort_reduced(stage, *load, lanes, guards, &form);
  auto is_border = [&](const index::Guard& guard) {
    return std::find(borders.begin(), borders.end(), guard) != borders.end();
  };
  for (const index::Guard& guard : guards) {
    if (!guard.value.is_affine()) return std::nullopt;
    for (int digit : form.inputs)
      if (guard.value.uses(digit)) return std::nullopt;
    for (int row : form.rows) {
      if (!guard.value.uses(row)) continue;
      // Rows whose guards depend on the column would be masked one by one.
      if (guard.value.uses(form.column)) return std::nullopt;
      if (is_border(guard) && !gives_range(stage, guard, row)) return std::nullopt;
    }
  }
  form.columns = groups ? choose_group_columns(stage, form, target)
                        : choose_columns(stage, form, *load, target);
  if (border_blocks(stage, form, guards) > kMostBorderBlocks) return std::nullopt;
  return form;
}

// The stage rewritten to read words along its image's innermost digit, if there is an instruction
// for them and they are whole words of the image's memory.
struct InWords {
  Stage stage;
  int digit;
  const kernel::MmaDescriptor* mma;
};

std::optional<InWords> stage_in_words(const Stage& stage, const target::Target& target) {
  const std::optional<Sides> sides = find_sides(stage);
  const std::optional<Type> sums = sum_type(stage.values[0].type);
  if (!sides || !sums) return std::nullopt;
  const kernel::MmaDescriptor* mma =
      find_product(load_type(stage, sides->a), load_type(stage, sides->b), *sums, target);
  const Load& image = stage.loads[static_cast<size_t>(sides->a)];
  const Load& weights = stage.loads[static_cast<size_t>(sides->b)];
  if (!mma->is_dot() || image.source.input < 0 || weights.source.input < 0 ||
      !weights.guards.empty())
    return std::nullopt;
  for (int k = static_cast<int>(stage.out.size()); k < static_cast<int>(stage.extents().size());
       ++k) {
    const size_t red = static_cast<size_t>(k) - stage.out.size();
    if (image.coordinates[0].factor_of(k) != 1 || stage.red[red].extent % mma->k != 0) continue;
    InWords words{stage, k, mma};
    words.stage.red[red].extent /= mma->k;
    const std::vector<int64_t> extents = words.stage.extents();
    for (Load& load : words.stage.loads) {
      Expr& x = load.coordinates[0];
      x = stage::in_words(x, k, mma->k, extents);
      if (mod(x, mma->k, extents) == Expr(0)) {
        x = floor_div(x, mma->k, extents);
      } else if (load.source.input == image.source.input) {
        return std::nullopt;
      }
    }
    return words;
  }
  return std::nullopt;
}

}  // namespace

std::optional<WindowForm> match_window(const Stage& stage, const target::Target& target) {
  if (stage.values.size() != 1 || stage.red.empty() || stage.out.size() < 2) return std::nullopt;
  if (!stage.instr->is(hlo::Opcode::reduce_window) && !stage.instr->is(hlo::Opcode::convolution))
    return std::nullopt;
  if (const std::optional<InWords> words = stage_in_words(stage, target)) {
    std::optional<WindowForm> form = match_elements(words->stage, target);
    if (form && !form->inputs.empty() && form->inputs.back() == words->digit) {
      form->mma = words->mma;
      return form;
    }
  }
  return match_elements(stage, target);
}

namespace {

// Whether the map stores contiguously along `digit`, and reads inputs contiguously or one element
// for all.
bool follows_lanes(const Stage& map, int digit) {
  auto beside = [&](const Expr& x) {
    return !x.uses(digit) || (x.factor_of(digit) == 1 && !(x - Expr::digit(digit)).uses(digit));
  };
  return map.position.factor_of(digit) == 1 && beside(map.position) &&
         std::all_of(map.loads.begin(), map.loads.end(), [&](const Load& load) {
           return load.source.input < 0 || load.coordinates.empty() || beside(load.coordinates[0]);
         });
}

}  // namespace

int count_windows(const PlacedFusion& placed) {
  int count = 0;
  if (!placed.decision) return count;
  for (const ScheduleNode& node : placed.schedule.nodes) {
    const Row* row = std::get_if<Row>(&node);
    if (!row || row->gemm() || row->own.empty() || row->own.back().kind != LoopKind::vector ||
        !placed.graph.stage(row->joined[0]).is_reduction() ||
        std::none_of(row->own.begin(), row->own.end(),
                     [](const Own& own) { return own.kind == LoopKind::unrolled; }))
      continue;
    bool follow = true;
    for (size_t m = 1; m < row->joined.size(); ++m)
      follow &= follows_lanes(placed.graph.stage(row->joined[m]), row->own.back().digits[m]);
    count += follow ? 1 : 0;
  }
  return count;
}

}  // namespace heddle::schedule
