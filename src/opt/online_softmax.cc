// online_softmax: softmax(t) · V over many keys, t = f(Q · K), is computed by tiles of keys:
//   m_p = max(max_j t, least), e = exp(t - m_p), z_p = sum_j e, O_p = (e / z_p) · V_p   per tile
//   M = max_p m_p, w_p = z_p * exp(m_p - M), O = sum_p w_p * O_p / sum_p w_p
// so that the scores of a tile and many queries fit on chip and are never written: the tiles are
// batches of one back-to-back GEMM. A tile in which every key is masked (-inf) has weight 0; if all
// are, the result is NaN as before. Rounding: each weight is a product of two exponentials and is
// rounded twice more, the sums run tile by tile (a pass of O2, named in the notes). Scores that fit
// unchanged are not tiled; a second run finds no wider ones.
#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>

#include "hlo/combiner.h"
#include "hlo/dim_classes.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

using hlo::Builder;

// With fewer keys a block of scores fits; with few queries memory bandwidth is the limit, not
// space.
constexpr int64_t kLeastKeys = 1280, kLeastQueries = 48;
constexpr int64_t kLeastTile = 192, kMostTile = 768, kVector = 16;
constexpr size_t kMostSteps = 24;  // between scores and softmax

bool has_one_reader(const Instr* x) { return x->users().size() == 1; }

// The widest tile of whole vectors that divides the keys; else equal tiles, of which the last is
// padded.
int64_t tile_of(int64_t keys) {
  for (int64_t tile = kMostTile; tile >= kLeastTile; tile -= kVector)
    if (keys % tile == 0) return tile;
  const int64_t tiles = (keys + kMostTile - 1) / kMostTile;
  return ((keys + tiles - 1) / tiles + kVector - 1) / kVector * kVector;
}

// The operand of a broadcast of one value per row: over all dimensions but the last.
Instr* row_value(Instr* x) {
  if (!x->is(Opcode::broadcast) || !has_one_reader(x)) return nullptr;
  const int64_t rows = x->shape().rank() - 1;
  const bool fits = x->operand(0)->shape().rank() == rows && x->dimensions() == counting(rows);
  return fits ? x->operand(0) : nullptr;
}

// The operand of a reduce over the last dimension by `opcode`, from its neutral element.
Instr* reduced(Instr* x, Opcode opcode, double neutral) {
  if (!x->is(Opcode::reduce) || x->operands().size() != 2 ||
      x->dimensions() != Ints{x->operand(0)->shape().rank() - 1} ||
      hlo::combiner_of(*x->called()[0]) != opcode)
    return nullptr;
  const bool starts =
      is_splat(x->operand(1), neutral) || (opcode == Opcode::add && is_splat(x->operand(1), -0.0));
  return starts ? x->operand(0) : nullptr;
}

struct Attention {
  Instr *scores = nullptr, *weighted = nullptr;  // the two dots
  Instr* logits = nullptr;                       // t
  int64_t batch = 0;                             // leading batch dimensions of both
  int64_t key_of_k = 0, key_of_v = 0, tile = 0;  // dimensions of K and V
  std::vector<Instr*> path;                      // elementwise, from the scores to t, in order
};

bool has_plain_attrs(const Instr* dot) {
  return dot->is(Opcode::dot) && dot->operands().size() == 2 && are_static_arrays(dot) &&
         dot->shape().type() == Type::f32 && dot->attrs_as<hlo::DotAttrs>().rest.empty();
}

// Matches softmax(t) from its end; null: no match, or another reader of an intermediate value.
Instr* logits_of(Instr* softmax) {
  if (!softmax->is(Opcode::divide) || !has_one_reader(softmax)) return nullptr;
  Instr *weights = softmax->operand(0), *sum = row_value(softmax->operand(1));
  if (!sum || !has_one_reader(sum) || reduced(sum, Opcode::add, 0) != weights ||
      !weights->is(Opcode::exponential) || weights->users().size() != 2)
    return nullptr;
  Instr* shifted = weights->operand(0);
  if (!shifted->is(Opcode::subtract) || !has_one_reader(shifted)) return nullptr;
  Instr *t = shifted->operand(0), *most = row_value(shifted->operand(1));
  const double least = -std::numeric_limits<double>::infinity();
  if (!most || !has_one_reader(most) || reduced(most, Opcode::maximum, least) != t ||
      t->users().size() != 2)
    return nullptr;
  return t;
}

