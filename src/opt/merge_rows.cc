// merge_rows: reshapes that merge dimensions of which an inner one is bounded, and those that take
// such a dimension apart again. What is there lies apart then in the padded array: its extent is a
// product of others, [batch * length]. It is gathered, so that it is the first elements of the
// merged dimension, of which the module computes how many there are (heddle.first_rows,
// hlo/symbol.h; `get-dimension-size` is what is there of a dimension, for mask_padding to fill in).
// From there on it is a count as any other. At the bounds nothing moves. Counted rows that are
// joined are counted again.
//
// Behind split_rows, which keeps such dimensions apart where that goes; one walk over the entry for
// what the walk before has made.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_set>

#include "hlo/builder.h"
#include "hlo/dim_classes.h"
#include "hlo/first_rows.h"
#include "opt/equal_counts.h"
#include "opt/match.h"
#include "opt/merged_places.h"
#include "opt/passes.h"

namespace heddle::opt {
namespace {

constexpr int kMostWalks = 64;

// The actual extent of a dimension: `times / over` of the rows of a call, or of a dimension of a
// value (images behind strides are parts of those of the input). No value: `times` itself.
struct Known {
  Instr* of = nullptr;
  int64_t dimension = 0, times = 1, over = 1;
  auto operator<=>(const Known&) const = default;
};

class Merger {
 public:
  explicit Merger(hlo::Module* module) : module_(*module), entry_(module->entry()), b_(entry_) {}

  // Whether there was something to do.
  bool walk() {
    // The outermost of what is merged is not what comes of it.
    const hlo::DimClasses all_related(module_);
    find_open(all_related);
    std::set<const Instr*> apart;
    std::vector<Instr*> reshapes;
    for (Instr* x : entry_->instrs()) {
      bool is_own = find_piece(x, true, all_related) || find_piece(x, false, all_related);
      for (const auto& [key, places] : places_)
        is_own = is_own || find_like(x, places, all_related);
      if (!is_own) continue;
      apart.insert(x);
      reshapes.push_back(x);
    }
    const hlo::DimClasses classes(module_, apart);
    find_open(classes);
    // What has been merged says of what is taken apart which rows those are.
    bool changed = false;
    for (const bool merges : {true, false})
      for (size_t i = 0; i < reshapes.size() && (merges || !changed); ++i)
        if (const auto piece = find_piece(reshapes[i], merges, classes))
          rewrite(reshapes[i], *piece, merges, classes), changed = true;
    for (Instr* x : reshapes) changed = rewrite_like(x, classes) || changed;
    if (!changed) changed = join_all(classes);
    b_.check();
    entry_->sort();
    return changed;
  }

 private:
  void find_open(const hlo::DimClasses& classes) {
    open_.clear();
    std::vector<std::pair<const Instr*, int64_t>> open;
    for (const hlo::Symbol& symbol : module_.symbols)
      for (const auto& [parameter, dimension] : symbol.places)
        open.emplace_back(entry_->parameters().at(static_cast<size_t>(parameter)), dimension);
    for (const auto& [x, dimension] : classes.and_windows_over(open))
      open_.emplace(classes.of(x, dimension), Known{const_cast<Instr*>(x), dimension});
    std::map<std::pair<const Instr*, int64_t>, Instr*> counted;  // equal counts are one
    for (Instr* x : entry_->instrs()) {
      if (!hlo::is_first_rows(*x)) continue;
      Instr* first = counted.emplace(std::pair(x->operand(1), x->shape().dim(0)), x).first->second;
      open_.emplace(classes.of(x, 0), Known{first, 0});
    }
  }

  // What a reshape merges, or takes apart, of which the padding does not stay at the end.
  std::optional<ReshapePiece> find_piece(const Instr* x, bool merges,
                                         const hlo::DimClasses& classes) const {
    if (!x->is(Opcode::reshape) || !is_static_array(x) || x->shape().elems() <= 0 ||
        (x->users().empty() && x != entry_->root()))
      return std::nullopt;
    const Instr* from = x->operand(0);
    for (const ReshapePiece& piece :
         reshape_pieces(from->shape().extents(), x->shape().extents())) {
      const bool to_one = piece.to_end == piece.to_begin + 1,
                 of_one = piece.from_end == piece.from_begin + 1;
      if (to_one == of_one || to_one != merges) continue;
      if (merges ? is_apart(from, piece.from_begin, piece.from_end, classes)
                 : is_apart(x, piece.to_begin, piece.to_end, classes))
        return piece;
    }
    return std::nullopt;
  }

