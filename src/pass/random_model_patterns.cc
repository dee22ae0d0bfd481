// Patterns of random modules: reductions, contractions, indexing and control flow.
#include <algorithm>
#include <cmath>

#include "pass/random_builder.h"

namespace heddle::pass {

void RandomBuilder::reduction() {
  Value x = value_of_rank(random_.one_in(6) ? Type::s32 : float_type(), 1, 6);
  const Ints dimensions = some_dimensions(x.shape().rank());
  const std::vector<Opcode> opcodes = {Opcode::add, Opcode::add, Opcode::maximum, Opcode::minimum};
  const Opcode opcode = random_.pick(opcodes);
  if (random_.one_in(8)) {  // two results
    Value zero = full(x.type(), {}, 0);
    hlo::Computation* both = b_.module()->add_computation("sum_and_max");
    hlo::Builder in(both);
    const Shape scalar = Shape::scalar(x.type());
    std::vector<Instr*> p;
    for (int64_t i = 0; i < 4; ++i) p.push_back(in.parameter(i, scalar));
    both->set_root(
        in.tuple({in.binary(Opcode::add, p[0], p[2]), in.binary(Opcode::maximum, p[1], p[3])}));
    in.check();
    Instr* r = b_.reduce({x.instr, x.instr}, {zero.instr, zero.instr}, dimensions, both);
    const double count = static_cast<double>(x.shape().elems());
    keep({b_.get_tuple_element(r, 0), x.bound * count, false});
    keep({b_.get_tuple_element(r, 1), x.bound, x.exact});
    return;
  }
  keep(reduce(opcode, x, dimensions));
}

// Arbitrary dimension numbers: batch and contracting dimensions anywhere, several of each.
void RandomBuilder::dot() {
  const Type type = float_type();
  hlo::DotAttrs attrs;
  Ints lhs, rhs;
  double terms = 1;
  int64_t products = 1;
  auto extent = [&] {
    const int64_t e = random_.pick(extents_);
    if (products * e > 64 * options_.max_elems) return int64_t{1};
    products *= e;
    return e;
  };
  enum Role : int64_t { kBatch, kContracting, kFree };
  std::vector<Role> roles;
  auto some = [&](Role role, int64_t most) {
    for (int64_t n = random_.below(most + 1); n > 0; --n) roles.push_back(role);
  };
  some(kBatch, 2);
  roles.push_back(kContracting);
  some(kContracting, 1);
  Ints sizes;
  for (size_t i = 0; i < roles.size(); ++i) {
    sizes.push_back(extent());
    if (roles[i] == kContracting) terms *= static_cast<double>(sizes[i]);
  }
  auto side = [&](Ints& extents, Ints& batch, Ints& contracting) {
    const int64_t shared = static_cast<int64_t>(roles.size());
    const Ints order = permutation(shared + random_.below(3));
    batch.assign(0, 0);
    Ints place(static_cast<size_t>(shared));
    for (int64_t slot : order) {
      if (slot < shared) place[static_cast<size_t>(slot)] = static_cast<int64_t>(extents.size());
      extents.push_back(slot < shared ? sizes[static_cast<size_t>(slot)] : extent());
    }
    for (int64_t i = 0; i < shared; ++i) {
      const bool is_batch = roles[static_cast<size_t>(i)] == kBatch;
      (is_batch ? batch : contracting).push_back(place[static_cast<size_t>(i)]);
    }
  };
  side(lhs, attrs.lhs_batch_dims, attrs.lhs_contracting_dims);
  side(rhs, attrs.rhs_batch_dims, attrs.rhs_contracting_dims);
  const Shape lhs_shape = Shape::array(type, lhs), rhs_shape = Shape::array(type, rhs);
  if (lhs_shape.elems() > options_.max_elems || rhs_shape.elems() > options_.max_elems) return;
  Value a = value(type, lhs), b = value(type, rhs);
  if (a.bound * b.bound * terms < 1e4)
    keep({b_.dot(a.instr, b.instr, attrs), a.bound * b.bound * terms, false});
}

// gelu-like(x w + bias), as in the feed-forward part of a transformer.
void RandomBuilder::matmul_with_epilogue() {
  Value x = value_of_rank(Type::f32, 2, 3);
  const int64_t k = x.shape().dim(-1), n = random_.pick(extents_), rank = x.shape().rank();
  if (x.shape().elems() / k * n > options_.max_elems || k * n > options_.max_elems) return;
  Value w = random_.one_in(2) ? constant(Type::f32, {k, n}) : parameter(Type::f32, {k, n});
  hlo::DotAttrs attrs;
  attrs.lhs_contracting_dims = {rank - 1};
  attrs.rhs_contracting_dims = {0};
  Value y{b_.dot(x.instr, w.instr, attrs), x.bound * static_cast<double>(k), false};
  Value bias = parameter(Type::f32, {n});
  Value wide{b_.broadcast(bias.instr, y.shape().extents(), {rank - 1}), 1, true};
  y = tamed(binary(Opcode::add, y, wide), 8);
  if (random_.one_in(2)) y = binary(Opcode::multiply, y, unary(Opcode::logistic, y, 1));
  keep(y);
}

// softmax(q kT / scale) v, from [batch*seq, heads*depth] matrices, as models write it.
void RandomBuilder::attention() {
  const int64_t batch = 1 + random_.below(2), heads = 1 + random_.below(3);
  const int64_t seq = 1 + random_.below(8), depth = 1 + random_.below(8);
  auto part = [&](const Ints& order) {
    Value x = value(Type::f32, {batch * seq, heads * depth});
    x = tamed(x, 4);
    x.instr = b_.transpose(b_.reshape(x.instr, {batch, seq, heads, depth}), order);
    return x;
  };
  Value q = part({0, 2, 1, 3}), k = part({0, 2, 3, 1}), v = part({0, 2, 1, 3});
  hlo::DotAttrs scores{{0, 1}, {3}, {0, 1}, {2}, {}, {}, {}};
  Value s{b_.dot(q.instr, k.instr, scores), 16.0 * static_cast<double>(depth), false};
  s = tamed(s, 4);
  Value top = reduce(Opcode::maximum, s, {3});
  Value e = binary(Opcode::subtract, s, widen(top, 3, seq));
  e = unary(Opcode::exponential, e, 1);
  Value z = widen(reduce(Opcode::add, e, {3}), 3, seq);
  Value p{b_.binary(Opcode::divide, e.instr, z.instr), 1, false};
  Value y{b_.dot(p.instr, v.instr, {{0, 1}, {3}, {0, 1}, {2}, {}, {}, {}}), v.bound, false};
  y.instr = b_.reshape(b_.transpose(y.instr, {0, 2, 1, 3}), {batch * seq, heads * depth});
  keep(y);
}

void RandomBuilder::softmax() {
  Value x = value_of_rank(float_type(), 1, 4);
  const int64_t d = random_.below(x.shape().rank()), extent = x.shape().dim(d);
  Value top = reduce(Opcode::maximum, x, {d});
  Value e = binary(Opcode::subtract, x, widen(top, d, extent));
  e = unary(Opcode::exponential, e, 1);
  Value sum = widen(reduce(Opcode::add, e, {d}), d, extent);
  keep({b_.binary(Opcode::divide, e.instr, sum.instr), 1, false});
}

void RandomBuilder::layer_norm() {
  Value x = value_of_rank(float_type(), 1, 4);
  const int64_t rank = x.shape().rank(), extent = x.shape().dim(-1);
  auto mean = [&](Value v) {
    Value sum = reduce(Opcode::add, v, {rank - 1});
    Value n = full(v.type(), sum.shape().extents(), static_cast<double>(extent));
    return Value{b_.binary(Opcode::divide, sum.instr, n.instr), v.bound, false};
  };
  Value c = binary(Opcode::subtract, x, widen(mean(x), rank - 1, extent));
  Value variance = mean(binary(Opcode::multiply, c, c));
  // A large epsilon: rows of equal elements must not amplify rounding.
  Value y = binary(Opcode::add, variance, full(x.type(), variance.shape().extents(), 0.125));
  y = unary(Opcode::rsqrt, y, 3);
  y = binary(Opcode::multiply, c, widen(y, rank - 1, extent));
  y.bound = std::sqrt(static_cast<double>(extent));
  Value gamma = parameter(x.type(), {extent});
  Value wide{b_.broadcast(gamma.instr, x.shape().extents(), {rank - 1}), 1, true};
  keep(binary(Opcode::multiply, y, wide));
}

void RandomBuilder::gather() {
  Value x = value_of_rank(float_type(), 1, 3);
  const int64_t axis = random_.below(x.shape().rank());
  Ints extents;
  for (int64_t n = random_.below(3); n > 0; --n) extents.push_back(random_.pick(extents_));
  Value i = indices(extents, x.shape().dim(axis));
  Value y{b_.take(x.instr, i.instr, axis), x.bound, x.exact};
  keep(y);
}

void RandomBuilder::dynamic_slice() {
  Value x = value_of_rank(float_type(), 1, 3);
  std::vector<Instr*> starts;
  Ints sizes;
  for (int64_t extent : x.shape().extents()) {
    starts.push_back(indices({}, extent).instr);
    sizes.push_back(1 + random_.below(extent));
  }
  keep({b_.dynamic_slice(x.instr, starts, sizes), x.bound, x.exact});
}

void RandomBuilder::dynamic_update_slice() {
  Value x = value_of_rank(float_type(), 1, 3);
  std::vector<Instr*> starts;
  Ints sizes;
  for (int64_t extent : x.shape().extents()) {
    starts.push_back(indices({}, extent).instr);
    sizes.push_back(1 + random_.below(extent));
  }
  Value update = value(x.type(), sizes);
  keep({b_.dynamic_update_slice(x.instr, update.instr, starts), std::max(x.bound, update.bound),
        x.exact && update.exact});
}

// A function of two arrays, called once or twice.
void RandomBuilder::call() {
  Value a = value(Type::f32);
  Value b = value(Type::f32, a.shape().extents());
  hlo::Computation* callee = b_.module()->add_computation("scaled_sum");
  hlo::Builder in(callee);
  Instr* x = in.parameter(0, a.shape().without_layout());
  Instr* y = in.parameter(1, a.shape().without_layout());
  Instr* sum = in.binary(Opcode::add, x, in.unary(Opcode::tanh, y));
  callee->set_root(random_.one_in(2) ? sum : in.tuple({sum, x}));
  in.check();
  const int64_t times = 1 + random_.below(2);
  for (int64_t i = 0; i < times; ++i) {
    Instr* result = b_.call(callee, {a.instr, b.instr});
    if (callee->root()->is(Opcode::tuple)) result = b_.get_tuple_element(result, random_.below(2));
    a = keep({result, a.bound + 1, false});
  }
}

// for (i = 0; i < n; ++i) x = tanh(x + c); with a loop-invariant state element, and one whose
// result is not read.
void RandomBuilder::loop() {
  Value x = value(Type::f32);
  Value c = value(Type::f32, x.shape().extents());
  const Shape integer = Shape::scalar(Type::s32), array = x.shape().without_layout();
  const Shape state = Shape::make_tuple({integer, array, array, array});
  hlo::Computation* condition = b_.module()->add_computation("condition");
  hlo::Builder test(condition);
  Instr* p = test.parameter(0, state);
  condition->set_root(test.compare(hlo::Direction::lt, test.get_tuple_element(p, 0),
                                   test.scalar(Type::s32, static_cast<double>(random_.below(4)))));
  test.check();
  hlo::Computation* body = b_.module()->add_computation("body");
  hlo::Builder in(body);
  p = in.parameter(0, state);
  Instr* i = in.binary(Opcode::add, in.get_tuple_element(p, 0), in.scalar(Type::s32, 1));
  Instr* carried = in.get_tuple_element(p, 2);
  Instr* y = in.unary(Opcode::tanh, in.binary(Opcode::add, in.get_tuple_element(p, 1), carried));
  Instr* unread = in.binary(Opcode::add, in.get_tuple_element(p, 3), y);
  body->set_root(in.tuple({i, y, carried, unread}));
  in.check();
  Instr* start = b_.tuple({b_.scalar(Type::s32, 0), x.instr, c.instr, c.instr});
  Instr* result = b_.while_loop(condition, body, start);
  keep({b_.get_tuple_element(result, 1), std::max(x.bound, 1.0), false});
}

void RandomBuilder::branch() {
  Value x = value(Type::f32);
  const Shape array = x.shape().without_layout();
  auto side = [&](Opcode opcode) {
    hlo::Computation* result = b_.module()->add_computation("branch");
    hlo::Builder in(result);
    result->set_root(in.unary(opcode, in.parameter(0, array)));
    in.check();
    return result;
  };
  hlo::Computation* yes = side(Opcode::tanh);
  hlo::Computation* no = side(Opcode::negate);
  Instr* predicate = random_.one_in(2) ? constant(Type::pred, {}).instr : mask({}).instr;
  keep({b_.conditional(predicate, x.instr, yes, x.instr, no), std::max(x.bound, 1.0), false});
}

}  // namespace heddle::pass