// Finds the one dot that `t` depends on and the operators in between, which must have no other
// readers.
class PathFinder {
 public:
  explicit PathFinder(Attention* found) : found_(*found) {}

  bool run() {
    if (!visit(found_.logits) || !found_.scores) return false;
    const auto is_inside = [&](Instr* x) {
      return std::all_of(x->users().begin(), x->users().end(), [&](Instr* user) {
        return std::find(found_.path.begin(), found_.path.end(), user) != found_.path.end();
      });
    };
    for (Instr* x : found_.path)
      if (x != found_.logits && !is_inside(x)) return false;
    return found_.scores == found_.logits || is_inside(found_.scores);
  }

 private:
  // Whether it depends elementwise on the scores.
  bool visit(Instr* x) {
    if (const auto known = leads_.find(x); known != leads_.end()) return known->second;
    leads_[x] = false;
    if (x->shape().extents() != found_.logits->shape().extents() || leads_.size() > kMostSteps)
      return false;
    if (x->is(Opcode::dot)) {
      if (found_.scores) return false;
      found_.scores = x;
    } else {
      bool any = false;
      if (!is_elementwise(x)) return false;
      for (Instr* operand : x->operands()) any |= visit(operand);
      if (!any) return false;
      found_.path.push_back(x);
    }
    return leads_[x] = true;
  }

  Attention& found_;
  std::unordered_map<Instr*, bool> leads_;
};

// Requires that dimensions 0, 1, ... of both are the batches.
std::optional<Attention> attention_at(Instr* weighted) {
  if (!has_plain_attrs(weighted)) return std::nullopt;
  Attention found;
  found.weighted = weighted;
  const auto& out = weighted->attrs_as<hlo::DotAttrs>();
  Instr* softmax = weighted->operand(0);
  const int64_t rank = softmax->shape().rank(), keys = softmax->shape().dim(rank - 1);
  found.batch = static_cast<int64_t>(out.lhs_batch_dims.size());
  if (keys < kLeastKeys || out.lhs_contracting_dims != Ints{rank - 1} ||
      out.lhs_batch_dims != counting(found.batch) || out.rhs_contracting_dims.size() != 1)
    return std::nullopt;
  found.key_of_v = out.rhs_contracting_dims[0];
  found.tile = tile_of(keys);
  found.logits = logits_of(softmax);
  if (!found.logits || !PathFinder(&found).run() || !has_plain_attrs(found.scores))
    return std::nullopt;
  const auto& in = found.scores->attrs_as<hlo::DotAttrs>();
  const Shape& k = found.scores->operand(1)->shape();
  if (static_cast<int64_t>(in.rhs_batch_dims.size()) != found.batch ||
      k.rank() != found.batch + static_cast<int64_t>(in.rhs_contracting_dims.size()) + 1)
    return std::nullopt;
  while (contains(in.rhs_batch_dims, found.key_of_k) ||
         contains(in.rhs_contracting_dims, found.key_of_k))
    ++found.key_of_k;
  int64_t queries = 1;
  for (int64_t d = found.batch; d + 1 < rank; ++d) queries *= softmax->shape().dim(d);
  if (queries < kLeastQueries) return std::nullopt;
  return found;
}

// The list of dimensions after another one is inserted at `place`.
Ints moved(const Ints& dims, int64_t place) {
  Ints result;
  for (const int64_t d : dims) result.push_back(d + (d >= place ? 1 : 0));
  return result;
}

class Tiler {
 public:
  Tiler(const Attention& attention, Builder& b)
      : a_(attention),
        b_(b),
        rank_(a_.logits->shape().rank()),
        keys_(a_.logits->shape().dim(rank_ - 1)),
        tiles_((keys_ + a_.tile - 1) / a_.tile) {}

  Instr* build() {
    const double least = std::numeric_limits<float>::lowest();
    Instr* t = without_padding(tiled_logits());
    // Start from the least number: a fully masked tile gets weights of 0.
    Instr* most = b_.reduce({t}, {b_.scalar(Type::f32, least)}, {rank_},
                            b_.scalar_computation(Opcode::maximum, Type::f32));
    Instr* weights = b_.unary(Opcode::exponential, b_.binary(Opcode::subtract, t, over_keys(most)));
    Instr* sum = b_.reduce(Opcode::add, weights, {rank_});
    const double tiny = std::numeric_limits<float>::min();
    Instr* divisor = b_.binary(Opcode::maximum, sum, b_.full(sum->shape(), tiny));
    Instr* part = weighted_sum(b_.binary(Opcode::divide, weights, over_keys(divisor)));
    return combine(most, sum, part);
  }

