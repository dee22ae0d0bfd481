// pack_rows: rows of sequences whose number and length are both bounded, as one matrix. In
// [batch, rows, features] the rows that are there lie apart, wherever a sequence is shorter than
// the bound; so a product would be one of each sequence, of few rows. What looks at each row by
// itself is computed on [batch * rows, features] instead, of which the first rows are those that
// are there (heddle.first_rows, hlo/symbol.h): products with constant matrices, and what is
// elementwise, reduced or broadcast along the features between them. Rows are gathered where such a
// stretch begins with others, and spread again where it ends: two copies, against a product of full
// tiles. With a fixed batch dynamic_outermost does the same without copies. One walk over the
// entry.
//
// Results are the same to the bit, but for products, whose kernels are others. What stands in the
// padding of a value that was spread is of other rows; so values that mask_padding has masked
// there, and what is made of them along the same dimension, are left alone.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "hlo/builder.h"
#include "hlo/dim_classes.h"
#include "hlo/first_rows.h"
#include "opt/match.h"
#include "opt/passes.h"

namespace heddle::opt {
namespace {

using Pair = std::pair<int, int>;  // symbols of the sequences and of their rows

// Where rows are, of a pair of symbols with bounds B and T. All s32.
struct Places {
  Instr* sequence = nullptr;   // [B*T]: of each packed row
  Instr* row = nullptr;        // [B*T]: in its sequence
  Instr* of_packed = nullptr;  // [B*T, 2]: both
  Instr* in_packed = nullptr;  // [B, T]: the packed row
};

Ints without_first(const Ints& extents, size_t count) {
  return {extents.begin() + static_cast<std::ptrdiff_t>(count), extents.end()};
}

Ints shifted(Ints dimensions, int64_t by) {
  for (int64_t& d : dimensions) d += by;
  return dimensions;
}

class Packer {
 public:
  explicit Packer(hlo::Module* module)
      : module_(*module),
        entry_(module->entry()),
        b_(entry_),
        classes_(*module),
        symbols_(module->symbols) {}

  bool run() {
    if (symbols_.size() < 2 || !classes_.assign(symbols_)) return false;
    const std::vector<Instr*> all = entry_->instrs();
    if (std::none_of(all.begin(), all.end(), [&](Instr* x) { return is_product(x); })) return false;
    for (Instr* x : all) visit(x);
    if (packed_.empty()) return false;
    if (Instr* root = entry_->root(); packed_.count(root)) entry_->set_root(spread(root));
    b_.check();
    entry_->remove_dead();
    entry_->sort();
    return true;
  }

 private:
  void visit(Instr* x) {
    find_masked(x);
    const std::optional<Pair> pair = rows_of(x);
    if (Instr* made = pair && !is_masked(x) ? packed_form(x, *pair) : nullptr) {
      b_.check();
      made->add_notes(*x);
      packed_.emplace(x, made);
      return;
    }
    for (size_t i = 0; i < x->operands().size(); ++i)
      if (packed_.count(x->operand(i))) entry_->replace_operand(x, i, spread(x->operand(i)));
  }

  // [batch, rows, ...], both at their bounds, and nothing else dynamic.
  std::optional<Pair> rows_of(const Instr* x) const {
    if (!is_static_array(x) || x->shape().rank() < 2) return std::nullopt;
    const Pair pair{classes_.symbol_of(x, 0), classes_.symbol_of(x, 1)};
    if (pair.first < 0 || pair.second < 0 || pair.first == pair.second) return std::nullopt;
    for (int64_t d = 2; d < x->shape().rank(); ++d)
      if (classes_.symbol_of(x, d) >= 0) return std::nullopt;
    if (x->shape().dim(0) != bound(pair.first) || x->shape().dim(1) != bound(pair.second))
      return std::nullopt;
    return pair;
  }

  int64_t bound(int symbol) const { return symbols_[static_cast<size_t>(symbol)].bound; }

  // With a matrix that no extent reaches.
  bool is_product(const Instr* x) const {
    if (!x->is(Opcode::dot) || !is_float(x) || !rows_of(x)) return false;
    const auto& attrs = x->attrs_as<hlo::DotAttrs>();
    const Instr* matrix = x->operand(1);
    for (int64_t d = 0; d < matrix->shape().rank(); ++d)
      if (classes_.symbol_of(matrix, d) >= 0) return false;
    return attrs.rest.empty() && attrs.lhs_batch_dims.empty() && rows_of(x->operand(0)) &&
           std::all_of(attrs.lhs_contracting_dims.begin(), attrs.lhs_contracting_dims.end(),
                       [](int64_t d) { return d >= 2; });
  }

