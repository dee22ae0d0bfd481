#include "import/index_range.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "hlo/select_boxes.h"
#include "hlo/symbol.h"

namespace heddle::import {
namespace {

using hlo::Instr;
using hlo::Opcode;
using tensor::Literal;
using tensor::Type;

struct Interval {
  int64_t low, high;
};
using Known = std::optional<Interval>;

// Limits on the depth of the search, and on the elements of a constant.
constexpr int kDeepest = 64;
constexpr int64_t kMostElems = int64_t{1} << 22;

Known type_interval(Type type) {
  if (type == Type::pred) return Interval{0, 1};
  const int bits = tensor::type_bits(type);
  if (!tensor::is_integer(type) || bits > 32) return std::nullopt;
  const int64_t values = int64_t{1} << bits;
  if (tensor::is_signed_integer(type)) return Interval{-values / 2, values / 2 - 1};
  return Interval{0, values - 1};
}

// The interval itself if the type can represent all of it, else the type's range.
Known within(const Known& interval, Type type) {
  const Known all = type_interval(type);
  if (!all) return type == Type::s64 ? interval : std::nullopt;
  if (interval && all->low <= interval->low && interval->high <= all->high) return interval;
  return all;
}

Known both(const Known& a, const Known& b) {
  if (!a || !b) return std::nullopt;
  return Interval{std::min(a->low, b->low), std::max(a->high, b->high)};
}

Known of_constant(const Literal& literal) {
  if (literal.elems() == 0 || literal.elems() > kMostElems) return std::nullopt;
  Interval interval{literal.get_s64(0), literal.get_s64(0)};
  for (int64_t i = 1; i < literal.elems(); ++i) {
    const int64_t value = literal.get_s64(i);
    interval.low = std::min(interval.low, value);
    interval.high = std::max(interval.high, value);
  }
  return interval;
}

// The extremes of a product or a sum come from those of the operands.
Known arithmetic(Opcode opcode, const Interval& a, const Interval& b) {
  Known result;
  for (const int64_t x : {a.low, a.high}) {
    for (const int64_t y : {b.low, b.high}) {
      int64_t value = 0;
      const bool overflows = opcode == Opcode::add        ? __builtin_add_overflow(x, y, &value)
                             : opcode == Opcode::subtract ? __builtin_sub_overflow(x, y, &value)
                                                          : __builtin_mul_overflow(x, y, &value);
      if (overflows) return std::nullopt;
      result = result ? both(result, Interval{value, value}) : Interval{value, value};
    }
  }
  return result;
}

class Ranges {
 public:
  Known of(const Instr* instr, int depth = 0) {
    if (depth > kDeepest || !instr->shape().is_array()) return std::nullopt;
    const Type type = instr->shape().type();
    if (!tensor::is_integer(type) && type != Type::pred) return std::nullopt;
    if (const auto found = known_.find(instr); found != known_.end()) return found->second;
    const Known result = within(compute(instr, depth + 1), type);
    known_.emplace(instr, result);
    return result;
  }

 private:
  Known compute(const Instr* instr, int depth) {
    switch (instr->opcode()) {
      case Opcode::constant:
        return of_constant(instr->literal());
      case Opcode::iota: {
        const int64_t dim = instr->attrs_as<hlo::DimensionAttrs>().dimension;
        return Interval{0, std::max<int64_t>(0, instr->shape().dim(dim) - 1)};
      }
      case Opcode::convert:
      case Opcode::copy:
      case Opcode::reshape:
      case Opcode::broadcast:
      case Opcode::transpose:
      case Opcode::reverse:
      case Opcode::dynamic_slice:
      case Opcode::gather:
        return of(instr->operand(0), depth);
      case Opcode::concatenate:
        return of_parts(instr, 0, instr->shape().dim(instr->dimensions()[0]), depth);
      case Opcode::slice:
        return of_slice(instr, depth);
      case Opcode::select:
        return both(of(instr->operand(1), depth), of(instr->operand(2), depth));
      case Opcode::scatter:
        return of_scatter(instr, depth);
      case Opcode::custom_call:
        return hlo::is_first_rows(*instr) ? of(instr->operand(0), depth) : std::nullopt;
      case Opcode::add:
      case Opcode::subtract:
      case Opcode::multiply:
      case Opcode::minimum:
      case Opcode::maximum:
      case Opcode::remainder:
        return of_binary(instr, depth);
      case Opcode::clamp:
        return of_clamp(instr, depth);
      case Opcode::get_tuple_element: {
        const Instr* tuple = instr->operand(0);
        if (hlo::is_select_boxes(*tuple)) return of_boxes(*tuple);
        // A sort only permutes elements.
        if (!tuple->is(Opcode::sort)) return std::nullopt;
        return of(tuple->operand(static_cast<size_t>(instr->tuple_index())), depth);
      }
      default:
        return std::nullopt;
    }
  }

