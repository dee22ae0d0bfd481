#include "import/fold.h"

#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "hlo/holds.h"
#include "import/fold_scalar.h"

namespace heddle::import {
namespace {

using hlo::Instr;
using hlo::Ints;
using hlo::Opcode;
using tensor::Literal;
using tensor::Shape;
using tensor::Type;
using Folded = std::optional<Literal>;

// Types whose values one of the two arithmetics represents exactly.
bool is_int(Type type) {
  return type == Type::pred || (tensor::is_integer(type) && type != Type::u64);
}
bool is_real(Type type) { return tensor::is_float(type); }

// Walks the indices of an array in row-major order.
class Index {
 public:
  explicit Index(const Shape& shape) : extents_(shape.extents()), at_(extents_.size(), 0) {}
  const Ints& at() const { return at_; }
  void next() {
    for (size_t d = at_.size(); d-- > 0;) {
      if (++at_[d] < extents_[d]) return;
      at_[d] = 0;
    }
  }

 private:
  Ints extents_, at_;
};

int64_t linear(const Shape& shape, const Ints& index) {
  int64_t result = 0;
  for (size_t d = 0; d < index.size(); ++d)
    result = result * shape.dim(static_cast<int64_t>(d)) + index[d];
  return result;
}

size_t at(int64_t i) { return static_cast<size_t>(i); }

class Folder {
 public:
  explicit Folder(FoldBudget& budget) : budget_(budget) {}

  std::optional<std::vector<Literal>> run(const std::vector<Instr*>& roots);

 private:
  using Args = std::vector<const Literal*>;

  Folded eval(const Instr& instr);
  Folded unary(const Instr& instr, const Literal& x);
  Folded binary(const Instr& instr, const Literal& x, const Literal& y);
  Folded compare(const Instr& instr, const Literal& x, const Literal& y);
  Folded select(const Instr& instr, const Args& args);
  Folded convert(const Instr& instr, const Literal& x);
  Folded concatenate(const Instr& instr, const Args& args);
  Folded pad(const Instr& instr, const Literal& x, const Literal& value);
  Folded gather(const Instr& instr, const Literal& x, const Literal& indices);
  Folded reduce(const Instr& instr, const Args& args);
  Folded movement(const Instr& instr, const Literal& x);
  // result[index] = x[source(index)]
  template <typename Source>
  Literal moved(const Instr& instr, const Literal& x, Source source) {
    Literal result(instr.shape());
    Index index(instr.shape());
    Ints from(at(x.shape().rank()), 0);
    for (int64_t i = 0, n = result.elems(); i < n; ++i, index.next()) {
      source(index.at(), from);
      result.set_bits(i, x.get_bits(linear(x.shape(), from)));
    }
    return result;
  }

