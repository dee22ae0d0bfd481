#include "hlo/shape_rules.h"

#include <algorithm>
#include <limits>

#include "tensor/limits.h"

namespace heddle::hlo {

std::string text(const Shape& shape) { return tensor::to_string(shape, /*layouts=*/false); }

std::string text(const Dim& dim) {
  if (unbounded(dim)) return "?";
  return (dim.dynamic ? "<=" : "") + std::to_string(dim.size);
}

std::string text(const Ints& list) { return fmt::format("{{{}}}", fmt::join(list, ", ")); }

bool in_set(Type type, int set) {
  if (type == Type::pred) return set & kPred;
  if (tensor::is_signed_integer(type)) return set & kSigned;
  if (tensor::is_unsigned_integer(type)) return set & kUnsigned;
  if (tensor::is_float(type)) return set & kFloat;
  return tensor::is_complex(type) && (set & kComplex);
}

std::string set_text(int set) {
  std::vector<std::string_view> words;
  if (set & kPred) words.push_back("pred");
  if ((set & kInteger) == kInteger) {
    words.push_back("integer");
  } else {
    if (set & kSigned) words.push_back("signed integer");
    if (set & kUnsigned) words.push_back("unsigned integer");
  }
  if (set & kFloat) words.push_back("float");
  if (set & kComplex) words.push_back("complex");
  const bool vowel = !words.empty() && (words[0][0] == 'i' || words[0][0] == 'u');
  return fmt::format("{} {} type", vowel ? "an" : "a", fmt::join(words, " or "));
}

Status want_array(const ShapeQuery& q, size_t i) {
  if (q.operand(i).is_array()) return {};
  return shape_error(q, "operand {} is {}, wanted an array", i, text(q.operand(i)));
}

Status want_arrays(const ShapeQuery& q) {
  for (size_t i = 0; i < q.count(); ++i) HEDDLE_RETURN_IF_ERROR(want_array(q, i));
  return {};
}

Status want_type(const ShapeQuery& q, size_t i, int set) {
  HEDDLE_RETURN_IF_ERROR(want_array(q, i));
  if (in_set(q.operand(i).type(), set)) return {};
  return shape_error(q, "operand {} is {}, wanted {}", i, text(q.operand(i)), set_text(set));
}

Status want_same_type(const ShapeQuery& q, size_t i, size_t other) {
  if (q.operand(i).type() == q.operand(other).type()) return {};
  return shape_error(q, "types {} and {} differ (operands {} and {})",
                     tensor::type_name(q.operand(other).type()),
                     tensor::type_name(q.operand(i).type()), other, i);
}

Status want_scalar(const ShapeQuery& q, size_t i) {
  if (q.operand(i).is_scalar()) return {};
  return shape_error(q, "operand {} is {}, wanted a scalar", i, text(q.operand(i)));
}

Status want_rank(const ShapeQuery& q, size_t i, int64_t rank) {
  if (q.operand(i).rank() == rank) return {};
  return shape_error(q, "operand {} is {}, wanted rank {}", i, text(q.operand(i)), rank);
}

Status want_declared(const ShapeQuery& q) {
  if (q.declared) return {};
  return shape_error(q, "the shape cannot be inferred and must be given");
}

Status want_declared_array(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_declared(q));
  if (q.declared->is_array()) return {};
  return shape_error(q, "declared {}, wanted an array", text(*q.declared));
}

Status want_dims(const ShapeQuery& q, const Ints& dims, int64_t rank, std::string_view name,
                 bool sorted) {
  for (int64_t dim : dims) HEDDLE_RETURN_IF_ERROR(want_dim(q, dim, rank, name));
  if (sorted && !std::is_sorted(dims.begin(), dims.end()))
    return shape_error(q, "{}={} must be ascending", name, text(dims));
  Ints copy = dims;
  std::sort(copy.begin(), copy.end());
  auto twice = std::adjacent_find(copy.begin(), copy.end());
  if (twice != copy.end())
    return shape_error(q, "{}={} names dimension {} twice", name, text(dims), *twice);
  return {};
}

Status want_dim(const ShapeQuery& q, int64_t dim, int64_t rank, std::string_view name) {
  if (dim >= 0 && dim < rank) return {};
  return shape_error(q, "{} names dimension {} of a rank {} array", name, dim, rank);
}

bool unbounded(const Dim& dim) { return dim.size == Dim::kUnbounded; }

bool agree(const Dim& a, const Dim& b) { return a.size == b.size || unbounded(a) || unbounded(b); }

