// Random operators: counter-based bits from a key (the node's seed) and a counter of the program
// (rng-get-and-update-state), which continues from run to run. A newly opened model draws the same
// numbers again, with any number of threads; other runtimes draw different ones.
#include <bit>
#include <cmath>
#include <numbers>

#include "import/onnx_emit.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

// The node's seed, spread over 64 bits; nodes without a seed share a key.
uint64_t key_attr(Op& op) {
  uint64_t bits = 0xffffffff;  // not the bits of a number
  if (op.has_attr("seed"))
    bits = op.node().op_type == "Dropout"
               ? static_cast<uint64_t>(op.int_attr("seed", 0))
               : std::bit_cast<uint32_t>(static_cast<float>(op.float_attr("seed", 0)));
  return (bits + 1) * 0x9e3779b97f4a7c15u;
}

// Numbers in [0, 1) with the type's full precision: f32 or f64.
Instr* unit(Op& op, const Ints& extents, Type type) {
  op.check_extents(extents);
  const bool wide = type == Type::f64;
  const Type word = wide ? Type::u64 : Type::u32;
  const Shape state = Shape::array(Type::u64, {2});
  hlo::RngStateAttrs takes;
  takes.delta = product(extents) + 1;
  Instr* running = op.b.make(Opcode::rng_get_and_update_state, {}, takes, {}, &state);
  Literal key(Shape::array(Type::u64, {1}));
  key.set_s64(0, static_cast<int64_t>(key_attr(op)));
  Instr* counter = op.b.slice(running, {0}, {1}, {});
  const Shape both = Shape::make_tuple({state, Shape::array(word, extents)});
  hlo::RngBitGeneratorAttrs algorithm;
  algorithm.algorithm = hlo::RngBitGeneratorAttrs::Algorithm::three_fry;
  Instr* drawn = op.b.make(Opcode::rng_bit_generator,
                           {op.b.concatenate({op.b.constant(std::move(key)), counter}, 0)},
                           algorithm, {}, &both);
  Instr* bits =
      binary(op, Opcode::shift_right_logical, op.b.get_tuple_element(drawn, 1), wide ? 11 : 8);
  return binary(op, Opcode::multiply, op.b.convert(bits, type), wide ? 0x1p-53 : 0x1p-24);
}

// Standard normal numbers (Box and Muller).
Instr* normal(Op& op, const Ints& extents, Type type) {
  Instr* u = unit(op, extents, type);
  Instr* not_zero = op.b.binary(Opcode::subtract, op.b.full(u->shape(), 1), u);
  Instr* radius =
      op.b.unary(Opcode::sqrt, binary(op, Opcode::multiply, op.b.unary(Opcode::log, not_zero), -2));
  Instr* angle = binary(op, Opcode::multiply, unit(op, extents, type), 2 * std::numbers::pi);
  return op.b.binary(Opcode::multiply, radius, op.b.unary(Opcode::cosine, angle));
}

Type drawn_in(Type type) { return type == Type::f64 ? Type::f64 : Type::f32; }

// The attribute dtype; without it, for *Like: the input's type if it is a float.
Type type_attr(Op& op, bool like) {
  Type type = like && tensor::is_float(op.type(0)) ? op.type(0) : Type::f32;
  if (op.has_attr("dtype")) type = element_type(op.int_attr("dtype", 0), op.describe());
  if (!tensor::is_float(type)) op.fail("dtype is {}, wanted a float", tensor::type_name(type));
  return type;
}

Ints extents_attr(Op& op, bool like) {
  if (!like && !op.has_attr("shape")) op.fail("attribute 'shape' is missing");
  return like ? op.shape(0).extents() : op.ints_attr("shape");
}

template <bool like>
Outputs random_uniform(Op& op) {
  const Type type = type_attr(op, like);
  const double low = op.float_attr("low", 0), high = op.float_attr("high", 1);
  Instr* x = unit(op, extents_attr(op, like), drawn_in(type));
  x = binary(op, Opcode::add, binary(op, Opcode::multiply, x, high - low), low);
  return {op.b.convert(x, type)};
}

template <bool like>
Outputs random_normal(Op& op) {
  const Type type = type_attr(op, like);
  const double mean = op.float_attr("mean", 0), scale = op.float_attr("scale", 1);
  Instr* x = normal(op, extents_attr(op, like), drawn_in(type));
  x = binary(op, Opcode::add, binary(op, Opcode::multiply, x, scale), mean);
  return {op.b.convert(x, type)};
}

