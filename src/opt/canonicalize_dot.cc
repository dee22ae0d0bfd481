// canonicalize_dot: reduces every dot to as few dimensions as its operands' memory order allows,
// ideally [B,M,K] x [B,K,N] (B, M, K, N merged by reshapes; each operand's dimensions in any
// order). A transpose of an operand, also under a reshape that merges dimensions, is absorbed into
// dimension numbers: index maps read memory in any order, so no transpose is computed if the result
// can stay in order and M, N and K stay whole. A transpose of the result becomes a swap of the
// operands. A product over one element is a multiplication.
//
// How: a dot's dimensions are split into atoms. Atoms of extent 1 are dropped; atoms that are
// adjacent in memory (batch and contracting ones on both sides), and stay adjacent in the result,
// are merged.
#include <algorithm>
#include <array>
#include <tuple>

#include "hlo/dim_classes.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

using hlo::Builder;
using hlo::DotAttrs;

enum class Role : uint8_t { batch, contracting, free };

// A part of a dimension. `key`: which batch or contracting pair, or which free dimension; `sub`:
// which part of it. Batch atoms (and free atoms) appear in the result in the order of (key, sub).
struct Atom {
  int64_t extent;
  Role role;
  int64_t key, sub;
  auto label() const { return std::tuple(role, key, sub); }
};

struct Side {
  Instr* x;                 // the array whose memory is read
  std::vector<Atom> atoms;  // in memory order
};

// Lists of extents by pair: how a batch or contracting dimension is split.
struct Splits {
  std::vector<Ints> batch, contracting;
  std::vector<Ints>& of(Role role) { return role == Role::batch ? batch : contracting; }
};

int64_t index_in(const Ints& list, int64_t value) {
  const auto found = std::find(list.begin(), list.end(), value);
  return found == list.end() ? -1 : found - list.begin();
}

// With the rows that were packed by them; none where no dimension is bounded.
std::vector<hlo::Symbol> symbols_beside_bounds(const hlo::Module& module) {
  if (module.symbols.empty()) return {};
  return hlo::symbols_of(module);
}

class Canonical {
 public:
  // `absorbs`: the operands whose transposes become dimension numbers, if possible.
  Canonical(Instr* dot, std::array<bool, 2> absorbs, Builder& b)
      : dot_(*dot),
        attrs_(dot->attrs_as<DotAttrs>()),
        b_(b),
        symbols_(symbols_beside_bounds(*dot->parent()->module())) {
    splits_.batch.resize(attrs_.lhs_batch_dims.size());
    splits_.contracting.resize(attrs_.lhs_contracting_dims.size());
    take_apart(0, attrs_.lhs_batch_dims, attrs_.lhs_contracting_dims, absorbs[0]);
    take_apart(1, attrs_.rhs_batch_dims, attrs_.rhs_contracting_dims, absorbs[1]);
    for (int side : {0, 1}) finish_splits(side);
    for (Side& side : sides_)
      std::erase_if(side.atoms, [](const Atom& atom) { return atom.extent == 1; });
    merge();
  }

  // Number of dimensions in M, N and K. (Batch dimensions are outer loops in any case.)
  std::array<int64_t, 3> counts() const {
    return {count(0, Role::free), count(1, Role::free), count(0, Role::contracting)};
  }

  // The dot in this form; null if it already has it.
  Instr* build() {
    if (!has(sides_[0].atoms, Role::contracting)) return multiply();
    for (int side : {0, 1}) add_missing_free(side);
    const DotAttrs attrs = canonical_attrs();
    const bool same = !absorbed_ && attrs == attrs_ &&
                      extents_of(sides_[0].atoms) == dot_.operand(0)->shape().extents() &&
                      extents_of(sides_[1].atoms) == dot_.operand(1)->shape().extents();
    if (same) return nullptr;
    const Shape shape = Shape::array(dot_.shape().type(), result_extents());
    return reshaped(b_.make(Opcode::dot, {operand(0), operand(1)}, attrs, {}, &shape));
  }