  // A reshape of dimensions that follow nothing, such as positions in a grid, whose result is
  // counted as that of another one: it has merged the same dimensions.
  std::optional<ReshapePiece> find_like(const Instr* x, const MergedPlaces& places,
                                        const hlo::DimClasses& classes) const {
    if (!x->is(Opcode::reshape) || !is_static_array(x) || x->users().empty()) return std::nullopt;
    const Ints from = x->operand(0)->shape().extents();
    for (const ReshapePiece& piece : reshape_pieces(from, x->shape().extents())) {
      const Ints merged(from.begin() + piece.from_begin, from.begin() + piece.from_end);
      if (piece.to_end == piece.to_begin + 1 && merged == places.bounds &&
          classes.of(x, piece.to_begin) == classes.of(places.rows, 0))
        return piece;
    }
    return std::nullopt;
  }

  bool rewrite_like(Instr* x, const hlo::DimClasses& classes) {
    for (const auto& [key, places] : places_) {
      const auto piece = x->users().empty() ? std::nullopt : find_like(x, places, classes);
      if (!piece) continue;
      replace(x, pack_dimensions(b_, x->operand(0), piece->from_begin, places));
      return true;
    }
    return false;
  }

  bool is_counted(const Instr* x, int64_t d, const hlo::DimClasses& classes) const {
    const auto found = open_.find(classes.of(x, d));
    return found != open_.end() && hlo::is_first_rows(*found->second.of);
  }

  // All concatenations of counted rows, but for those of what has changed: of that there are no
  // classes, and what has the extent of one that was joined is only known to in the next walk.
  bool join_all(const hlo::DimClasses& classes) {
    const std::vector<Instr*> all = entry_->instrs();
    std::unordered_set<const Instr*> as_before;
    std::set<int> joined;
    for (Instr* x : all) {
      const int64_t along = x->is(Opcode::concatenate) ? x->dimensions()[0] : -1;
      const std::vector<Instr*>& operands = x->operands();
      const bool is_as_before =
          std::all_of(operands.begin(), operands.end(), [&](const Instr* operand) {
            return as_before.contains(operand) &&
                   (along < 0 || !joined.contains(classes.of(operand, along)));
          });
      if (!is_as_before) continue;
      const int of_result = along < 0 ? -1 : classes.of(x, along);
      if (join(x, classes))
        joined.insert(of_result);
      else
        as_before.insert(x);
    }
    return !joined.empty();
  }

  // A concatenation of rows that are counted: those that are there, one part behind the other, are
  // counted, too.
  bool join(Instr* x, const hlo::DimClasses& classes) {
    if (!x->is(Opcode::concatenate) || !is_static_array(x) ||
        (x->users().empty() && x != entry_->root()))
      return false;
    const int64_t along = x->dimensions()[0];
    std::vector<Instr*> parts = x->operands();
    const bool counted = std::any_of(parts.begin(), parts.end(), [&](const Instr* part) {
      return is_counted(part, along, classes);
    });
    const Joined* like = counted ? nullptr : find_joined(x, along, classes);
    if (!counted && !like) return false;
    const Joined& joined = counted ? this->joined(x, along, classes) : *like;
    for (size_t k = 0; like && k < parts.size(); ++k)
      parts[k] = counted_as(parts[k], along, like->of[k]);
    Instr* made = b_.take(parts.back(), joined.at.back(), along);
    for (size_t k = parts.size() - 1; k-- > 0;) {
      Instr* here = b_.broadcast(joined.before[k], made->shape().extents(), {along});
      made = b_.select(here, b_.take(parts[k], joined.at[k], along), made);
    }
    made->add_notes(*x);
    entry_->replace_all_uses(x, made);
    return true;
  }

  // By part: where its element is that stands at a place of the whole, and whether the place is in
  // front of its end (the last one has none).
  struct Joined {
    std::vector<Instr*> at, before;
    std::vector<Instr*> of;  // 0, 1, … of the part, of which as many count as are there; or null
    Ints bounds;             // of the parts
  };

  // A concatenation of parts that follow nothing, whose result is counted as that of another one of
  // such parts.
  const Joined* find_joined(const Instr* x, int64_t along, const hlo::DimClasses& classes) const {
    Ints bounds;
    for (const Instr* part : x->operands()) bounds.push_back(part->shape().dim(along));
    for (const auto& [key, joined] : joined_)
      if (joined.bounds == bounds && classes.of(x, along) == classes.of(joined.at[0], 0))
        return &joined;
    return nullptr;
  }

