// split_cumulative: a window over all elements before (or after) an element (the HLO form of
// cumsum) costs extent / 2 operations per element. It is computed by blocks of kBlock instead:
//   inside = cumulative in each block, total = reduce of each block
//   result = combine(inside, cumulative of the totals, without the block's own)
// and the same again for the totals while they are long: about kBlock operations per element. If no
// block divides the extent, it is padded with neutral elements. Sums of floats are rounded in
// another order (a pass of O2, named in the notes). Remaining windows have at most kLongest
// elements.
#include "hlo/combiner.h"
#include "hlo/dim_classes.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

using hlo::Builder;
using hlo::Window;
using hlo::WindowDim;

constexpr int64_t kBlock = 16, kLongest = 48;

struct Cumulative {
  Instr* window;
  Opcode combiner;
  size_t dimension;
  bool backward;  // over the elements after it
};

bool is_neutral(const Instr* start, Opcode combiner) {
  if (!start->is(Opcode::constant)) return false;
  const Literal neutral = hlo::neutral_value(combiner, start->shape().type());
  return tensor::is_float(neutral.type()) ? start->literal().get_f64(0) == neutral.get_f64(0)
                                          : start->literal() == neutral;
}

std::optional<Cumulative> cumulative_at(Instr* x) {
  if (!x->is(Opcode::reduce_window) || x->operands().size() != 2 || !are_static_arrays(x))
    return std::nullopt;
  const std::optional<Opcode> combiner = hlo::combiner_of(*x->called()[0]);
  if (!combiner || !is_neutral(x->operand(1), *combiner)) return std::nullopt;
  const Window& window = x->attrs_as<hlo::WindowAttrs>().window;
  std::optional<Cumulative> found;
  for (size_t d = 0; d < window.dims.size(); ++d) {
    const WindowDim& w = window.dims[d];
    if (w == WindowDim{}) continue;
    const int64_t extent = x->operand(0)->shape().extents()[d];
    WindowDim before, behind;
    before.size = before.pad_low = behind.size = behind.pad_high = extent;
    --before.pad_low;
    --behind.pad_high;
    if (found || extent <= kLongest || (w != before && w != behind)) return std::nullopt;
    found = {x, *combiner, d, w == behind};
  }
  return found;
}

class Splitter {
 public:
  Splitter(const Cumulative& c, Builder& b) : c_(c), b_(b), start_(c.window->operand(1)) {}

  Instr* build() {
    Instr* x = c_.window->operand(0);
    const Ints extents = x->shape().extents();
    const int64_t extent = extents[c_.dimension];
    const int64_t filled = (extent + kBlock - 1) / kBlock * kBlock;
    Instr* result =
        split(c_.backward ? padded(x, filled - extent, 0) : padded(x, 0, filled - extent));
    if (filled == extent) return result;
    Ints from(extents.size(), 0), to = extents;
    from[c_.dimension] = c_.backward ? filled - extent : 0;
    to[c_.dimension] = from[c_.dimension] + extent;
    return b_.slice(result, from, to, {});
  }

 private:
  // Adds `low` and `high` neutral elements around the dimension; negative: removes as many.
  Instr* padded(Instr* x, int64_t low, int64_t high) {
    if (low == 0 && high == 0) return x;
    Ints lows(x->shape().extents().size(), 0), highs = lows;
    lows[c_.dimension] = low;
    highs[c_.dimension] = high;
    return b_.pad(x, start_, lows, highs, Ints(lows.size(), 0));
  }

  Instr* windowed(Instr* x, size_t dimension) {
    const Ints extents = x->shape().extents();
    Window window;
    window.dims.resize(extents.size());
    WindowDim& w = window.dims[dimension];
    w.size = extents[dimension];
    (c_.backward ? w.pad_high : w.pad_low) = w.size - 1;
    return b_.reduce_window(c_.combiner, x, start_, window);
  }

  Instr* split(Instr* x) {
    const Ints extents = x->shape().extents();
    const auto at = static_cast<int64_t>(c_.dimension);
    Ints blocks = extents;
    blocks[c_.dimension] = kBlock;
    blocks.insert(blocks.begin() + at, extents[c_.dimension] / kBlock);
    Instr* parts = b_.reshape(x, blocks);
    Instr* totals = b_.reduce({parts}, {start_}, {at + 1}, c_.window->called()[0]);
    Instr* sums = windowed(totals, c_.dimension);
    Instr* others = c_.backward ? padded(sums, -1, 1) : padded(sums, 1, -1);
    Ints kept;
    for (int64_t d = 0; d < static_cast<int64_t>(blocks.size()); ++d)
      if (d != at + 1) kept.push_back(d);
    Instr* result = b_.binary(c_.combiner, b_.broadcast(others, blocks, kept),
                              windowed(parts, c_.dimension + 1));
    return b_.reshape(result, extents);
  }

  const Cumulative& c_;
  Builder& b_;
  Instr* const start_;
};

}  // namespace

Result<bool> split_cumulative(hlo::Module& module, const PassContext& context) {
  // Blocks would split dimensions whose actual extent may be smaller.
  if (!module.symbols.empty()) return false;
  bool changed = false;
  for (Computation* computation : module.post_order()) {
    Builder b(computation);
    bool found = true, refused = false;
    while (found && !refused) {  // the totals' window may be long, too
      found = false;
      const std::vector<Instr*> all = computation->instrs();
      for (Instr* instr : all) {
        const std::optional<Cumulative> cumulative = cumulative_at(instr);
        if (!cumulative) continue;
        if (!context.allow("split_cumulative", "blocks")) {
          refused = true;
          continue;
        }
        const bool rounds = is_float(instr) && (cumulative->combiner == Opcode::add ||
                                                cumulative->combiner == Opcode::multiply);
        computation->replace_all_uses(instr, Splitter(*cumulative, b).build());
        b.check();
        if (rounds)
          context.note(
              "split_cumulative: cumulative sums are computed by blocks (rounding differs)");
        changed = found = true;
      }
      if (found) computation->remove_dead();
    }
  }
  return changed;
}

}  // namespace heddle::opt