 private:
  static Ints without_last(const Instr* x) {
    Ints extents = x->shape().extents();
    extents.pop_back();
    return extents;
  }

  Instr* over_keys(Instr* row) {
    Ints extents = row->shape().extents();
    extents.push_back(a_.tile);
    return b_.broadcast(row, extents, counting(row->shape().rank()));
  }

  // Pads with zeros for the surplus keys.
  Instr* padded(Instr* x, int64_t dimension) {
    const int64_t more = tiles_ * a_.tile - keys_;
    if (more == 0) return x;
    const Ints none(static_cast<size_t>(x->shape().rank()), 0);
    Ints high = none;
    high[dimension] = more;
    return b_.pad(x, b_.scalar(x->shape().type(), 0), none, high, none);
  }

  // Masks the padded keys, so that they have no weight.
  Instr* without_padding(Instr* t) {
    if (tiles_ * a_.tile == keys_) return t;
    const Shape all = Shape::array(Type::s32, {tiles_ * a_.tile});
    Instr* real =
        b_.compare(hlo::Direction::lt, b_.iota(all, 0), b_.full(all, static_cast<double>(keys_)));
    Instr* keep =
        b_.broadcast(b_.reshape(real, {tiles_, a_.tile}), t->shape().extents(), {a_.batch, rank_});
    const double least = -std::numeric_limits<double>::infinity();
    return b_.select(keep, t, b_.full(t->shape(), least));
  }

  // [rows, keys] as [tiles, rows, keys of one tile], the tiles after that many batch dimensions.
  Instr* cut_last(Instr* x, int64_t batches) {
    x = padded(x, x->shape().rank() - 1);
    Ints extents = without_last(x);
    const int64_t rows = x->shape().rank() - 1;
    extents.insert(extents.end(), {tiles_, a_.tile});
    Ints order = counting(rows + 2);
    order.erase(order.begin() + rows);
    order.insert(order.begin() + batches, rows);
    Instr* split = b_.reshape(x, extents);
    return is_counting(order) ? split : b_.transpose(split, order);
  }

  // Tiles the other inputs besides the scores: masks, factors.
  Instr* tiled(Instr* x) {
    if (x->shape().rank() == 0) return x;
    if (!x->is(Opcode::broadcast) || !is_ascending(x->dimensions())) return cut_last(x, a_.batch);
    Instr* from = x->operand(0);
    Ints dims = x->dimensions();
    const bool by_key = !dims.empty() && dims.back() == rank_ - 1;
    const auto batches =
        std::count_if(dims.begin(), dims.end(), [&](int64_t d) { return d < a_.batch; });
    if (by_key) from = cut_last(from, batches);
    dims = moved(dims, a_.batch);
    if (by_key) dims.insert(dims.begin() + batches, a_.batch);
    Ints extents = x->shape().extents();
    extents.back() = a_.tile;
    extents.insert(extents.begin() + a_.batch, tiles_);
    return b_.broadcast(from, extents, dims);
  }

  Instr* tiled_logits() {
    std::unordered_map<Instr*, Instr*> made{{a_.scores, tiled_scores()}};
    for (Instr* step : a_.path) {
      std::vector<Instr*> operands;
      for (Instr* operand : step->operands()) {
        Instr*& one = made[operand];
        if (!one) one = tiled(operand);
        operands.push_back(one);
      }
      const Shape shape = Shape::array(step->shape().type(), made.at(a_.scores)->shape().extents());
      made[step] = b_.make(step->opcode(), operands, step->attrs(), {}, &shape);
    }
    return made.at(a_.logits);
  }

  // Splits dimension `key` into two: tile, and key within it.
  Instr* cut(Instr* x, int64_t key) {
    x = padded(x, key);
    Ints extents = x->shape().extents();
    extents[key] = a_.tile;
    extents.insert(extents.begin() + key, tiles_);
    return b_.reshape(x, extents);
  }

