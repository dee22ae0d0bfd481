#include "pass/random_module.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "pass/random_builder.h"

namespace heddle::pass {
namespace {

constexpr double kTame = 8;          // floats with a larger bound are scaled down
constexpr double kMaxInteger = 1e9;  // bounds of integers that may wrap

int64_t product(const Ints& extents) {
  int64_t result = 1;
  for (int64_t extent : extents) result *= extent;
  return result;
}

}  // namespace

RandomBuilder::RandomBuilder(hlo::Module& module, uint64_t seed, const RandomModuleOptions& options)
    : options_(options), random_(seed), b_(module.entry()) {
  using B = RandomBuilder;
  patterns_ = {&B::elementwise_unary,
               &B::elementwise_unary,
               &B::elementwise_binary,
               &B::elementwise_binary,
               &B::elementwise_binary,
               &B::elementwise_ternary,
               &B::integers,
               &B::conversion,
               &B::broadcast,
               &B::reshape,
               &B::transpose,
               &B::slice,
               &B::pad,
               &B::concatenate,
               &B::reverse};
  auto add = [&](bool wanted, std::initializer_list<Pattern> patterns) {
    if (wanted) patterns_.insert(patterns_.end(), patterns);
  };
  add(options.reductions, {&B::reduction, &B::reduction, &B::softmax, &B::layer_norm});
  add(options.contractions, {&B::dot, &B::dot, &B::matmul_with_epilogue, &B::attention});
  add(options.indexing, {&B::gather, &B::dynamic_slice, &B::dynamic_update_slice});
  add(options.foldable, {&B::neutral, &B::neutral, &B::move_there_and_back});
  add(options.control, {&B::call, &B::call, &B::loop, &B::branch});
  const Ints all = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 32};
  for (int i = 0; i < 4; ++i) extents_.push_back(random_.pick(all));
  for (int i = 0; i < 2; ++i) keep(parameter(Type::f32, shape()));
}

void RandomBuilder::step() {
  (this->*random_.pick(patterns_))();
  b_.check();
}

// Outputs: the newest value and a few others; the rest is dead code.
void RandomBuilder::finish() {
  std::vector<Instr*> outputs{pool_.back().instr};
  const int64_t more = random_.below(4);
  for (int64_t i = 0; i < more; ++i) {
    const Value& value = random_.pick(pool_);
    if (!value.instr->is(Opcode::parameter)) outputs.push_back(value.instr);
  }
  for (const Value& value : pool_)
    if (value.instr->users().empty() && random_.one_in(2)) outputs.push_back(value.instr);
  if (outputs.size() == 1 && random_.one_in(2)) {
    b_.computation()->set_root(outputs[0]);
  } else {
    b_.computation()->set_root(b_.tuple(outputs));
  }
  b_.check();
}

Type RandomBuilder::float_type() {
  if (options_.narrow && random_.one_in(10)) return random_.one_in(2) ? Type::f16 : Type::bf16;
  if (options_.wide && random_.one_in(10)) return Type::f64;
  return Type::f32;
}

Ints RandomBuilder::shape() {
  Ints result;
  const int64_t rank = std::min<int64_t>(random_.below(6), 4);
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t extent = random_.one_in(8) ? 1 : random_.pick(extents_);
    if (product(result) * extent <= options_.max_elems) result.push_back(extent);
  }
  return result;
}

Value RandomBuilder::parameter(Type type, const Ints& extents) {
  const int64_t number = parameters_++;
  Instr* instr = b_.parameter(number, Shape::array(type, extents), "p" + std::to_string(number));
  return {instr, tensor::is_integer(type) ? 100.0 : 1.0, true};
}

Value RandomBuilder::constant(Type type, const Ints& extents) {
  tensor::Literal literal(Shape::array(type, extents));
  for (int64_t i = 0; i < literal.elems(); ++i) {
    const double number = tensor::is_float(type) ? random_.unit() * 2 - 1
                          : type == Type::pred   ? static_cast<double>(random_.below(2))
                                                 : static_cast<double>(random_.below(9)) - 4;
    literal.set_f64(i, number);
  }
  return {b_.constant(std::move(literal)), tensor::is_float(type) ? 1.0 : 4.0, true};
}

Value RandomBuilder::full(Type type, const Ints& extents, double number) {
  return {b_.full(Shape::array(type, extents), number), std::abs(number), true};
}

Value RandomBuilder::value(Type type) {
  std::vector<Value> fitting;
  for (const Value& value : pool_)
    if (value.type() == type) fitting.push_back(value);
  // Later values are twice as likely, so that chains grow long.
  if (!fitting.empty() && !random_.one_in(12)) {
    const int64_t n = static_cast<int64_t>(fitting.size());
    return fitting[static_cast<size_t>(std::max(random_.below(n), random_.below(n)))];
  }
  return parameter(type, shape());
}

Value RandomBuilder::value(Type type, const Ints& extents) {
  std::vector<Value> fitting;
  for (const Value& value : pool_)
    if (value.type() == type && value.shape().extents() == extents) fitting.push_back(value);
  if (!fitting.empty() && !random_.one_in(4)) return random_.pick(fitting);
  switch (random_.below(4)) {
    case 0:
      return full(type, extents, tensor::is_float(type) ? random_.unit() * 2 - 1 : 3);
    case 1:
      return constant(type, extents);
    case 2:
      if (!extents.empty()) {  // along one dimension
        const int64_t d = random_.below(static_cast<int64_t>(extents.size()));
        Value x = parameter(type, {extents[static_cast<size_t>(d)]});
        return {b_.broadcast(x.instr, extents, {d}), x.bound, true};
      }
      [[fallthrough]];
    default:
      return parameter(type, extents);
  }
}