  FoldBudget& budget_;
  std::unordered_map<const Instr*, Literal> values_;
};

Folded Folder::unary(const Instr& instr, const Literal& x) {
  const Type type = x.type();
  Literal result(instr.shape());
  for (int64_t i = 0, n = x.elems(); i < n; ++i) {
    if (is_int(type)) {
      const std::optional<int64_t> value =
          fold_unary(instr.opcode(), x.get_s64(i), type == Type::pred);
      if (!value) return std::nullopt;
      result.set_s64(i, *value);
    } else if (is_real(type)) {
      const std::optional<double> value = fold_unary(instr.opcode(), x.get_f64(i));
      if (!value) return std::nullopt;
      result.set_f64(i, *value);
    } else {
      return std::nullopt;
    }
  }
  return result;
}

Folded Folder::binary(const Instr& instr, const Literal& x, const Literal& y) {
  const Type type = x.type();
  Literal result(instr.shape());
  for (int64_t i = 0, n = x.elems(); i < n; ++i) {
    if (is_int(type)) {
      const std::optional<int64_t> value = fold_binary(instr.opcode(), x.get_s64(i), y.get_s64(i));
      if (!value) return std::nullopt;
      result.set_s64(i, *value);
    } else if (is_real(type)) {
      const std::optional<double> value = fold_binary(instr.opcode(), x.get_f64(i), y.get_f64(i));
      if (!value) return std::nullopt;
      result.set_f64(i, *value);
    } else {
      return std::nullopt;
    }
  }
  return result;
}

Folded Folder::compare(const Instr& instr, const Literal& x, const Literal& y) {
  const auto& attrs = instr.attrs_as<hlo::CompareAttrs>();
  if (attrs.type != hlo::CompareType::by_type) return std::nullopt;
  if (!is_int(x.type()) && !is_real(x.type())) return std::nullopt;
  Literal result(instr.shape());
  for (int64_t i = 0, n = x.elems(); i < n; ++i) {
    const bool value = is_int(x.type()) ? hlo::holds(attrs.direction, x.get_s64(i), y.get_s64(i))
                                        : hlo::holds(attrs.direction, x.get_f64(i), y.get_f64(i));
    result.set_s64(i, value ? 1 : 0);
  }
  return result;
}

Folded Folder::select(const Instr& instr, const Args& args) {
  if (tensor::is_complex(instr.shape().type())) return std::nullopt;
  Literal result(instr.shape());
  const bool scalar = args[0]->shape().is_scalar();
  for (int64_t i = 0, n = result.elems(); i < n; ++i) {
    const bool first = args[0]->get_s64(scalar ? 0 : i) != 0;
    result.set_bits(i, args[first ? 1 : 2]->get_bits(i));
  }
  return result;
}

Folded Folder::convert(const Instr& instr, const Literal& x) {
  const Type from = x.type(), to = instr.shape().type();
  if (!(is_int(from) || is_real(from)) || !(is_int(to) || is_real(to))) return std::nullopt;
  Literal result(instr.shape());
  for (int64_t i = 0, n = x.elems(); i < n; ++i) {
    if (is_int(from) && is_int(to)) {
      const int64_t value = x.get_s64(i);
      result.set_s64(i, to == Type::pred ? value != 0 : value);
    } else if (is_int(from)) {
      const int64_t value = x.get_s64(i);
      constexpr int64_t kExact = int64_t{1} << 53;
      if (value > kExact || value < -kExact) return std::nullopt;
      result.set_f64(i, static_cast<double>(value));
    } else if (is_real(to)) {
      result.set_f64(i, x.get_f64(i));
    } else {
      const double value = x.get_f64(i);
      constexpr double kLargest = 0x1p31;  // all integer conversions agree below it
      if (!(std::abs(value) < kLargest) || to == Type::pred) return std::nullopt;
      result.set_s64(i, static_cast<int64_t>(value));
      if (result.get_s64(i) != static_cast<int64_t>(value)) return std::nullopt;
    }
  }
  return result;
}

Folded Folder::concatenate(const Instr& instr, const Args& args) {
  const int64_t dim = instr.dimensions()[0];
  Literal result(instr.shape());
  int64_t offset = 0;
  for (const Literal* part : args) {
    Index index(part->shape());
    Ints to;
    for (int64_t i = 0, n = part->elems(); i < n; ++i, index.next()) {
      to = index.at();
      to[at(dim)] += offset;
      result.set_bits(linear(result.shape(), to), part->get_bits(i));
    }
    offset += part->shape().dim(dim);
  }
  return result;
}

Folded Folder::pad(const Instr& instr, const Literal& x, const Literal& value) {
  const auto& attrs = instr.attrs_as<hlo::PadAttrs>();
  Literal result(instr.shape());
  Index index(instr.shape());
  Ints from(at(x.shape().rank()), 0);
  for (int64_t i = 0, n = result.elems(); i < n; ++i, index.next()) {
    bool inside = true;
    for (size_t d = 0; d < from.size(); ++d) {
      const int64_t position = index.at()[d] - attrs.low[d], step = attrs.interior[d] + 1;
      inside = inside && position >= 0 && position % step == 0 &&
               position / step < x.shape().dim(static_cast<int64_t>(d));
      from[d] = inside ? position / step : 0;
    }
    result.set_bits(i, inside ? x.get_bits(linear(x.shape(), from)) : value.get_bits(0));
  }
  return result;
}

// A gather in the form of Builder::take: along one dimension, with clamped positions.
Folded Folder::gather(const Instr& instr, const Literal& x, const Literal& indices) {
  const auto& attrs = instr.attrs_as<hlo::GatherAttrs>();
  const bool take =
      attrs.start_index_map.size() == 1 && attrs.collapsed_slice_dims == attrs.start_index_map &&
      attrs.operand_batching_dims.empty() && attrs.index_vector_dim == indices.shape().rank();
  if (!take) return std::nullopt;
  const int64_t axis = attrs.start_index_map[0];
  for (int64_t d = 0; d < x.shape().rank(); ++d) {
    if (attrs.slice_sizes[at(d)] != (d == axis ? 1 : x.shape().dim(d))) return std::nullopt;
  }
  std::vector<bool> is_offset(at(instr.shape().rank()), false);
  for (int64_t d : attrs.offset_dims) is_offset[at(d)] = true;
  const int64_t last = x.shape().dim(axis) - 1;
  if (last < 0) return std::nullopt;
  return moved(instr, x, [&](const Ints& index, Ints& from) {
    Ints which;
    size_t next = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      if (!is_offset[d]) {
        which.push_back(index[d]);
        continue;
      }
      if (next == at(axis)) ++next;
      from[next++] = index[d];
    }
    const int64_t position = indices.get_s64(linear(indices.shape(), which));
    from[at(axis)] = position < 0 ? 0 : position > last ? last : position;
  });
}

Folded Folder::reduce(const Instr& instr, const Args& args) {
  if (args.size() != 2) return std::nullopt;
  const hlo::Computation& body = *instr.called()[0];
  if (body.root()->operands().size() != 2 || body.instrs().size() != 3) return std::nullopt;
  const Literal& x = *args[0];
  std::vector<bool> reduced(at(x.shape().rank()), false);
  for (int64_t d : instr.dimensions()) reduced[at(d)] = true;
  Literal result(instr.shape());
  for (int64_t i = 0, n = result.elems(); i < n; ++i) result.set_bits(i, args[1]->get_bits(0));
  Index index(x.shape());
  for (int64_t i = 0, n = x.elems(); i < n; ++i, index.next()) {
    Ints to;
    for (size_t d = 0; d < reduced.size(); ++d) {
      if (!reduced[d]) to.push_back(index.at()[d]);
    }
    const int64_t place = linear(result.shape(), to);
    if (is_int(x.type())) {
      const auto value = fold_binary(body.root()->opcode(), result.get_s64(place), x.get_s64(i));
      if (!value) return std::nullopt;
      result.set_s64(place, *value);
    } else if (is_real(x.type())) {
      const auto value = fold_binary(body.root()->opcode(), result.get_f64(place), x.get_f64(i));
      if (!value) return std::nullopt;
      result.set_f64(place, *value);
    } else {
      return std::nullopt;
    }
  }
  return result;
}

Folded Folder::movement(const Instr& instr, const Literal& x) {
  if (tensor::is_complex(x.type())) return std::nullopt;
  switch (instr.opcode()) {
    case Opcode::broadcast:
      return moved(instr, x, [&](const Ints& index, Ints& from) {
        for (size_t d = 0; d < from.size(); ++d) from[d] = index[at(instr.dimensions()[d])];
      });
    case Opcode::transpose:
      return moved(instr, x, [&](const Ints& index, Ints& from) {
        for (size_t d = 0; d < index.size(); ++d) from[at(instr.dimensions()[d])] = index[d];
      });
    case Opcode::slice: {
      const auto& attrs = instr.attrs_as<hlo::SliceAttrs>();
      return moved(instr, x, [&](const Ints& index, Ints& from) {
        for (size_t d = 0; d < from.size(); ++d)
          from[d] = attrs.starts[d] + index[d] * attrs.strides[d];
      });
    }
    case Opcode::reverse:
      return moved(instr, x, [&](const Ints& index, Ints& from) {
        from = index;
        for (int64_t d : instr.dimensions()) from[at(d)] = x.shape().dim(d) - 1 - index[at(d)];
      });
    case Opcode::reshape: {
      Literal result(instr.shape());
      for (int64_t i = 0, n = result.elems(); i < n; ++i) result.set_bits(i, x.get_bits(i));
      return result;
    }
    default:
      return std::nullopt;
  }
}

Folded iota(const Instr& instr) {
  Literal result(instr.shape());
  const int64_t dim = instr.attrs_as<hlo::DimensionAttrs>().dimension;
  if (tensor::is_complex(instr.shape().type())) return std::nullopt;
  Index index(instr.shape());
  for (int64_t i = 0, n = result.elems(); i < n; ++i, index.next())
    result.set_f64(i, static_cast<double>(index.at()[at(dim)]));
  return result;
}

Folded Folder::eval(const Instr& instr) {
  if (instr.is(Opcode::constant)) return instr.literal();
  if (!instr.shape().is_array()) return std::nullopt;
  Args args;
  for (const Instr* operand : instr.operands()) args.push_back(&values_.at(operand));
  switch (instr.opcode()) {
    case Opcode::iota:
      return iota(instr);
    case Opcode::convert:
      return convert(instr, *args[0]);
    case Opcode::compare:
      return compare(instr, *args[0], *args[1]);
    case Opcode::select:
      return select(instr, args);
    case Opcode::broadcast:
    case Opcode::transpose:
    case Opcode::slice:
    case Opcode::reverse:
    case Opcode::reshape:
      return movement(instr, *args[0]);
    case Opcode::concatenate:
      if (tensor::is_complex(instr.shape().type())) return std::nullopt;
      return concatenate(instr, args);
    case Opcode::pad:
      if (tensor::is_complex(instr.shape().type())) return std::nullopt;
      return pad(instr, *args[0], *args[1]);
    case Opcode::gather:
      if (tensor::is_complex(instr.shape().type())) return std::nullopt;
      return gather(instr, *args[0], *args[1]);
    case Opcode::reduce:
      return reduce(instr, args);
    default:
      break;
  }
  if (!hlo::has_trait(instr.opcode(), hlo::elementwise)) return std::nullopt;
  if (args.size() == 1) return unary(instr, *args[0]);
  return args.size() == 2 ? binary(instr, *args[0], *args[1]) : std::nullopt;
}

std::optional<std::vector<Literal>> Folder::run(const std::vector<Instr*>& roots) {
  std::unordered_set<const Instr*> needed(roots.begin(), roots.end());
  const std::vector<Instr*>& instrs = roots.front()->parent()->instrs();
  for (size_t i = instrs.size(); i-- > 0;) {
    if (!needed.contains(instrs[i])) continue;
    needed.insert(instrs[i]->operands().begin(), instrs[i]->operands().end());
  }
  for (const Instr* instr : instrs) {
    if (!needed.contains(instr)) continue;
    if (!instr->shape().is_array()) return std::nullopt;
    const int64_t elems = instr->shape().elems();
    if (elems > budget_.value_elems || elems > budget_.work_elems) return std::nullopt;
    budget_.work_elems -= elems + 1;
    Folded value = eval(*instr);
    if (!value) return std::nullopt;
    values_.emplace(instr, std::move(*value));
  }
  std::vector<Literal> results;
  for (const Instr* root : roots) results.push_back(values_.at(root));
  return results;
}

}  // namespace