bool same_dims(const Shape& a, const Shape& b) {
  return a.rank() == b.rank() &&
         std::equal(a.dims().begin(), a.dims().end(), b.dims().begin(), agree);
}

Dim merged(const Dim& a, const Dim& b) {
  // A static extent and an unbounded one: the static one is the result. A static extent equal to
  // the other's bound: the actual extent may still be smaller.
  if (unbounded(a) != unbounded(b)) {
    Dim known = unbounded(a) ? b : a;
    if (known.dynamic && known.symbol.empty()) known.symbol = unbounded(a) ? a.symbol : b.symbol;
    return known;
  }
  Dim result = a.dynamic || !b.dynamic ? a : b;
  if (result.symbol.empty()) result.symbol = b.symbol;
  return result;
}

Dim resized(const Dim& dim, int64_t size) {
  if (unbounded(dim)) {
    Dim any;
    any.size = Dim::kUnbounded;
    any.dynamic = true;
    return any;
  }
  if (size == dim.size) return dim;
  Dim result(size);
  result.dynamic = dim.dynamic;
  return result;
}

bool declared_fits(const Shape& declared, const Shape& inferred) {
  if (declared.type() != inferred.type()) return false;
  if (declared.is_tuple()) {
    return declared.elements().size() == inferred.elements().size() &&
           std::equal(declared.elements().begin(), declared.elements().end(),
                      inferred.elements().begin(), declared_fits);
  }
  return !declared.is_array() || same_dims(declared, inferred);
}

std::optional<int64_t> known_elems(const Shape& shape) {
  for (const Dim& dim : shape.dims())
    if (unbounded(dim)) return std::nullopt;
  return tensor::checked_product(shape.extents());
}

Status want_countable(const ShapeQuery& q, const Shape& shape) {
  for (const Shape& element : shape.elements()) HEDDLE_RETURN_IF_ERROR(want_countable(q, element));
  if (!shape.is_array()) return {};
  if (shape.rank() > tensor::kMaxRank)
    return shape_error(q, "{} dimensions, at most {} are possible", shape.rank(), tensor::kMaxRank);
  std::vector<int64_t> extents;
  for (const Dim& dim : shape.dims()) {
    if (unbounded(dim)) continue;
    if (dim.size < 0) return shape_error(q, "{} has a negative extent", text(shape));
    // A zero must not hide an overflow of the other extents: strides are products of them.
    extents.push_back(std::max<int64_t>(dim.size, 1));
  }
  const std::optional<int64_t> elems = tensor::checked_product(extents);
  if (!elems || *elems > std::numeric_limits<int64_t>::max() / 16)
    return shape_error(q, "the size of {} overflows 64 bits", text(shape));
  return {};
}

Result<int64_t> add_extents(const ShapeQuery& q, int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum))
    return shape_error(q, "extent {} + {} overflows 64 bits", a, b);
  return sum;
}

Result<int64_t> multiply_extents(const ShapeQuery& q, int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product))
    return shape_error(q, "extent {} * {} overflows 64 bits", a, b);
  return product;
}

Result<int64_t> window_extent(const ShapeQuery& q, int64_t extent, const WindowDim& w,
                              size_t axis) {
  if (w.size < 1 || w.stride < 1 || w.lhs_dilate < 1 || w.rhs_dilate < 1)
    return shape_error(q, "window axis {}: size {}, stride {}, dilation {} and {} must be positive",
                       axis, w.size, w.stride, w.lhs_dilate, w.rhs_dilate);
  // The dilated extent, then padded on both sides.
  int64_t padded = 0;
  if (extent > 0) {
    HEDDLE_ASSIGN_OR_RETURN(padded, multiply_extents(q, extent - 1, w.lhs_dilate));
    HEDDLE_ASSIGN_OR_RETURN(padded, add_extents(q, padded, 1));
  }
  HEDDLE_ASSIGN_OR_RETURN(padded, add_extents(q, padded, w.pad_low));
  HEDDLE_ASSIGN_OR_RETURN(padded, add_extents(q, padded, w.pad_high));
  HEDDLE_ASSIGN_OR_RETURN(int64_t span, multiply_extents(q, w.size - 1, w.rhs_dilate));
  HEDDLE_ASSIGN_OR_RETURN(span, add_extents(q, span, 1));
  if (padded < span) return 0;
  return (padded - span) / w.stride + 1;
}

}  // namespace heddle::hlo
