// Losses, and single steps of optimisers.
#include <cmath>

#include "import/onnx_emit.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

struct Reduced {
  std::string how;
  bool ignores = false;
  double ignored = 0;
};

Reduced read_reduction(Op& op) {
  Reduced r;
  r.how = op.string_attr("reduction", "mean");
  if (r.how != "none" && r.how != "sum" && r.how != "mean")
    op.fail("reduction is {}, wanted none, sum or mean", quoted(r.how));
  r.ignores = op.has_attr("ignore_index");
  r.ignored = static_cast<double>(op.int_attr("ignore_index", 0));
  return r;
}

// -x[n, target[n, ...], ...] weight[target], reduced. x: [N,C,...], target: [N,...].
Instr* negative_log_likelihood(Op& op, Instr* x, const Reduced& how) {
  const Ints extents = x->shape().extents();
  if (extents.size() < 2) op.fail("input is {}, wanted [N,C,...]", to_string(x->shape()));
  const Ints wanted = without(extents, {1});
  if (op.shape(1).extents() != wanted || !tensor::is_integer(op.type(1)))
    op.fail("target is {}, wanted integers [{}]", to_string(op.shape(1)), fmt::join(wanted, ","));
  const Type type = x->shape().type();
  Instr* target = op.in(1);
  Ints dims{0};
  for (int64_t d = 2; d < x->shape().rank(); ++d) dims.push_back(d);
  Instr* chosen = op.b.compare(Direction::eq, op.b.broadcast(target, extents, dims),
                               iota(op, op.type(1), extents, 1));
  Instr* zero = op.b.scalar(type, 0);
  const auto pick = [&](Instr* values) {
    return op.b.reduce(Opcode::add, select(op, chosen, values, zero), {1});
  };
  Instr* loss = op.b.unary(Opcode::negate, pick(x));
  Instr* weight = nullptr;  // of each element; null: ones
  if (op.has(2)) {
    if (op.type(2) != op.type(0)) op.fail("weight is {}", to_string(op.shape(2)));
    weight = pick(broadcast_along(op, op.b.convert(op.in(2), type), extents, 1));
  }
  if (how.ignores) {
    Instr* ignored = compare(op, Direction::eq, target, how.ignored);
    if (weight == nullptr) weight = op.b.full(Shape::array(type, wanted), 1);
    weight = select(op, ignored, zero, weight);
    loss = select(op, ignored, zero, loss);
  }
  if (weight != nullptr) loss = op.b.binary(Opcode::multiply, loss, weight);
  if (how.how == "none") return loss;
  const Ints all = range(0, loss->shape().rank());
  if (how.how == "sum") return op.b.reduce(Opcode::add, loss, all);
  if (weight == nullptr) return mean(op, loss, all);
  return op.b.binary(Opcode::divide, op.b.reduce(Opcode::add, loss, all),
                     op.b.reduce(Opcode::add, weight, all));
}

Outputs nll_loss(Op& op) {
  op.check_float(0);
  const Type type = op.type(0);
  Instr* x = op.b.convert(op.in(0), compute_type(type));
  return {op.b.convert(negative_log_likelihood(op, x, read_reduction(op)), type)};
}

Outputs softmax_cross_entropy(Op& op) {
  op.check_float(0);
  const Type type = op.type(0);
  Instr* x = op.b.convert(op.in(0), compute_type(type));
  if (op.rank(0) < 2) op.fail("scores is {}, wanted [N,C,...]", to_string(op.shape(0)));
  const Ints extents = op.shape(0).extents();
  Instr* largest = op.b.reduce(Opcode::maximum, x, {1});
  x = op.b.binary(Opcode::subtract, x, broadcast_back(op, largest, extents, {1}));
  Instr* total = op.b.reduce(Opcode::add, op.b.unary(Opcode::exponential, x), {1});
  Instr* log = op.b.unary(Opcode::log, total);
  x = op.b.binary(Opcode::subtract, x, broadcast_back(op, log, extents, {1}));
  return {op.b.convert(negative_log_likelihood(op, x, read_reduction(op)), type),
          op.b.convert(x, type)};
}

// Inputs of an optimiser: rate R, step count T, then all X, all G, and so on.
struct Training {
  size_t count = 0;
  Instr *rate = nullptr, *step = nullptr;
};

Training read_training(Op& op, size_t each) {
  Training t;
  if (op.inputs() < 2 + each || (op.inputs() - 2) % each != 0)
    op.fail("{} inputs, wanted 2 and {} a tensor", op.inputs(), each);
  t.count = (op.inputs() - 2) / each;
  if (op.shape(0).elems() != 1 || op.shape(1).elems() != 1) op.fail("R and T must be scalars");
  t.rate = reshape(op, op.in(0), {});
  t.step = reshape(op, op.in(1), {});
  for (size_t i = 2; i < op.inputs(); ++i) {
    op.check_float(i);
    if (!(op.shape(i) == op.shape(2 + (i - 2) % t.count)))
      op.fail("input {} is {}", i, to_string(op.shape(i)));
  }
  return t;
}

Instr* add(Op& op, Instr* a, Instr* b) { return op.b.binary(Opcode::add, a, b); }
Instr* times(Op& op, Instr* a, Instr* b) { return op.b.binary(Opcode::multiply, a, b); }

// G + norm_coefficient X
Instr* regularised(Op& op, Instr* gradient, Instr* x) {
  const double norm = op.float_attr("norm_coefficient", 0);
  return norm == 0 ? gradient : add(op, gradient, binary(op, Opcode::multiply, x, norm));
}