  // x, along a dimension of which as many count as of the line. Nothing else changes.
  Instr* counted_as(Instr* x, int64_t along, Instr* line) {
    if (!line) return x;
    Instr* zero = b_.broadcast(b_.scalar(Type::s32, 0), line->shape().extents(), {});
    Instr* is_there = b_.compare(hlo::Direction::ge, line, zero);
    return b_.select(b_.broadcast(is_there, x->shape().extents(), {along}), x, x);
  }

  // A line with several elements to each of the rows.
  Instr* each_times(Instr* rows, int64_t elems) {
    const int64_t all = rows->shape().dim(0);
    if (elems == all || elems % all != 0) return rows;
    return b_.reshape(b_.broadcast(rows, {all, elems / all}, {0}), {elems});
  }

  const Joined& joined(Instr* x, int64_t along, const hlo::DimClasses& classes) {
    std::vector<Known> key;
    for (const Instr* part : x->operands()) key.push_back(known(part, along, classes));
    const auto [found, added] = joined_.try_emplace(key);
    if (!added) return found->second;
    std::vector<Instr*> ends;
    for (const Known& part : key)
      ends.push_back(ends.empty() ? extent(part)
                                  : b_.binary(Opcode::add, ends.back(), extent(part)));
    const Shape line = Shape::array(Type::s32, {x->shape().dim(along)});
    Instr* rows = hlo::first_rows(b_, b_.iota(line, 0), ends.back());
    const auto all = [&](Instr* scalar) { return b_.broadcast(scalar, line.extents(), {}); };
    Joined& made = found->second;
    for (const Instr* part : x->operands()) {
      made.bounds.push_back(part->shape().dim(along));
      made.of.push_back(nullptr);
      for (const auto& [merged, places] : places_)
        if (classes.of(places.rows, 0) == classes.of(part, along))
          made.of.back() = each_times(places.rows, made.bounds.back());
    }
    for (size_t k = 0; k < key.size(); ++k) {
      made.at.push_back(k == 0 ? rows : b_.binary(Opcode::subtract, rows, all(ends[k - 1])));
      if (k + 1 < key.size())
        made.before.push_back(b_.compare(hlo::Direction::lt, rows, all(ends[k])));
    }
    return made;
  }

  bool is_apart(const Instr* x, int64_t begin, int64_t end, const hlo::DimClasses& classes) const {
    for (int64_t d = begin + 1; d < end; ++d)
      if (open_.contains(classes.of(x, d))) return true;
    return false;
  }

  void rewrite(Instr* x, const ReshapePiece& piece, bool merges, const hlo::DimClasses& classes) {
    Instr* from = x->operand(0);
    const int64_t end = merges ? last_open(from, piece.from_begin, piece.from_end, classes) : 0;
    Instr* made = merges ? pack_dimensions(b_, from, piece.from_begin,
                                           places(from, piece.from_begin, end, classes))
                         : split(x, piece, classes);
    replace(x, made);
  }

  // The end of the dynamic ones among some dimensions: those behind them stay together, as anchors
  // at a place of a grid.
  int64_t last_open(const Instr* x, int64_t begin, int64_t end,
                    const hlo::DimClasses& classes) const {
    while (end > begin + 1 && !open_.contains(classes.of(x, end - 1))) --end;
    return end;
  }

  void replace(Instr* x, Instr* made) {
    if (made->shape().extents() != x->shape().extents())
      made = b_.reshape(made, x->shape().extents());
    made->add_notes(*x);
    entry_->replace_all_uses(x, made);
  }

  // How many are there of what is taken apart: so many for each row.
  Instr* count_of(const MergedPlaces& places, const ReshapePiece& piece, int64_t end,
                  const Instr* x) {
    int64_t each = 1;
    for (int64_t d = end; d < piece.to_end; ++d) each *= x->shape().dim(d);
    Instr* rows = places.rows->operand(1);
    return each == 1
               ? rows
               : b_.binary(Opcode::multiply, rows, b_.scalar(Type::s32, static_cast<double>(each)));
  }