  // Dimensions in whose padding the value is what a mask has put there.
  void find_masked(const Instr* x) {
    std::set<int64_t>& found = masked_[x];
    for (size_t k = 0; k < x->operands().size(); ++k) {
      const Instr* operand = x->operand(k);
      if (k == 0 && x->is(Opcode::select) && hlo::is_padding_mask(operand)) {
        const Ints along =
            operand->is(Opcode::broadcast) ? operand->dimensions() : counting(x->shape().rank());
        found.insert(along.begin(), along.end());
      }
      const auto of_operand = masked_.find(operand);
      if (of_operand == masked_.end() || of_operand->second.empty()) continue;
      for (const hlo::DimLink& link : hlo::index_map(*x, k).links)
        for (int64_t d = link.from; d < link.from_end; ++d)
          if (of_operand->second.count(d) > 0)
            for (int64_t to = link.to; to < link.to_end; ++to) found.insert(to);
    }
  }

  bool is_masked(const Instr* x) const {
    const std::set<int64_t>& found = masked_.at(x);
    return found.count(0) > 0 || found.count(1) > 0;
  }

  bool is_packed(const Instr* x) const { return packed_.count(x) > 0; }

  // x as [batch * rows, ...]; null: it is left as it is.
  Instr* packed_form(Instr* x, Pair pair) {
    const auto same = [&](const Instr* operand) { return rows_of(operand) == pair; };
    if (x->is(Opcode::gather)) return looked_up(x, pair);
    if (is_product(x)) return same(x->operand(0)) ? product(x, pair) : nullptr;
    const std::vector<Instr*>& operands = x->operands();
    const bool follows = std::any_of(operands.begin(), operands.end(), [&](const Instr* operand) {
      return is_packed(operand) && same(operand);
    });
    if (!follows) return nullptr;
    if (is_elementwise(x)) return elementwise(x, pair);
    const Shape shape = packed_shape(x, pair);
    switch (x->opcode()) {
      case Opcode::reshape:
        return b_.reshape(packed_.at(operands[0]), shape.extents());
      case Opcode::reduce:
        return reduced(x);
      case Opcode::broadcast:
        return x->dimensions()[0] == 0 && x->dimensions()[1] == 1 ? repeated(x, pair) : nullptr;
      case Opcode::transpose:
        if (x->dimensions()[0] != 0 || x->dimensions()[1] != 1) return nullptr;
        return b_.transpose(packed_.at(operands[0]), inside(x->dimensions()));
      case Opcode::slice:
        return part(x);
      default:
        return nullptr;
    }
  }

  Shape packed_shape(const Instr* x, Pair pair) const {
    Ints extents = without_first(x->shape().extents(), 1);
    extents[0] = bound(pair.first) * bound(pair.second);
    return Shape::array(x->shape().type(), extents);
  }

  // Dimensions of packed form: one fewer in front.
  static Ints inside(const Ints& dimensions) {
    Ints result = shifted(without_first(dimensions, 1), -1);
    result[0] = 0;
    return result;
  }

  Instr* product(Instr* x, Pair pair) {
    auto attrs = x->attrs_as<hlo::DotAttrs>();
    attrs.lhs_contracting_dims = shifted(attrs.lhs_contracting_dims, -1);
    const Shape shape = packed_shape(x, pair);
    return b_.make(Opcode::dot, {pack(x->operand(0), pair), x->operand(1)}, std::move(attrs), {},
                   &shape);
  }

  // Rows of a table, by [batch, rows].
  Instr* looked_up(Instr* x, Pair pair) {
    auto attrs = x->attrs_as<hlo::GatherAttrs>();
    const Ints features = shifted(counting(x->shape().rank() - 2), 2);
    if (attrs.index_vector_dim != 2 || attrs.offset_dims != features ||
        attrs.start_index_map != Ints{0} || attrs.collapsed_slice_dims != Ints{0} ||
        !attrs.operand_batching_dims.empty() || rows_of(x->operand(1)) != pair ||
        masked_.at(x->operand(1)).size() > 0)
      return nullptr;
    attrs.index_vector_dim = 1;
    attrs.offset_dims = shifted(attrs.offset_dims, -1);
    return b_.gather(x->operand(0), pack(x->operand(1), pair), std::move(attrs));
  }

  Instr* elementwise(Instr* x, Pair pair) {
    std::vector<Instr*> operands;
    for (Instr* operand : x->operands())
      operands.push_back(operand->shape().rank() == 0 ? operand : pack(operand, pair));
    const Shape shape = packed_shape(x, pair);
    return b_.make(x->opcode(), std::move(operands), x->attrs(), {}, &shape);
  }

  Instr* reduced(Instr* x) {
    if (x->operands().size() != 2) return nullptr;
    for (int64_t d : x->dimensions())
      if (d < 2) return nullptr;
    return b_.reduce({packed_.at(x->operand(0))}, {x->operand(1)}, shifted(x->dimensions(), -1),
                     x->called().at(0));
  }

  Instr* repeated(Instr* x, Pair pair) {
    return b_.broadcast(pack(x->operand(0), pair), packed_shape(x, pair).extents(),
                        inside(x->dimensions()));
  }

