// stream_weights: the product of one row and a matrix that is unpacked from far smaller constants
// (weights of 2, 4 or 8 bits in blocks) takes as long as reading the matrix. Its numbers are packed
// into words of 32 bits, each of which holds numbers 16 positions apart, so that adjacent words
// unpack into adjacent numbers. The product becomes a sum that unpacks them as it reads
// (fuse/groups.h, find_once), instead of at load time into an array of floats:
//
//   dot(a[1,k], reshape((q[n,blocks,size] - zero) * scale))  =>
//     sum over words of scale * (sum over the shifts of a block of a * (word >> shift & mask)
//                                - zero * sum over these of a)
//
// The order of the sum changes. If the zero point is the middle of the numbers, as it mostly is,
// the words hold the differences to it: two shifts extend their signs, at the same cost as the
// shift and the mask.
#include <cmath>

#include "opt/match.h"
#include "opt/rewriter.h"
#include "precision/passes.h"

namespace heddle::precision {
namespace {

using hlo::Builder;
using hlo::Instr;
using hlo::Ints;
using hlo::Opcode;
using tensor::Shape;
using tensor::Type;

constexpr int64_t kWordBits = 32;
constexpr int64_t kLanes = 16;  // words processed together

// The smallest of 2, 4 and 8 bits that holds all of these u8 numbers.
int64_t bits_of(const Instr* x) {
  const auto most = [](const auto& self, const Instr* y, int depth) -> uint64_t {
    if (depth == 0) return UINT8_MAX;
    if (y->is(Opcode::reshape) || y->is(Opcode::transpose) || y->is(Opcode::slice))
      return self(self, y->operand(0), depth - 1);
    if (y->is(Opcode::concatenate)) {
      uint64_t all = 0;
      for (const Instr* part : y->operands()) all = std::max(all, self(self, part, depth - 1));
      return all;
    }
    const tensor::Literal* mask = y->is(Opcode::and_) ? opt::splat_of(y->operand(1)) : nullptr;
    return mask ? mask->get_bits(0) : UINT8_MAX;
  };
  const uint64_t found = most(most, x, 8);
  return found <= 3 ? 2 : found <= 15 ? 4 : 8;
}

Instr* with_scalar(Opcode opcode, Instr* x, double value, Builder& b) {
  return b.binary(opcode, x, b.full(x->shape().without_layout(), value));
}

// first, first + step, …
Instr* shifts(Type type, int64_t first, int64_t step, int64_t count, Builder& b) {
  Instr* x = b.iota(Shape::array(type, {count}), 0);
  x = with_scalar(Opcode::multiply, x, static_cast<double>(step), b);
  return with_scalar(Opcode::add, x, static_cast<double>(first), b);
}

// Order of the numbers in a row of weights: words [groups, kLanes], each with `parts` blocks of
// `steps` numbers; a block longer than one row of kLanes words has several groups.
struct Layout {
  int64_t bits, groups, parts, steps, size;
  int64_t each() const { return parts * steps; }
  int64_t k() const { return groups * each() * kLanes; }
  int64_t groups_of_block() const { return std::max<int64_t>(1, size / (each() * kLanes)); }
};

Layout layout_of(int64_t bits, int64_t blocks, int64_t size) {
  const int64_t each = kWordBits / bits, parts = std::max<int64_t>(1, each * kLanes / size);
  return {bits, (blocks * size + each * kLanes - 1) / (each * kLanes), parts, each / parts, size};
}

Instr* padded_to(Instr* x, int64_t d, int64_t extent, Builder& b) {
  const Ints extents = x->shape().extents();
  if (extents[static_cast<size_t>(d)] == extent) return x;
  Ints none(extents.size(), 0), high = none;
  high[static_cast<size_t>(d)] = extent - extents[static_cast<size_t>(d)];
  return b.pad(x, b.scalar(x->shape().type(), 0), none, high, none);
}

// u8 [n,blocks,size] as u32 [n,groups,kLanes]; computed from constants, once.
Instr* packed(Instr* numbers, const Layout& layout, Builder& b) {
  const Ints from = numbers->shape().extents();
  const Ints apart{from[0], layout.groups, layout.each(), kLanes};
  Instr* x = padded_to(b.reshape(numbers, {from[0], from[1] * from[2]}), 1, layout.k(), b);
  x = b.convert(b.reshape(x, apart), Type::u32);
  Instr* by = b.broadcast(shifts(Type::u32, 0, layout.bits, layout.each(), b), apart, {2});
  return b.reduce(Opcode::add, b.binary(Opcode::shift_left, x, by), {2});
}

// A factor of every number, or one per block, for numbers [n,groups,parts,kLanes]. Null: `x` is
// neither.
Instr* of_blocks(Instr* x, const Ints& all, const Layout& layout, Builder& b) {
  if (!x->is(Opcode::broadcast)) return nullptr;
  Instr* y = x->operand(0);
  if (y->shape().is_scalar()) return b.broadcast(y, all, {});
  if (x->dimensions() != Ints{0, 1}) return nullptr;
  const int64_t many = layout.groups_of_block();
  y = padded_to(y, 1, layout.groups * layout.parts / many, b);
  if (many == 1) return b.broadcast(b.reshape(y, {all[0], all[1], all[2]}), all, {0, 1, 2});
  y = b.broadcast(y, {all[0], all[1] / many, many, kLanes}, {0, 1});
  return b.reshape(y, all);
}

// The numbers of one step from words [n,groups,parts,kLanes], as f32; `is_signed`: sign-extended.
Instr* number(Instr* words, const Layout& layout, int64_t step, bool is_signed, Builder& b) {
  const Ints all = words->shape().extents();
  const int64_t first = layout.bits * step, next = layout.bits * layout.steps;
  if (is_signed) {
    const int64_t rest = kWordBits - layout.bits;
    Instr* by = shifts(Type::s32, rest - first, -next, layout.parts, b);
    Instr* q = b.bitcast_convert(words, Shape::array(Type::s32, all));
    q = b.binary(Opcode::shift_left, q, b.broadcast(by, all, {2}));
    return b.convert(with_scalar(Opcode::shift_right_arithmetic, q, static_cast<double>(rest), b),
                     Type::f32);
  }
  Instr* by = shifts(Type::u32, first, next, layout.parts, b);
  Instr* q = b.binary(Opcode::shift_right_logical, words, b.broadcast(by, all, {2}));
  q = with_scalar(Opcode::and_, q, static_cast<double>((int64_t{1} << layout.bits) - 1), b);
  return b.convert(b.convert(q, Type::s32), Type::f32);
}

opt::Rewriter::Proposal visit(Instr* x, Builder& b) {
  if (!x->is(Opcode::dot) || x->operands().size() != 2 || !opt::are_static_arrays(x)) return {};
  for (Instr* one : {x, x->operand(0), x->operand(1)})
    if (one->shape().type() != Type::f32) return {};
  const auto& attrs = x->attrs_as<hlo::DotAttrs>();
  Instr *a = x->operand(0), *w = x->operand(1);
  const int64_t k = w->shape().rank() == 2 ? w->shape().dim(1) : 0;
  if (!attrs.rest.empty() || !attrs.lhs_batch_dims.empty() ||
      attrs.rhs_contracting_dims != Ints{1} || a->shape().elems() != k)
    return {};
  // The last block may extend past k.
  if (w->is(Opcode::slice)) w = w->operand(0);
  if (!w->is(Opcode::reshape)) return {};
  const int64_t padded = w->shape().dim(1);
  w = w->operand(0);
  if (w->shape().rank() != 3 || w->shape().dim(0) != x->operand(1)->shape().dim(0) ||
      !w->is(Opcode::multiply) || !w->operand(0)->is(Opcode::subtract) ||
      !opt::is_constant_expression(w))
    return {};
  Instr* numbers = w->operand(0)->operand(0);
  if (!numbers->is(Opcode::convert) || numbers->operand(0)->shape().type() != Type::u8) return {};
  numbers = numbers->operand(0);
  const int64_t n = w->shape().dim(0), blocks = w->shape().dim(1), size = w->shape().dim(2);
  if (size % kLanes != 0 || (size & (size - 1)) != 0 || blocks * size != padded) return {};
  const Layout layout = layout_of(bits_of(numbers), blocks, size);
  if (layout.groups % layout.groups_of_block() != 0) return {};
  const Ints all{n, layout.groups, layout.parts, kLanes};
  Instr* zero = of_blocks(w->operand(0)->operand(1), all, layout, b);
  Instr* scale = of_blocks(w->operand(1), all, layout, b);
  if (!zero || !scale) return {};

  const Ints apart{layout.groups, layout.parts, layout.steps, kLanes};
  Instr* row = b.reshape(padded_to(b.reshape(a, {k}), 0, layout.k(), b), apart);
  const double middle = std::ldexp(1, static_cast<int>(layout.bits) - 1);
  const bool centered = opt::is_splat(zero, middle);
  if (centered) numbers = with_scalar(Opcode::xor_, numbers, middle, b);
  Instr* words = b.broadcast(packed(numbers, layout, b), all, {0, 1, 3});
  const auto of_row = [&](Instr* y) { return b.broadcast(y, all, {1, 2, 3}); };
  Instr* sums = nullptr;
  if (!centered) {
    sums = of_row(b.reduce(Opcode::add, row, {2}));
    sums = b.binary(Opcode::multiply, sums, b.unary(Opcode::negate, zero));
  }
  for (int64_t step = 0; step < layout.steps; ++step) {
    Instr* q = number(words, layout, step, centered, b);
    Instr* part = b.slice(row, {0, 0, step, 0}, {apart[0], apart[1], step + 1, apart[3]}, {});
    part = b.reshape(part, {apart[0], apart[1], apart[3]});
    Instr* product = b.binary(Opcode::multiply, of_row(part), q);
    sums = sums ? b.binary(Opcode::add, sums, product) : product;
  }
  sums = b.reduce(Opcode::add, b.binary(Opcode::multiply, sums, scale), {1, 2, 3});
  return {b.reshape(sums, x->shape().extents()), "row"};
}

}  // namespace

Result<bool> stream_weights(hlo::Module& module, const PassContext& context) {
  return opt::rewrite_module(module, context, "stream_weights", visit,
                             [](const Instr* instr) { return instr->is(Opcode::dot); });
}

}  // namespace heddle::precision