 private:
  // The operand under a transpose, or under a transpose and a reshape that only merges dimensions.
  struct Source {
    Instr* x = nullptr;
    std::vector<Ints> parts;  // the dimensions of x in each dimension of the dot's operand
  };
  static std::optional<Source> find_source(Instr* operand) {
    Instr* t = operand->is(Opcode::reshape) ? operand->operand(0) : operand;
    if (!t->is(Opcode::transpose) || !are_static_arrays(t)) return std::nullopt;
    Source source{t->operand(0), {}};
    source.parts.resize(static_cast<size_t>(operand->shape().rank()));
    const Ints from = t->shape().extents(), to = operand->shape().extents();
    for (const ReshapePiece& piece : reshape_pieces(from, to)) {
      if (piece.to_begin == piece.to_end) continue;  // a one
      if (piece.to_end != piece.to_begin + 1) return std::nullopt;
      for (int64_t d = piece.from_begin; d < piece.from_end; ++d)
        if (from[static_cast<size_t>(d)] != 1)
          source.parts[static_cast<size_t>(piece.to_begin)].push_back(
              t->dimensions()[static_cast<size_t>(d)]);
    }
    return source;
  }

  void take_apart(int side, const Ints& batch, const Ints& contracting, bool absorbs) {
    Instr* operand = dot_.operand(static_cast<size_t>(side));
    std::vector<Atom> whole;  // one per dimension
    int64_t free = 0;
    for (int64_t d = 0; d < operand->shape().rank(); ++d) {
      Atom atom{operand->shape().dim(d), Role::free, 0, 0};
      if (int64_t i = index_in(batch, d); i >= 0) {
        atom.role = Role::batch, atom.key = i;
      } else if (int64_t j = index_in(contracting, d); j >= 0) {
        atom.role = Role::contracting, atom.key = j;
      } else {
        atom.key = free++;
      }
      whole.push_back(atom);
    }
    sides_[side] = {operand, whole};
    if (!absorbs) return;
    if (std::optional<Source> source = find_source(operand)) absorb(side, whole, *source);
  }

  // Reads the source instead, if the free atoms stay in order and the pairs can still be split the
  // way it needs.
  void absorb(int side, const std::vector<Atom>& whole, const Source& source) {
    const Shape& shape = source.x->shape();
    std::vector<Atom> atoms(static_cast<size_t>(shape.rank()), Atom{1, Role::free, -1, 0});
    for (size_t d = 0; d < whole.size(); ++d) {
      Ints extents;
      for (size_t i = 0; i < source.parts[d].size(); ++i) {
        const int64_t from = source.parts[d][i];
        atoms[static_cast<size_t>(from)] = {shape.dim(from), whole[d].role, whole[d].key,
                                            static_cast<int64_t>(i)};
        extents.push_back(shape.dim(from));
      }
      if (whole[d].role == Role::free || extents.empty()) continue;
      const Ints& other = splits_.of(whole[d].role)[static_cast<size_t>(whole[d].key)];
      if (!other.empty() && other != extents) return;
    }
    std::vector<Atom> free;
    for (const Atom& atom : atoms)
      if (atom.role == Role::free && atom.extent != 1) free.push_back(atom);
    if (!std::is_sorted(free.begin(), free.end(),
                        [](const Atom& a, const Atom& b) { return a.label() < b.label(); }))
      return;
    for (const Atom& atom : whole) {
      if (atom.role == Role::free) continue;
      Ints extents;
      for (const Atom& part : atoms)
        if (part.role == atom.role && part.key == atom.key) extents.push_back(0);
      for (const Atom& part : atoms)
        if (part.role == atom.role && part.key == atom.key)
          extents[static_cast<size_t>(part.sub)] = part.extent;
      splits_.of(atom.role)[static_cast<size_t>(atom.key)] = extents;
    }
    sides_[side] = {source.x, std::move(atoms)};
    absorbed_ = true;
  }

