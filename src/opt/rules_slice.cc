#include <algorithm>

#include "opt/rules.h"

namespace heddle::opt::rules {
namespace {

using hlo::PadAttrs;
using hlo::SliceAttrs;

size_t size(int64_t i) { return static_cast<size_t>(i); }

const SliceAttrs& slice_of(const Instr* x) { return x->attrs_as<SliceAttrs>(); }

// One past the last element that is read.
int64_t read_limit(const SliceAttrs& s, const Shape& result, size_t d) {
  return s.starts[d] + (result.dims()[d].size - 1) * s.strides[d] + 1;
}

bool all_equal(const Ints& list, int64_t value) {
  return std::all_of(list.begin(), list.end(), [&](int64_t i) { return i == value; });
}

// Both are known, and bit-identical.
bool same_splat(const Instr* x, const Instr* y) {
  const Literal *a = splat_of(x), *b = splat_of(y);
  if (!a || !b || tensor::is_complex(a->type()) || a->type() != b->type()) return false;
  return a->get_bits(0) == b->get_bits(0);
}

// The starts of a dynamic slice, clamped; nothing if one is not known.
std::optional<Ints> known_starts(const Instr* x, size_t first, const Ints& sizes) {
  const Shape& from = x->operand(0)->shape();
  if (x->operands().size() != first + sizes.size()) return std::nullopt;  // a vector of starts
  Ints starts;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t room = from.dims()[d].size - sizes[d];
    const Literal* start = splat_of(x->operand(first + d));
    if (!start && room > 0) return std::nullopt;
    int64_t value = room > 0 ? start->get_s64(0) : 0;
    // Above the range of int64: certainly out of bounds.
    if (room > 0 && start->type() == Type::u64 && value < 0) value = room;
    starts.push_back(std::clamp<int64_t>(value, 0, room));
  }
  return starts;
}

Ints plus(const Ints& a, const Ints& b) {
  Ints result = a;
  for (size_t i = 0; i < a.size(); ++i) result[i] += b[i];
  return result;
}

Ints part_extents(const std::vector<Instr*>& parts, size_t d) {
  Ints result;
  for (const Instr* part : parts) result.push_back(part->shape().dims()[d].size);
  return result;
}

}  // namespace

Instr* slice_all(Instr* x, Builder&) {
  return x->shape().dims() == x->operand(0)->shape().dims() ? x->operand(0) : nullptr;
}

Instr* slice_slice(Instr* x, Builder& b) {
  Instr* y = x->operand(0);
  if (!y->is(Opcode::slice) || !are_static_arrays(x) || x->shape().elems() == 0) return nullptr;
  const SliceAttrs &outer = slice_of(x), &inner = slice_of(y);
  SliceAttrs both = inner;
  for (size_t d = 0; d < both.starts.size(); ++d) {
    both.starts[d] += outer.starts[d] * inner.strides[d];
    both.strides[d] *= outer.strides[d];
    both.limits[d] = read_limit(both, x->shape(), d);
  }
  return b.slice(y->operand(0), both.starts, both.limits, both.strides);
}

Instr* slice_broadcast(Instr* x, Builder& b) {
  Instr* y = x->operand(0);
  if (!y->is(Opcode::broadcast) || !are_static_arrays(x) || !are_static_arrays(y)) return nullptr;
  const SliceAttrs& s = slice_of(x);
  const Ints& dims = y->dimensions();
  Instr* operand = y->operand(0);
  if (!dims.empty())
    operand = b.slice(operand, permuted(s.starts, dims), permuted(s.limits, dims),
                      permuted(s.strides, dims));
  return b.broadcast(operand, x->shape().extents(), dims);
}

Instr* slice_transpose(Instr* x, Builder& b) {
  Instr* y = x->operand(0);
  if (!y->is(Opcode::transpose) || y->users().size() > 1) return nullptr;
  const SliceAttrs& s = slice_of(x);
  const Ints back = inverted(y->dimensions());
  Instr* part = b.slice(y->operand(0), permuted(s.starts, back), permuted(s.limits, back),
                        permuted(s.strides, back));
  return b.transpose(part, y->dimensions());
}