Outputs adagrad(Op& op) {
  const Training t = read_training(op, 3);
  const double decay = op.float_attr("decay_factor", 0), epsilon = op.float_attr("epsilon", 0);
  Outputs xs, sums;
  for (size_t i = 0; i < t.count; ++i) {
    Instr *x = op.in(2 + i), *sum = op.in(2 + 2 * t.count + i);
    const Type type = x->shape().type();
    Instr* gradient = regularised(op, op.in(2 + t.count + i), x);
    Instr* below = binary(op, Opcode::multiply, op.b.convert(t.step, type), decay);
    Instr* rate =
        op.b.binary(Opcode::divide, op.b.convert(t.rate, type), binary(op, Opcode::add, below, 1));
    sum = add(op, sum, times(op, gradient, gradient));
    Instr* size = binary(op, Opcode::add, op.b.unary(Opcode::sqrt, sum), epsilon);
    Instr* move = op.b.binary(Opcode::divide, gradient, size);
    move = times(op, move, splat(op, rate, x->shape().extents()));
    xs.emplace_back(op.b.binary(Opcode::subtract, x, move));
    sums.emplace_back(sum);
  }
  xs.insert(xs.end(), sums.begin(), sums.end());
  return xs;
}

Outputs adam(Op& op) {
  const Training t = read_training(op, 4);
  const double alpha = op.float_attr("alpha", 0.9), beta = op.float_attr("beta", 0.999);
  const double epsilon = op.float_attr("epsilon", 0),
               after = op.float_attr("norm_coefficient_post", 0);
  Outputs xs, firsts, seconds;
  for (size_t i = 0; i < t.count; ++i) {
    const auto in = [&](size_t group) { return op.in(2 + group * t.count + i); };
    Instr* x = in(0);
    const Type type = x->shape().type();
    const Ints extents = x->shape().extents();
    Instr* gradient = regularised(op, in(1), x);
    const auto decayed = [&](Instr* old, double keep, Instr* fresh) {
      return add(op, binary(op, Opcode::multiply, old, keep),
                 binary(op, Opcode::multiply, fresh, 1 - keep));
    };
    Instr* first = decayed(in(2), alpha, gradient);
    Instr* second = decayed(in(3), beta, times(op, gradient, gradient));
    // Bias correction, for steps after the first.
    Instr* step = op.b.convert(t.step, type);
    const auto rest = [&](double base) {
      Instr* power = op.b.binary(Opcode::power, op.b.scalar(type, base), step);
      return op.b.binary(Opcode::subtract, op.b.scalar(type, 1), power);
    };
    Instr* rate = op.b.convert(t.rate, type);
    Instr* corrected = op.b.binary(
        Opcode::divide, times(op, rate, op.b.unary(Opcode::sqrt, rest(beta))), rest(alpha));
    rate = op.b.select(compare(op, Direction::gt, step, 0), corrected, rate);
    Instr* size = binary(op, Opcode::add, op.b.unary(Opcode::sqrt, second), epsilon);
    Instr* move = op.b.binary(Opcode::divide, times(op, splat(op, rate, extents), first), size);
    x = op.b.binary(Opcode::subtract, x, move);
    if (after != 0) x = binary(op, Opcode::multiply, x, 1 - after);
    xs.emplace_back(x);
    firsts.emplace_back(first);
    seconds.emplace_back(second);
  }
  xs.insert(xs.end(), firsts.begin(), firsts.end());
  xs.insert(xs.end(), seconds.begin(), seconds.end());
  return xs;
}

Outputs momentum(Op& op) {
  const Training t = read_training(op, 3);
  const double alpha = op.float_attr("alpha", 0), beta = op.float_attr("beta", 0);
  const std::string mode = op.string_attr("mode", "standard");
  if (mode != "standard" && mode != "nesterov")
    op.fail("mode is {}, wanted standard or nesterov", quoted(mode));
  Outputs xs, velocities;
  for (size_t i = 0; i < t.count; ++i) {
    Instr *x = op.in(2 + i), *velocity = op.in(2 + 2 * t.count + i);
    const Type type = x->shape().type();
    const Ints extents = x->shape().extents();
    Instr* gradient = regularised(op, op.in(2 + t.count + i), x);
    // The first step takes the full gradient.
    Instr* weight = op.b.select(compare(op, Direction::gt, t.step, 0), op.b.scalar(type, beta),
                                op.b.scalar(type, 1));
    velocity = add(op, binary(op, Opcode::multiply, velocity, alpha),
                   times(op, gradient, splat(op, weight, extents)));
    Instr* move = mode == "standard"
                      ? velocity
                      : add(op, gradient, binary(op, Opcode::multiply, velocity, alpha));
    move = times(op, move, splat(op, op.b.convert(t.rate, type), extents));
    xs.emplace_back(op.b.binary(Opcode::subtract, x, move));
    velocities.emplace_back(velocity);
  }
  xs.insert(xs.end(), velocities.begin(), velocities.end());
  return xs;
}

constexpr OpEntry kOps[] = {
    {"NegativeLogLikelihoodLoss", 2, 3, nll_loss},
    {"SoftmaxCrossEntropyLoss", 2, 3, softmax_cross_entropy},
    {"ai.onnx.preview.training.Adagrad", 5, -1, adagrad},
    {"ai.onnx.preview.training.Adam", 6, -1, adam},
    {"ai.onnx.preview.training.Momentum", 5, -1, momentum},
};

}  // namespace

std::span<const OpEntry> loss_ops() { return kOps; }

}  // namespace heddle::import