  // Pairs that are split on the other side are split here too, by a reshape.
  void finish_splits(int side) {
    std::vector<Atom> atoms;
    for (const Atom& atom : sides_[side].atoms) {
      const bool pair = atom.role != Role::free;
      const Ints parts = pair ? splits_.of(atom.role)[static_cast<size_t>(atom.key)] : Ints{};
      if (parts.size() < 2 || atom.extent != product(parts)) {
        atoms.push_back(atom);
        continue;
      }
      for (size_t i = 0; i < parts.size(); ++i)
        atoms.push_back({parts[i], atom.role, atom.key, static_cast<int64_t>(i)});
    }
    sides_[side].atoms = std::move(atoms);
  }

  static int64_t product(const Ints& list) {
    int64_t result = 1;
    for (int64_t i : list) result *= i;
    return result;
  }

  // The atom after `atom` in memory, on a side; null: none.
  const Atom* behind(int side, const Atom& atom) const {
    const std::vector<Atom>& atoms = sides_[side].atoms;
    for (size_t i = 0; i + 1 < atoms.size(); ++i)
      if (atoms[i].label() == atom.label()) return &atoms[i + 1];
    return nullptr;
  }

  // No atom of the same role is between them in the result.
  bool adjoin_in_result(const Atom& a, const Atom& b) const {
    if (a.role != Role::batch) return true;
    std::vector<std::pair<int64_t, int64_t>> labels;
    for (const Atom& atom : sides_[0].atoms)
      if (atom.role == Role::batch) labels.emplace_back(atom.key, atom.sub);
    std::sort(labels.begin(), labels.end());
    const auto at = std::find(labels.begin(), labels.end(), std::pair(a.key, a.sub));
    return at + 1 != labels.end() && *(at + 1) == std::pair(b.key, b.sub);
  }

  // If merged after another dimension, the rows would not end at the actual extent
  // (hlo/dim_classes.h).
  bool is_dynamic(int side, const Atom& atom) const {
    const bool may_be =
        std::any_of(symbols_.begin(), symbols_.end(), [&](const hlo::Symbol& symbol) {
          return symbol.bound > 1 && atom.extent % symbol.bound == 0;
        });
    if (!may_be) return false;
    hlo::DimClasses classes(*dot_.parent()->module());
    if (!classes.assign(symbols_)) return true;
    const Instr* x = dot_.operand(static_cast<size_t>(side));
    const Ints& batch = side == 0 ? attrs_.lhs_batch_dims : attrs_.rhs_batch_dims;
    const Ints& contracting = side == 0 ? attrs_.lhs_contracting_dims : attrs_.rhs_contracting_dims;
    Ints free;
    for (int64_t d = 0; d < x->shape().rank(); ++d)
      if (!contains(batch, d) && !contains(contracting, d)) free.push_back(d);
    const Ints& dims = atom.role == Role::batch         ? batch
                       : atom.role == Role::contracting ? contracting
                                                        : free;
    const auto key = static_cast<size_t>(atom.key);
    return key >= dims.size() || (classes.symbol_of(x, dims[key]) >= 0 && atom.sub == 0);
  }

  bool mergeable(int side, const Atom& a, const Atom& b) const {
    if (a.role != b.role) return false;
    if (is_dynamic(side, b)) return false;
    if (a.role == Role::free) return true;
    const Atom* other = behind(1 - side, a);
    return other && other->label() == b.label() && adjoin_in_result(a, b);
  }

  void merge() {
    std::vector<Atom> merged[2];
    for (int side : {0, 1}) {
      const std::vector<Atom>& atoms = sides_[side].atoms;
      for (size_t i = 0; i < atoms.size(); ++i) {
        if (i > 0 && mergeable(side, atoms[i - 1], atoms[i])) {
          merged[side].back().extent *= atoms[i].extent;
        } else {
          merged[side].push_back(atoms[i]);
        }
      }
    }
    for (int side : {0, 1}) sides_[side].atoms = std::move(merged[side]);
  }

  static Ints extents_of(const std::vector<Atom>& atoms) {
    Ints extents;
    for (const Atom& atom : atoms) extents.push_back(atom.extent);
    return extents;
  }
  static bool has(const std::vector<Atom>& atoms, Role role) {
    return std::any_of(atoms.begin(), atoms.end(),
                       [&](const Atom& atom) { return atom.role == role; });
  }