Value RandomBuilder::value_of_rank(Type type, int64_t least, int64_t most) {
  for (int attempt = 0; attempt < 8; ++attempt) {
    Value x = value(type);
    if (x.shape().rank() >= least && x.shape().rank() <= most) return x;
  }
  Ints extents;
  while (static_cast<int64_t>(extents.size()) < least) extents.push_back(random_.pick(extents_));
  while (product(extents) > options_.max_elems)
    *std::max_element(extents.begin(), extents.end()) = 2;
  return parameter(type, extents);
}

Value RandomBuilder::mask(const Ints& extents) {
  const Shape shape = Shape::array(Type::s32, extents);
  Instr* a = nullptr;
  if (!extents.empty() && random_.one_in(2)) {
    a = b_.iota(shape, random_.below(shape.rank()));
  } else {
    a = parameter(Type::s32, extents).instr;
  }
  const auto direction = static_cast<hlo::Direction>(random_.below(6));
  return {b_.compare(direction, a, b_.full(shape, static_cast<double>(random_.below(5)))), 1, true};
}

Value RandomBuilder::indices(const Ints& extents, int64_t limit) {
  tensor::Literal literal(Shape::array(Type::s32, extents));
  if (random_.one_in(2)) return parameter(Type::s32, extents);
  // Includes some values out of range, which are clamped.
  for (int64_t i = 0; i < literal.elems(); ++i) literal.set_s64(i, random_.below(limit + 2) - 1);
  return {b_.constant(std::move(literal)), static_cast<double>(limit), true};
}

Value RandomBuilder::tamed(Value x, double limit) {
  if (x.bound <= limit) return x;
  if (tensor::is_float(x.type())) {
    if (random_.one_in(2)) return {b_.unary(Opcode::tanh, x.instr), 1, false};
    const double scale = std::exp2(std::floor(std::log2(limit / x.bound)));
    Value s = full(x.type(), x.shape().extents(), scale);
    return binary(Opcode::multiply, x, s);
  }
  return x;
}

Value RandomBuilder::keep(Value x) {
  if (x.shape().elems() > options_.max_elems) {
    b_.computation()->remove(x.instr);
    return x;
  }
  if (tensor::is_float(x.type())) x = tamed(x, kTame);
  if (!tensor::is_float(x.type())) x.bound = std::min(x.bound, kMaxInteger);
  pool_.push_back(x);
  return x;
}

Value RandomBuilder::unary(Opcode opcode, Value x, double bound) {
  return {b_.unary(opcode, x.instr), bound, false};
}

Value RandomBuilder::binary(Opcode opcode, Value a, Value b) {
  double bound = std::max(a.bound, b.bound);
  if (opcode == Opcode::add || opcode == Opcode::subtract) bound = a.bound + b.bound;
  if (opcode == Opcode::multiply) bound = a.bound * b.bound;
  // Float sums and products may be contracted to fma: not exact.
  const bool rounds =
      tensor::is_float(a.type()) && opcode != Opcode::maximum && opcode != Opcode::minimum;
  return {b_.binary(opcode, a.instr, b.instr), bound, !rounds && a.exact && b.exact};
}

Value RandomBuilder::reduce(Opcode opcode, Value x, const Ints& dimensions) {
  double count = 1;
  for (int64_t d : dimensions) count *= static_cast<double>(x.shape().dim(d));
  const bool sum = opcode == Opcode::add;
  return {b_.reduce(opcode, x.instr, dimensions), sum ? x.bound * count : x.bound,
          x.exact && !(sum && tensor::is_float(x.type()))};
}

Value RandomBuilder::widen(Value x, int64_t dimension, int64_t extent) {
  Ints extents = x.shape().extents(), dimensions;
  extents.insert(extents.begin() + dimension, extent);
  for (int64_t d = 0; d < static_cast<int64_t>(extents.size()); ++d)
    if (d != dimension) dimensions.push_back(d);
  return {b_.broadcast(x.instr, extents, dimensions), x.bound, x.exact};
}

Ints RandomBuilder::some_dimensions(int64_t rank) {
  Ints result;
  for (int64_t d = 0; d < rank; ++d)
    if (random_.one_in(2)) result.push_back(d);
  if (result.empty()) result.push_back(random_.below(rank));
  return result;
}

Ints RandomBuilder::permutation(int64_t rank) {
  Ints result(static_cast<size_t>(rank));
  for (int64_t d = 0; d < rank; ++d) result[static_cast<size_t>(d)] = d;
  for (int64_t d = rank - 1; d > 0; --d)
    std::swap(result[static_cast<size_t>(d)], result[static_cast<size_t>(random_.below(d + 1))]);
  return result;
}

std::unique_ptr<hlo::Module> random_module(uint64_t seed, const RandomModuleOptions& options) {
  auto module = std::make_unique<hlo::Module>("random_" + std::to_string(seed));
  module->set_entry(module->add_computation("main"));
  RandomBuilder builder(*module, seed, options);
  for (int i = 0; i < options.steps; ++i) builder.step();
  builder.finish();
  return module;
}

}  // namespace heddle::pass