Instr* slice_concatenate(Instr* x, Builder& b) {
  Instr* y = x->operand(0);
  if (!y->is(Opcode::concatenate) || !are_static_arrays(x) || !are_static_arrays(y)) return nullptr;
  if (x->shape().elems() == 0) return nullptr;
  const auto d = size(y->dimensions()[0]);
  SliceAttrs s = slice_of(x);
  const int64_t begin = s.starts[d], end = read_limit(s, x->shape(), d);
  const Ints sizes = part_extents(y->operands(), d);
  std::vector<Instr*> read;
  int64_t at = 0, skipped = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (at < end && at + sizes[i] > begin) read.push_back(y->operand(i));
    if (at + sizes[i] <= begin) skipped += sizes[i];
    at += sizes[i];
  }
  if (read.size() == sizes.size()) return nullptr;
  s.starts[d] -= skipped;
  s.limits[d] = end - skipped;
  Instr* parts = read.size() == 1 ? read[0] : b.concatenate(read, static_cast<int64_t>(d));
  return b.slice(parts, s.starts, s.limits, s.strides);
}

Instr* slice_pad(Instr* x, Builder& b) {
  Instr* y = x->operand(0);
  if (!y->is(Opcode::pad) || !are_static_arrays(x) || !are_static_arrays(y)) return nullptr;
  if (x->shape().elems() == 0) return nullptr;
  const auto& pad = y->attrs_as<PadAttrs>();
  if (!all_equal(pad.interior, 0)) return nullptr;
  SliceAttrs s = slice_of(x);
  const Ints extents = y->operand(0)->shape().extents();
  for (size_t d = 0; d < extents.size(); ++d) {
    s.limits[d] = read_limit(s, x->shape(), d) - pad.low[d];
    s.starts[d] -= pad.low[d];
    if (s.starts[d] < 0 || s.limits[d] > extents[d]) return nullptr;
  }
  return b.slice(y->operand(0), s.starts, s.limits, s.strides);
}

Instr* dynamic_slice_known(Instr* x, Builder& b) {
  const Ints& sizes = x->attrs_as<hlo::DynamicSliceAttrs>().slice_sizes;
  if (!is_static_array(x) || !is_static_array(x->operand(0))) return nullptr;
  if (sizes == x->operand(0)->shape().extents()) return x->operand(0);
  const std::optional<Ints> starts = known_starts(x, 1, sizes);
  return starts ? b.slice(x->operand(0), *starts, plus(*starts, sizes), {}) : nullptr;
}

Instr* dynamic_update_slice_all(Instr* x, Builder&) {
  return x->shape().dims() == x->operand(1)->shape().dims() ? x->operand(1) : nullptr;
}

Instr* gather_known(Instr* x, Builder& b) {
  const auto& g = x->attrs_as<hlo::GatherAttrs>();
  const Instr* indices = x->operand(1);
  const Literal* values = constant_of(indices);
  if (!are_static_arrays(x) || !g.operand_batching_dims.empty() || x->shape().elems() == 0)
    return nullptr;
  const Literal* splat = splat_of(indices);
  const auto count = static_cast<int64_t>(g.start_index_map.size());
  if ((!values && !splat) || indices->shape().elems() != count) return nullptr;
  const Shape& from = x->operand(0)->shape();
  Ints starts(size(from.rank()), 0);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t d = g.start_index_map[size(i)];
    const int64_t room = from.dim(d) - g.slice_sizes[size(d)];
    int64_t start = values ? values->get_s64(i) : splat->get_s64(0);
    if (indices->shape().type() == Type::u64 && start < 0) start = room;
    starts[size(d)] = std::clamp<int64_t>(start, 0, room);
  }
  Instr* part = b.slice(x->operand(0), starts, plus(starts, g.slice_sizes), {});
  return b.reshape(part, x->shape().extents());
}

Instr* concatenate_one(Instr* x, Builder& b) {
  if (x->operands().size() == 1) return x->operand(0);
  if (!are_static_arrays(x)) return nullptr;
  const auto d = size(x->dimensions()[0]);
  std::vector<Instr*> parts;
  for (Instr* part : x->operands())
    if (part->shape().dims()[d].size != 0) parts.push_back(part);
  if (parts.size() == x->operands().size() || parts.empty()) return nullptr;
  return b.concatenate(parts, x->dimensions()[0]);
}

Instr* concatenate_nested(Instr* x, Builder& b) {
  auto nested = [&](const Instr* part) {
    return part->is(Opcode::concatenate) && part->dimensions() == x->dimensions() &&
           part->users().size() == 1;
  };
  if (std::none_of(x->operands().begin(), x->operands().end(), nested)) return nullptr;
  std::vector<Instr*> parts;
  for (Instr* part : x->operands()) {
    if (nested(part)) {
      parts.insert(parts.end(), part->operands().begin(), part->operands().end());
    } else {
      parts.push_back(part);
    }
  }
  return b.concatenate(parts, x->dimensions()[0]);
}