  // Batch atoms in the order of the result; contracting atoms in the order of lhs's memory.
  std::vector<Atom> pairs(Role role) const {
    std::vector<Atom> list;
    for (const Atom& atom : sides_[0].atoms)
      if (atom.role == role) list.push_back(atom);
    if (role == Role::batch)
      std::sort(list.begin(), list.end(),
                [](const Atom& a, const Atom& b) { return a.label() < b.label(); });
    return list;
  }
  int64_t place(int side, const Atom& wanted) const {
    const std::vector<Atom>& atoms = sides_[side].atoms;
    for (size_t i = 0; i < atoms.size(); ++i)
      if (atoms[i].label() == wanted.label()) return static_cast<int64_t>(i);
    HEDDLE_UNREACHABLE("a pair on one side only");
  }

  Instr* operand(int side) const {
    Instr* x = sides_[side].x;
    const Ints extents = extents_of(sides_[side].atoms);
    return x->shape().extents() == extents ? x : b_.reshape(x, extents);
  }

  Ints result_extents() const {
    Ints extents = extents_of(pairs(Role::batch));
    for (const Side& side : sides_)
      for (const Atom& atom : side.atoms)
        if (atom.role == Role::free) extents.push_back(atom.extent);
    return extents;
  }

  int64_t count(int side, Role role) const {
    const std::vector<Atom>& atoms = sides_[side].atoms;
    return std::count_if(atoms.begin(), atoms.end(),
                         [&](const Atom& atom) { return atom.role == role; });
  }

  // Makes a row or column a matrix by adding a free dimension of extent 1.
  void add_missing_free(int side) {
    std::vector<Atom>& atoms = sides_[side].atoms;
    if (has(atoms, Role::free)) return;
    auto at = atoms.end();
    if (side == 0)
      at = std::find_if(atoms.begin(), atoms.end(),
                        [](const Atom& atom) { return atom.role != Role::batch; });
    atoms.insert(at, Atom{1, Role::free, 0, 0});
  }

  DotAttrs canonical_attrs() const {
    DotAttrs attrs = attrs_;
    attrs.lhs_batch_dims = attrs.rhs_batch_dims = {};
    attrs.lhs_contracting_dims = attrs.rhs_contracting_dims = {};
    for (const Atom& atom : pairs(Role::batch)) {
      attrs.lhs_batch_dims.push_back(place(0, atom));
      attrs.rhs_batch_dims.push_back(place(1, atom));
    }
    for (const Atom& atom : pairs(Role::contracting)) {
      attrs.lhs_contracting_dims.push_back(place(0, atom));
      attrs.rhs_contracting_dims.push_back(place(1, atom));
    }
    return attrs;
  }

  Instr* reshaped(Instr* result) const {
    const Ints extents = dot_.shape().extents();
    return result->shape().extents() == extents ? result : b_.reshape(result, extents);
  }

  // Each result is a single product. (0 + -0 is 0 but -0 stays -0: the one bit that may differ.)
  Instr* multiply() {
    const Type type = dot_.shape().type();
    for (const Side& side : sides_)
      if (!converts_exactly(side.x->shape().type(), type)) return nullptr;
    if (type == Type::pred) return nullptr;
    const Ints extents = result_extents();
    const std::vector<Atom> batch = pairs(Role::batch);
    int64_t free = static_cast<int64_t>(batch.size());
    std::vector<Instr*> factors;
    for (int side : {0, 1}) {
      Ints dims;
      for (const Atom& atom : sides_[side].atoms) {
        if (atom.role == Role::free) {
          dims.push_back(free++);
          continue;
        }
        const auto at = std::find_if(batch.begin(), batch.end(), [&](const Atom& other) {
          return other.label() == atom.label();
        });
        dims.push_back(at - batch.begin());
      }
      Instr* factor = b_.convert(operand(side), type);
      factors.push_back(extents.empty() ? factor : b_.broadcast(factor, extents, dims));
    }
    return reshaped(b_.binary(Opcode::multiply, factors[0], factors[1]));
  }