Outputs bernoulli(Op& op) {
  op.check_float(0);
  Type type = op.type(0);
  if (op.has_attr("dtype")) type = element_type(op.int_attr("dtype", 0), op.describe());
  const Type compute = drawn_in(op.type(0));
  Instr* p = op.b.convert(op.in(0), compute);
  return {
      op.b.convert(op.b.compare(Direction::lt, unit(op, p->shape().extents(), compute), p), type)};
}

// Samples from logits [rows, classes]: the largest after adding an independent Gumbel number to
// each.
Outputs multinomial(Op& op) {
  op.check_float(0);
  const int64_t samples = op.int_attr("sample_size", 1);
  const Type type =
      op.has_attr("dtype") ? element_type(op.int_attr("dtype", 0), op.describe()) : Type::s32;
  if (op.rank(0) != 2 || op.shape(0).dim(1) < 1 || samples < 0 || !tensor::is_integer(type))
    op.fail("input is {}, sample_size {}, dtype {}", to_string(op.shape(0)), samples,
            tensor::type_name(type));
  const int64_t rows = op.shape(0).dim(0), classes = op.shape(0).dim(1);
  const Ints all = op.check_extents({rows, samples, classes});
  Instr* u = unit(op, all, Type::f32);
  Instr* not_zero = op.b.binary(Opcode::subtract, op.b.full(u->shape(), 1), u);
  Instr* gumbel = op.b.unary(
      Opcode::negate,
      op.b.unary(Opcode::log, op.b.unary(Opcode::negate, op.b.unary(Opcode::log, not_zero))));
  Instr* logits = op.b.broadcast(op.b.convert(op.in(0), Type::f32), all, {0, 2});
  Instr* score = op.b.binary(Opcode::add, logits, gumbel);
  Instr* largest = op.b.broadcast(op.b.reduce(Opcode::maximum, score, {2}), all, {0, 1});
  Instr* place = iota(op, Type::s32, all, 2);
  Instr* last = op.b.full(place->shape(), static_cast<double>(classes - 1));
  Instr* chosen = op.b.select(op.b.compare(Direction::eq, score, largest), place, last);
  return {op.b.convert(op.b.reduce(Opcode::minimum, chosen, {2}), type)};
}

// Whether elements are dropped: given by an input (opset 12), before opset 7 by an attribute.
bool drops(Op& op) {
  op.ignore({"is_test", "seed", "ratio"});
  if (op.opset() < 7) return op.int_attr("is_test", 0) == 0;
  return op.has(2) && op.known_int(2, "training_mode") != 0;
}

Outputs dropout(Op& op) {
  const Type type = op.type(0), compute = drawn_in(type);
  const Type mask = op.opset() < 10 ? type : Type::pred;
  const Ints extents = op.shape(0).extents();
  const bool training = drops(op);
  double number = op.float_attr("ratio", 0.5);
  // With a ratio of 0 nothing is drawn, so the ratio must be known.
  if (training && op.has(1)) number = op.known_float(1, "ratio");
  if (!training || number == 0) {
    Outputs outputs = {op.value(0)};
    if (op.wants(1)) outputs.push_back(op.b.full(Shape::array(mask, extents), 1));
    return outputs;
  }
  if (!(number > 0 && number < 1)) op.fail("ratio is {}, wanted 0 or more and less than 1", number);
  Instr* ratio = op.b.full(Shape::array(compute, extents), number);
  Instr* kept = op.b.compare(Direction::ge, unit(op, extents, compute), ratio);
  Instr* rest = op.b.binary(Opcode::subtract, op.b.full(ratio->shape(), 1), ratio);
  Instr* x = op.b.binary(Opcode::divide, op.b.convert(op.in(0), compute), rest);
  x = op.b.select(kept, x, op.b.full(x->shape(), 0));
  return {op.b.convert(x, type), op.b.convert(kept, mask)};
}

constexpr OpEntry kOps[] = {
    {"Bernoulli", 1, 1, bernoulli, false},
    {"Dropout", 1, 3, dropout, false},
    {"Multinomial", 1, 1, multinomial, false},
    {"RandomNormal", 0, 0, random_normal<false>, false},
    {"RandomNormalLike", 1, 1, random_normal<true>, false},
    {"RandomUniform", 0, 0, random_uniform<false>, false},
    {"RandomUniformLike", 1, 1, random_uniform<true>, false},
};

}  // namespace

std::span<const OpEntry> random_ops() { return kOps; }

}  // namespace heddle::import