  Instr* tiled_scores() {
    auto attrs = a_.scores->attrs_as<hlo::DotAttrs>();
    Instr* q = a_.scores->operand(0);
    const int64_t place = attrs.lhs_batch_dims == counting(a_.batch) ? a_.batch : 0;
    Ints extents = q->shape().extents();
    extents.insert(extents.begin() + place, tiles_);
    q = b_.broadcast(q, extents, moved(counting(q->shape().rank()), place));
    attrs.lhs_batch_dims = moved(attrs.lhs_batch_dims, place);
    attrs.lhs_batch_dims.push_back(place);
    attrs.lhs_contracting_dims = moved(attrs.lhs_contracting_dims, place);
    attrs.rhs_batch_dims = moved(attrs.rhs_batch_dims, a_.key_of_k);
    attrs.rhs_batch_dims.push_back(a_.key_of_k);
    attrs.rhs_contracting_dims = moved(attrs.rhs_contracting_dims, a_.key_of_k);
    return b_.dot(q, cut(a_.scores->operand(1), a_.key_of_k), attrs);
  }

  Instr* weighted_sum(Instr* weights) {
    auto attrs = a_.weighted->attrs_as<hlo::DotAttrs>();
    attrs.lhs_batch_dims = counting(a_.batch + 1);
    attrs.lhs_contracting_dims = {rank_};
    attrs.rhs_batch_dims = moved(attrs.rhs_batch_dims, a_.key_of_v);
    attrs.rhs_batch_dims.push_back(a_.key_of_v);
    attrs.rhs_contracting_dims = {a_.key_of_v + 1};
    return b_.dot(weights, cut(a_.weighted->operand(1), a_.key_of_v), attrs);
  }

  // Combines the tiles by their weights.
  Instr* combine(Instr* most, Instr* sum, Instr* part) {
    const Ints of_tiles = most->shape().extents();
    const Ints others = moved(counting(most->shape().rank() - 1), a_.batch);
    Instr* all = b_.reduce(Opcode::maximum, most, {a_.batch});
    Instr* less = b_.binary(Opcode::subtract, most, b_.broadcast(all, of_tiles, others));
    Instr* weight = b_.binary(Opcode::multiply, b_.unary(Opcode::exponential, less), sum);
    Instr* whole = b_.reduce(Opcode::add, weight, {a_.batch});
    Instr* weighted =
        b_.binary(Opcode::multiply, part,
                  b_.broadcast(weight, part->shape().extents(), counting(weight->shape().rank())));
    Instr* result = b_.reduce(Opcode::add, weighted, {a_.batch});
    return b_.binary(
        Opcode::divide, result,
        b_.broadcast(whole, result->shape().extents(), counting(whole->shape().rank())));
  }

  const Attention& a_;
  Builder& b_;
  const int64_t rank_;  // of the scores; in tiled arrays, the key dimension
  const int64_t keys_, tiles_;
};

}  // namespace

Result<bool> online_softmax(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  // Tiles of a bounded number of keys would not stop at the actual extent.
  const std::vector<hlo::Symbol> symbols = hlo::symbols_of(module);
  std::optional<hlo::DimClasses> classes;
  if (!symbols.empty()) classes.emplace(module);
  if (classes && !classes->assign(symbols)) return false;
  const auto is_bounded = [&](const Instr* weighted) {
    const auto& attrs = weighted->attrs_as<hlo::DotAttrs>();
    return classes &&
           classes->symbol_of(weighted->operand(0), attrs.lhs_contracting_dims.at(0)) >= 0;
  };
  for (Computation* computation : module.post_order()) {
    Builder b(computation);
    const std::vector<Instr*> all = computation->instrs();
    std::vector<Attention> found;
    for (Instr* instr : all)
      if (std::optional<Attention> attention = attention_at(instr); attention && !is_bounded(instr))
        found.push_back(*attention);
    for (const Attention& attention : found) {
      if (!context.allow("online_softmax", "tiles")) continue;
      computation->replace_all_uses(attention.weighted, Tiler(attention, b).build());
      b.check();
      context.note(
          "online_softmax: attention over many keys is computed in tiles of keys, which are "
          "weighted afterwards (rounding differs)");
      changed = true;
    }
    if (!found.empty()) computation->remove_dead();
  }
  return changed;
}

}  // namespace heddle::opt