Instr* concatenate_slices(Instr* x, Builder& b) {
  const auto d = size(x->dimensions()[0]);
  auto adjoin = [&](const Instr* left, const Instr* right) {
    if (!left->is(Opcode::slice) || !right->is(Opcode::slice)) return false;
    if (left->operand(0) != right->operand(0)) return false;
    SliceAttrs l = slice_of(left), r = slice_of(right);
    if (l.strides[d] != 1 || r.strides[d] != 1 || l.limits[d] != r.starts[d]) return false;
    l.starts[d] = r.starts[d];
    l.limits[d] = r.limits[d];
    return l == r;
  };
  const auto& parts = x->operands();
  if (std::adjacent_find(parts.begin(), parts.end(), adjoin) == parts.end()) return nullptr;
  std::vector<Instr*> joined;
  for (size_t i = 0; i < parts.size();) {
    size_t end = i + 1;
    while (end < parts.size() && adjoin(parts[end - 1], parts[end])) ++end;
    if (end == i + 1) {
      joined.push_back(parts[i]);
    } else {
      SliceAttrs s = slice_of(parts[i]);
      s.limits[d] = slice_of(parts[end - 1]).limits[d];
      joined.push_back(b.slice(parts[i]->operand(0), s.starts, s.limits, s.strides));
    }
    i = end;
  }
  return joined.size() == 1 ? joined[0] : b.concatenate(joined, x->dimensions()[0]);
}

Instr* pad_nothing(Instr* x, Builder& b) {
  const auto& pad = x->attrs_as<PadAttrs>();
  Instr* y = x->operand(0);
  if (all_equal(pad.low, 0) && all_equal(pad.high, 0)) {
    bool inside = false;
    for (size_t d = 0; d < pad.interior.size(); ++d)
      inside = inside || (pad.interior[d] != 0 && y->shape().dims()[d].size > 1);
    if (!inside && y->shape().dims() == x->shape().dims()) return y;
  }
  if (!are_static_arrays(x)) return nullptr;
  if (!same_splat(y, x->operand(1)) && y->shape().elems() != 0) return nullptr;
  return broadcast_scalar(x->operand(1), x->shape().extents(), b);
}

Instr* pad_negative(Instr* x, Builder& b) {
  const auto& pad = x->attrs_as<PadAttrs>();
  if (!are_static_arrays(x) || !all_equal(pad.interior, 0)) return nullptr;
  Ints starts, limits;
  bool cuts = false;
  for (size_t d = 0; d < pad.low.size(); ++d) {
    if (pad.low[d] > 0 || pad.high[d] > 0) return nullptr;
    cuts = cuts || pad.low[d] < 0 || pad.high[d] < 0;
    starts.push_back(-pad.low[d]);
    limits.push_back(x->operand(0)->shape().dims()[d].size + pad.high[d]);
    if (limits.back() < starts.back()) return nullptr;
  }
  return cuts ? b.slice(x->operand(0), starts, limits, {}) : nullptr;
}

Instr* pad_pad(Instr* x, Builder& b) {
  Instr* y = x->operand(0);
  if (!y->is(Opcode::pad) || y->users().size() > 1) return nullptr;
  const bool same_value =
      x->operand(1) == y->operand(1) || same_splat(x->operand(1), y->operand(1));
  const auto &outer = x->attrs_as<PadAttrs>(), &inner = y->attrs_as<PadAttrs>();
  auto grows = [](const PadAttrs& pad) {
    auto not_negative = [](int64_t i) { return i >= 0; };
    return all_equal(pad.interior, 0) &&
           std::all_of(pad.low.begin(), pad.low.end(), not_negative) &&
           std::all_of(pad.high.begin(), pad.high.end(), not_negative);
  };
  if (!same_value || !grows(outer) || !grows(inner)) return nullptr;
  return b.pad(y->operand(0), x->operand(1), plus(inner.low, outer.low),
               plus(inner.high, outer.high), {});
}

Instr* empty_result(Instr* x, Builder& b) {
  const bool given =
      x->is(Opcode::parameter) || x->is(Opcode::constant) || x->is(Opcode::get_tuple_element);
  if (given || !is_static_array(x) || x->shape().elems() != 0) return nullptr;
  if (!hlo::has_trait(x->opcode(), hlo::Trait::pure) || hlo::has_effect(*x)) return nullptr;
  return b.constant(Literal(x->shape().without_layout()));
}

}  // namespace heddle::opt::rules