  Instr* part(Instr* x) {
    const auto& attrs = x->attrs_as<hlo::SliceAttrs>();
    const auto cut = [](const Ints& list) { return inside(shifted(list, 1)); };
    Instr* of = packed_.at(x->operand(0));
    Ints starts = cut(attrs.starts), limits = cut(attrs.limits);
    limits[0] = of->shape().dim(0);  // both dimensions are whole: their extents are the bounds
    Ints strides = attrs.strides.empty() ? Ints() : cut(attrs.strides);
    if (!strides.empty()) strides[0] = 1;
    return b_.slice(of, starts, limits, strides);
  }

  // [batch, rows, ...] as [batch * rows, ...].
  Instr* pack(Instr* x, Pair pair) {
    if (const auto known = packed_.find(x); known != packed_.end()) return known->second;
    Instr*& made = gathered_[x];
    if (made) return made;
    if (x->is(Opcode::broadcast)) made = packed_broadcast(x, pair);
    if (made) return made;
    hlo::GatherAttrs attrs;
    attrs.offset_dims = shifted(counting(x->shape().rank() - 2), 1);
    attrs.collapsed_slice_dims = attrs.start_index_map = {0, 1};
    attrs.slice_sizes = x->shape().extents();
    attrs.slice_sizes[0] = attrs.slice_sizes[1] = 1;
    attrs.index_vector_dim = 1;
    return made = b_.gather(x, places(pair).of_packed, std::move(attrs));
  }

  // What repeats along the sequences or their rows is not made before it is packed.
  Instr* packed_broadcast(Instr* x, Pair pair) {
    Instr* source = x->operand(0);
    Ints to = x->dimensions();
    if (!is_ascending(to)) return nullptr;
    const bool sequences = contains(to, 0), rows = contains(to, 1);
    if (sequences && rows) return repeated(x, pair);
    if (sequences || rows) {
      source = b_.take(source, sequences ? places(pair).sequence : places(pair).row, 0);
      to[0] = 1;  // as the rows of the packed form
    }
    return b_.broadcast(source, packed_shape(x, pair).extents(), shifted(to, -1));
  }

  Instr* spread(Instr* x) {
    Instr*& made = spread_[x];
    if (!made) made = b_.take(packed_.at(x), places(*rows_of(x)).in_packed, 0);
    return made;
  }

  const Places& places(Pair pair) {
    Places& made = places_[pair];
    if (made.row) return made;
    const int64_t sequences = bound(pair.first), rows = bound(pair.second);
    Instr* there = extent(pair.first);
    Instr* length = extent(pair.second);
    Instr* packed = first_rows(sequences * rows, b_.binary(Opcode::multiply, there, length));
    const auto all = [&](Instr* scalar, Instr* as) {
      return b_.broadcast(scalar, as->shape().extents(), {});
    };
    made.sequence = b_.binary(Opcode::divide, packed, all(at_least_one(length), packed));
    made.row = b_.binary(Opcode::subtract, packed,
                         b_.binary(Opcode::multiply, made.sequence, all(length, packed)));
    made.of_packed = b_.concatenate({b_.reshape(made.sequence, {sequences * rows, 1}),
                                     b_.reshape(made.row, {sequences * rows, 1})},
                                    1);
    Instr* first = first_rows(sequences, there);
    first = b_.binary(Opcode::multiply, first, all(length, first));
    made.in_packed = b_.binary(Opcode::add, b_.broadcast(first, {sequences, rows}, {0}),
                               b_.broadcast(first_rows(rows, length), {sequences, rows}, {1}));
    return made;
  }

  Instr* extent(int symbol) const {
    return hlo::extent_of(module_, symbols_[static_cast<size_t>(symbol)]);
  }

  Instr* at_least_one(Instr* n) { return b_.binary(Opcode::maximum, n, b_.scalar(Type::s32, 1)); }

  // 0, 1, …, of which n count.
  Instr* first_rows(int64_t bound, Instr* n) {
    return hlo::first_rows(b_, b_.iota(Shape::array(Type::s32, {bound}), 0), n);
  }

  const hlo::Module& module_;
  hlo::Computation* entry_;
  hlo::Builder b_;
  hlo::DimClasses classes_;
  std::vector<hlo::Symbol> symbols_;
  std::unordered_map<const Instr*, Instr*> packed_;    // what is computed so
  std::unordered_map<const Instr*, Instr*> gathered_;  // other values, for it
  std::unordered_map<const Instr*, Instr*> spread_;
  std::unordered_map<const Instr*, std::set<int64_t>> masked_;
  std::map<Pair, Places> places_;
};

}  // namespace

Result<bool> pack_rows(hlo::Module& module, const PassContext& context) {
  if (module.symbols.size() < 2 || !context.allow("pack_rows", "rows")) return false;
  return Packer(&module).run();
}

}  // namespace heddle::opt