  Instr& dot_;
  DotAttrs attrs_;
  Builder& b_;
  Side sides_[2];
  Splits splits_;
  std::vector<hlo::Symbol> symbols_;
  bool absorbed_ = false;
};

bool is_plain_dot(const Instr* x) {
  return x->is(Opcode::dot) && x->operands().size() == 2 && are_static_arrays(x) &&
         x->operand(0)->shape().elems() != 0 && x->operand(1)->shape().elems() != 0 &&
         x->attrs_as<DotAttrs>().rest.empty();
}

// Absorbs transposes only if M, N and K do not get more dimensions than without: a kernel runs over
// one dimension of each, and a transpose written by a producer costs less than a product in pieces.
Instr* canonical(Instr* dot, Builder& b) {
  Canonical plain(dot, {false, false}, b);
  const auto limit = plain.counts();
  for (const std::array<bool, 2> absorbs : {std::array{true, true}, {true, false}, {false, true}}) {
    Canonical tried(dot, absorbs, b);
    const auto counts = tried.counts();
    bool fits = true;
    for (size_t i = 0; i < counts.size(); ++i)
      fits = fits && counts[i] <= std::max<int64_t>(limit[i], 1);
    if (fits) return tried.build();
  }
  return plain.build();
}

// transpose(dot(x, y)), where the transpose exchanges the free dimensions of x and y or permutes
// batch dimensions, becomes dot(y, x), or dot(x, y) with the batch dimensions in that order.
Instr* absorb_result_transpose(Instr* x, Builder& b) {
  Instr* dot = x->operand(0);
  if (!is_plain_dot(dot) || dot->users().size() > 1) return nullptr;
  DotAttrs attrs = dot->attrs_as<DotAttrs>();
  const auto batch = static_cast<int64_t>(attrs.lhs_batch_dims.size());
  const int64_t lhs_free = dot->operand(0)->shape().rank() - batch -
                           static_cast<int64_t>(attrs.lhs_contracting_dims.size());
  const Ints& order = x->dimensions();
  for (int64_t i = 0; i < batch; ++i)
    if (order[static_cast<size_t>(i)] >= batch) return nullptr;
  const Ints batch_order(order.begin(), order.begin() + batch);
  const Ints rest(order.begin() + batch, order.end());
  const Ints all = counting(dot->shape().rank());
  const Ints lhs(all.begin() + batch, all.begin() + batch + lhs_free);
  const Ints rhs(all.begin() + batch + lhs_free, all.end());
  auto joined = [](Ints a, const Ints& more) {
    a.insert(a.end(), more.begin(), more.end());
    return a;
  };
  const bool swaps = rest == joined(rhs, lhs) && rest != joined(lhs, rhs);
  if (!swaps && rest != joined(lhs, rhs)) return nullptr;
  attrs.lhs_batch_dims = permuted(attrs.lhs_batch_dims, batch_order);
  attrs.rhs_batch_dims = permuted(attrs.rhs_batch_dims, batch_order);
  std::vector<Instr*> operands = dot->operands();
  if (swaps) {
    std::swap(operands[0], operands[1]);
    std::swap(attrs.lhs_batch_dims, attrs.rhs_batch_dims);
    std::swap(attrs.lhs_contracting_dims, attrs.rhs_contracting_dims);
    std::reverse(attrs.operand_precision.begin(), attrs.operand_precision.end());
  }
  const Shape shape = x->shape().without_layout();
  return b.make(Opcode::dot, std::move(operands), std::move(attrs), {}, &shape);
}

Rewriter::Proposal visit(Instr* x, Builder& b) {
  if (x->is(Opcode::transpose)) return {absorb_result_transpose(x, b), "result_transpose"};
  if (!is_plain_dot(x)) return {};
  return {canonical(x, b), "dimensions"};
}

}  // namespace

Result<bool> canonicalize_dot(hlo::Module& module, const PassContext& context) {
  return rewrite_module(module, context, "canonicalize_dot", visit, [](const Instr* instr) {
    return instr->is(Opcode::dot) || instr->is(Opcode::transpose);
  });
}

}  // namespace heddle::opt