std::optional<std::vector<Literal>> fold(const std::vector<Instr*>& roots, FoldBudget& budget) {
  if (roots.empty()) return std::vector<Literal>();
  return Folder(budget).run(roots);
}

namespace {

// Dimensions of at most this extent may be lists (such as the pairs of pads).
constexpr int64_t kMostListed = 2;

// Whether a step along dimension d adds the same number everywhere, separately for each index in
// the dimensions of at most kMostListed.
bool is_straight(const Literal& value, int64_t d) {
  const std::vector<int64_t> extents = value.shape().extents();
  const int64_t extent = extents[static_cast<size_t>(d)];
  int64_t inner = 1;
  for (size_t k = static_cast<size_t>(d) + 1; k < extents.size(); ++k) inner *= extents[k];
  int64_t lists = 1;
  for (const int64_t one : extents) lists *= one <= kMostListed ? one : 1;
  std::vector<std::optional<int64_t>> steps(static_cast<size_t>(lists));
  for (int64_t i = 0; i < value.elems(); ++i) {
    if (i / inner % extent == extent - 1) continue;
    int64_t list = 0, rest = i;
    for (size_t k = extents.size(); k-- > 0; rest /= extents[k])
      if (extents[k] <= kMostListed) list = list * extents[k] + rest % extents[k];
    const int64_t step = value.get_s64(i + inner) - value.get_s64(i);
    std::optional<int64_t>& known = steps[static_cast<size_t>(list)];
    if (known && *known != step) return false;
    known = step;
  }
  return true;
}

bool is_shape_arithmetic(const Literal& value, bool few) {
  const Shape& shape = value.shape();
  if (shape.rank() < 2) return true;
  if (tensor::is_float(value.type())) return false;
  if (few || value.type() == Type::pred) return few;
  for (int64_t d = 0; d < shape.rank(); ++d)
    if (shape.dim(d) > kMostListed && !is_straight(value, d)) return false;
  return true;
}

}  // namespace

bool are_shape_arithmetic(const std::vector<Literal>& values, bool few) {
  return std::all_of(values.begin(), values.end(),
                     [&](const Literal& value) { return is_shape_arithmetic(value, few); });
}

}  // namespace heddle::import