  Instr* split(Instr* x, const ReshapePiece& piece, const hlo::DimClasses& classes) {
    Instr* from = x->operand(0);
    const int64_t end =
        from->is(Opcode::iota) ? piece.to_end : last_open(x, piece.to_begin, piece.to_end, classes);
    const MergedPlaces& places = this->places(x, piece.to_begin, end, classes);
    if (piece.from_begin == 0 && !from->is(Opcode::iota) &&
        classes.of(from, 0) != classes.of(places.rows, 0))  // else it would be a copy
      from = hlo::first_rows(b_, from, count_of(places, piece, end, x));
    if (end != piece.to_end) {
      Ints apart = from->shape().extents();
      const Ints all = x->shape().extents();
      const auto at = apart.begin() + piece.from_begin;
      *at = places.rows->shape().dim(0);
      apart.insert(at + 1, all.begin() + end, all.begin() + piece.to_end);
      from = b_.reshape(from, apart);
    }
    Ints bounds;
    std::vector<Instr*> along;
    for (int64_t d = piece.to_begin; d < end; ++d) {
      bounds.push_back(x->shape().dim(d));
      along.push_back(b_.iota(Shape::array(Type::s32, {bounds.back()}), 0));
    }
    Instr* in_packed = places_in_packed(b_, bounds, places.extents, along);
    if (from->is(Opcode::iota)) return numbers(from, piece.from_begin, in_packed);
    return b_.take(from, in_packed, piece.from_begin);
  }

  // The numbers along a dimension, of which `at` is taken apart.
  Instr* numbers(const Instr* iota, int64_t at, Instr* in_packed) {
    Ints extents = iota->shape().extents();
    const Ints parts = in_packed->shape().extents();
    extents.erase(extents.begin() + at);
    extents.insert(extents.begin() + at, parts.begin(), parts.end());
    const Type type = iota->shape().type();
    const auto more = static_cast<int64_t>(parts.size()) - 1;
    const int64_t along = iota->attrs_as<hlo::DimensionAttrs>().dimension;
    if (along != at) return b_.iota(Shape::array(type, extents), along > at ? along + more : along);
    Ints dimensions;
    for (int64_t d = at; d <= at + more; ++d) dimensions.push_back(d);
    return b_.broadcast(b_.convert(in_packed, type), extents, dimensions);
  }

  const MergedPlaces& places(Instr* x, int64_t begin, int64_t end, const hlo::DimClasses& classes) {
    std::vector<Known> key;
    Ints bounds;
    for (int64_t d = begin; d < end; ++d) {
      key.push_back(known(x, d, classes));
      bounds.push_back(x->shape().dim(d));
    }
    const auto [made, added] = places_.try_emplace(key);
    if (!added) return made->second;
    std::vector<Instr*> extents;
    for (const Known& one : key) extents.push_back(extent(one));
    return made->second = make_places(b_, bounds, extents);
  }

  Known known(const Instr* x, int64_t d, const hlo::DimClasses& classes) const {
    const int64_t extent = x->shape().dim(d);
    const auto found = open_.find(classes.of(x, d));
    if (found == open_.end()) return {nullptr, 0, extent};
    Known result = found->second;
    const int64_t whole = result.of->shape().dim(result.dimension);
    const int64_t common = std::gcd(extent, whole);
    result.times = extent / common;
    result.over = whole / common;
    return result;
  }

  Instr* extent(const Known& known) {
    Instr*& made = extents_[known];
    if (made) return made;
    const auto scalar = [&](int64_t n) { return b_.scalar(Type::s32, static_cast<double>(n)); };
    if (!known.of) return made = scalar(known.times);
    made = hlo::is_first_rows(*known.of) ? known.of->operand(1)
                                         : b_.make(Opcode::get_dimension_size, {known.of},
                                                   hlo::DimensionAttrs{known.dimension});
    if (known.times != 1) made = b_.binary(Opcode::multiply, made, scalar(known.times));
    if (known.over != 1) made = b_.binary(Opcode::divide, made, scalar(known.over));
    return made;
  }

  const hlo::Module& module_;
  hlo::Computation* entry_;
  hlo::Builder b_;
  std::map<int, Known> open_;  // by class: dynamic dimensions
  std::map<Known, Instr*> extents_;
  std::map<std::vector<Known>, MergedPlaces> places_;
  std::map<std::vector<Known>, Joined> joined_;
};

}  // namespace

Result<bool> merge_rows(hlo::Module& module, const PassContext&) {
  if (!module.symbols.empty() && module.symbols[0].extent >= 0) return false;
  const std::vector<Instr*>& all = module.entry()->instrs();
  const bool counts = std::any_of(all.begin(), all.end(),
                                  [](const Instr* instr) { return hlo::is_first_rows(*instr); });
  if (module.symbols.empty() && !counts) return false;
  share_equal_counts(module.entry());
  Merger merger(&module);
  int walks = 0;
  while (walks < kMostWalks && merger.walk()) ++walks;
  if (walks > 0) {  // sizes of what was merged, and alike
    const hlo::DimClasses classes(module);
    share_equal_counts(module.entry(), &classes);
  }
  module.entry()->remove_dead();
  return walks > 0;
}

}  // namespace heddle::opt