  // Rows of image, class and box: positions in the three dimensions of the scores.
  static Known of_boxes(const Instr& selection) {
    const auto& extents = selection.operand(1)->shape().extents();
    return Interval{0, std::max<int64_t>(1, *std::max_element(extents.begin(), extents.end())) - 1};
  }

  // Of what stands in [begin, end) of what is joined.
  Known of_parts(const Instr* concatenate, int64_t begin, int64_t end, int depth) {
    Known all;
    int64_t at = 0;
    bool any = false;
    for (const Instr* part : concatenate->operands()) {
      const int64_t next = at + part->shape().dim(concatenate->dimensions()[0]);
      if (at < end && begin < next) {
        all = any ? both(all, of(part, depth)) : of(part, depth);
        any = true;
      }
      at = next;
    }
    return all;
  }

  // Often one of the parts that were joined: coordinates that were rows of one array.
  Known of_slice(const Instr* slice, int depth) {
    const auto& attrs = slice->attrs_as<hlo::SliceAttrs>();
    hlo::Ints starts = attrs.starts, limits = attrs.limits;
    const Instr* x = slice->operand(0);
    for (; x->is(Opcode::transpose); x = x->operand(0)) {
      const hlo::Ints from = starts, to = limits;
      for (size_t d = 0; d < from.size(); ++d) {
        const auto source = static_cast<size_t>(x->dimensions()[d]);
        starts[source] = from[d];
        limits[source] = to[d];
      }
    }
    if (!x->is(Opcode::concatenate)) return of(x, depth);
    const auto along = static_cast<size_t>(x->dimensions()[0]);
    return of_parts(x, starts[along], limits[along], depth);
  }

  Known of_binary(const Instr* instr, int depth) {
    const Known a = of(instr->operand(0), depth), b = of(instr->operand(1), depth);
    constexpr int64_t kLeast = INT64_MIN, kMost = INT64_MAX;
    switch (instr->opcode()) {
      case Opcode::minimum:
        if (!a && !b) return std::nullopt;
        return Interval{a && b ? std::min(a->low, b->low) : kLeast,
                        std::min(a ? a->high : kMost, b ? b->high : kMost)};
      case Opcode::maximum:
        if (!a && !b) return std::nullopt;
        return Interval{std::max(a ? a->low : kLeast, b ? b->low : kLeast),
                        a && b ? std::max(a->high, b->high) : kMost};
      case Opcode::remainder: {
        // It has the dividend's sign, and is smaller than the divisor.
        if (!b || b->low < 1) return std::nullopt;
        return Interval{a && a->low >= 0 ? 0 : 1 - b->high, a && a->high <= 0 ? 0 : b->high - 1};
      }
      default:
        if (!a || !b) return std::nullopt;
        return arithmetic(instr->opcode(), *a, *b);
    }
  }

  // Where it puts elements in the place of others.
  Known of_scatter(const Instr* scatter, int depth) {
    const Instr* root = scatter->called().at(0)->root();
    if (scatter->operands().size() != 3 || !root->is(Opcode::parameter) ||
        root->parameter_number() != 1)
      return std::nullopt;
    return both(of(scatter->operand(0), depth), of(scatter->operand(2), depth));
  }

  Known of_clamp(const Instr* instr, int depth) {
    const Known low = of(instr->operand(0), depth), high = of(instr->operand(2), depth);
    if (!low || !high) return std::nullopt;
    return Interval{std::min(low->low, high->low), high->high};
  }

  std::unordered_map<const Instr*, Known> known_;
};

}  // namespace

std::optional<tensor::IndexRange> index_range(const Instr* value) {
  const Known interval = Ranges().of(value);
  if (!interval) return std::nullopt;
  return tensor::IndexRange{interval->low, interval->high};
}

const Instr* joined_coordinates(const Instr* vectors) {
  if (!vectors->is(Opcode::transpose) || vectors->dimensions() != hlo::Ints{1, 0}) return nullptr;
  const Instr* rows = vectors->operand(0);
  const bool joined = rows->is(Opcode::concatenate) && rows->dimensions()[0] == 0 &&
                      static_cast<int64_t>(rows->operands().size()) == rows->shape().dim(0);
  return joined ? rows : nullptr;
}

}  // namespace heddle::import
