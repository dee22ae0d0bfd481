// Support vector machines of ai.onnx.ml: products with the support vectors, and votes of the class
// pairs.
#include <algorithm>
#include <cmath>

#include "import/onnx_ml.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

using ml::Transform;

struct Kernel {
  std::string type;
  double gamma = 0, coef0 = 0, degree = 0;
};

Kernel kernel_attr(Op& op) {
  Kernel kernel;
  kernel.type = op.string_attr("kernel_type", "LINEAR");
  const std::vector<float> params = op.floats_attr("kernel_params");
  if (!params.empty() && params.size() != 3)
    op.fail("kernel_params has {} numbers, wanted gamma, coef0, degree", params.size());
  if (!params.empty()) {
    kernel.gamma = static_cast<double>(params[0]);
    kernel.coef0 = static_cast<double>(params[1]);
    kernel.degree = static_cast<double>(params[2]);
  }
  if (kernel.type != "LINEAR" && kernel.type != "POLY" && kernel.type != "RBF" &&
      kernel.type != "SIGMOID")
    op.fail("kernel_type is {}, wanted LINEAR, POLY, RBF or SIGMOID", quoted(kernel.type));
  return kernel;
}

// K(x, v) for every row and support vector: [rows, vectors].
Instr* kernel_values(Op& op, Instr* x, const std::vector<float>& vectors, int64_t count,
                     const Kernel& kernel) {
  Instr* dots = ml::times_rows(op, x, vectors, count, "support_vectors");
  if (kernel.type == "LINEAR") return dots;
  if (kernel.type == "RBF") {  // |x - v|^2 = |x|^2 + |v|^2 - 2 x v
    std::vector<double> squares(static_cast<size_t>(count), 0);
    const auto width = static_cast<size_t>(x->shape().dim(1));
    for (size_t i = 0; i < vectors.size(); ++i)
      squares[i / width] += static_cast<double>(vectors[i]) * static_cast<double>(vectors[i]);
    Instr* of_x = op.b.reduce(Opcode::add, op.b.binary(Opcode::multiply, x, x), {1});
    const Ints extents = dots->shape().extents();
    Instr* of_v = ml::constant_list(op, x->shape().type(), squares, {count});
    Instr* sum = op.b.binary(Opcode::add, op.b.broadcast(of_x, extents, {0}),
                             op.b.broadcast(of_v, extents, {1}));
    Instr* distance = op.b.binary(Opcode::subtract, sum, binary(op, Opcode::multiply, dots, 2));
    distance = binary(op, Opcode::maximum, distance, 0);
    return op.b.unary(Opcode::exponential, binary(op, Opcode::multiply, distance, -kernel.gamma));
  }
  Instr* inner =
      binary(op, Opcode::add, binary(op, Opcode::multiply, dots, kernel.gamma), kernel.coef0);
  if (kernel.type == "SIGMOID") return op.b.unary(Opcode::tanh, inner);
  if (kernel.degree != std::floor(kernel.degree) || kernel.degree < 1 || kernel.degree > 16)
    return binary(op, Opcode::power, inner, kernel.degree);
  Instr* power = inner;
  for (int64_t i = 1; i < static_cast<int64_t>(kernel.degree); ++i)
    power = op.b.binary(Opcode::multiply, power, inner);
  return power;
}

Outputs svm_regressor(Op& op) {
  const Kernel kernel = kernel_attr(op);
  const Transform transform = ml::transform_attr(op);
  const std::vector<float> coefficients = op.floats_attr("coefficients"),
                           vectors = op.floats_attr("support_vectors"), rho = op.floats_attr("rho");
  const int64_t supports = op.int_attr("n_supports", 0);
  Instr* x = ml::table_input(op, 0, Type::f32);
  Instr* y = x;
  if (supports > 0) y = kernel_values(op, x, vectors, supports, kernel);
  y = ml::add_row(op, ml::times_rows(op, y, coefficients, 1, "coefficients"), rho, "rho");
  if (op.int_attr("one_class", 0) != 0) {
    Instr* inside = compare(op, Direction::gt, y, 0);
    return {op.b.select(inside, op.b.full(y->shape(), 1), op.b.full(y->shape(), -1))};
  }
  return {transform == Transform::probit ? ml::transformed(op, y, transform) : y};
}

// Support vectors by class, and a classifier for each pair of classes i < j.
struct Machine {
  Ints counts, starts;
  int64_t classes = 0, vectors = 0;
  std::vector<float> coefficients;  // [classes - 1, vectors]
  int64_t pairs() const { return classes * (classes - 1) / 2; }
};

// A matrix [vectors, pairs]: the weight of each vector in each pair.
Instr* pair_weights(Op& op, const Machine& machine) {
  Literal weights(Shape::array(Type::f32, {machine.vectors, machine.pairs()}));
  const auto coefficient = [&](int64_t row, int64_t vector) {
    return static_cast<double>(
        machine.coefficients[static_cast<size_t>(row * machine.vectors + vector)]);
  };
  int64_t pair = 0;
  for (int64_t i = 0; i < machine.classes; ++i) {
    for (int64_t j = i + 1; j < machine.classes; ++j, ++pair) {
      const auto add = [&](int64_t of, int64_t row) {
        const auto at = static_cast<size_t>(of);
        for (int64_t v = machine.starts[at]; v < machine.starts[at] + machine.counts[at]; ++v)
          weights.set_f64(v * machine.pairs() + pair, coefficient(row, v));
      };
      add(i, j - 1);
      add(j, i);
    }
  }
  return op.b.constant(std::move(weights));
}

// The number of pairs that each class wins: [rows, classes].
Instr* votes(Op& op, const Machine& machine, Instr* scores) {
  Literal first(Shape::array(Type::f32, {machine.pairs(), machine.classes})), second = first;
  int64_t pair = 0;
  for (int64_t i = 0; i < machine.classes; ++i) {
    for (int64_t j = i + 1; j < machine.classes; ++j, ++pair) {
      first.set_f64(pair * machine.classes + i, 1);
      second.set_f64(pair * machine.classes + j, 1);
    }
  }
  Instr* wins = op.b.convert(compare(op, Direction::gt, scores, 0), Type::f32);
  Instr* losses = op.b.binary(Opcode::subtract, op.b.full(wins->shape(), 1), wins);
  return op.b.binary(Opcode::add, matrix_product(op, wins, op.b.constant(first)),
                     matrix_product(op, losses, op.b.constant(second)));
}

// Class probabilities from pair probabilities: one round of the second method of Wu, Lin and Weng
// (2004), as in libsvm. `p`: [rows, classes]; `q`: [rows, classes, classes].
struct Round {
  Instr *p = nullptr, *error = nullptr;  // error: of the previous p, one number per row
};

Round couple(Op& op, Instr* p, Instr* q) {
  const Ints extents = p->shape().extents();
  const int64_t rows = extents[0], k = extents[1];
  const auto all = [&](Instr* row) { return op.b.broadcast(row, extents, {0}); };
  const auto number = [&](Instr* x, int64_t i) {
    return reshape(op, ml::columns(op, x, i, i + 1), {rows});
  };
  const auto q_row = [&](int64_t i) {
    return reshape(op, op.b.slice(q, {0, i, 0}, {rows, i + 1, k}, {}), extents);
  };
  const auto mul = [&](Instr* a, Instr* b) { return op.b.binary(Opcode::multiply, a, b); };
  const auto add = [&](Instr* a, Instr* b) { return op.b.binary(Opcode::add, a, b); };
  const auto div = [&](Instr* a, Instr* b) { return op.b.binary(Opcode::divide, a, b); };
  Instr* qp = op.b.reduce(Opcode::add, mul(q, op.b.broadcast(p, {rows, k, k}, {0, 2})), {2});
  Instr* pqp = op.b.reduce(Opcode::add, mul(p, qp), {1});
  Round round;
  round.error = op.b.reduce(
      Opcode::maximum, op.b.unary(Opcode::abs, op.b.binary(Opcode::subtract, qp, all(pqp))), {1});
  for (int64_t i = 0; i < k; ++i) {
    Instr *own = number(q_row(i), i), *mine = number(qp, i);
    Instr* change = div(op.b.binary(Opcode::subtract, pqp, mine), own);
    Instr* scale = binary(op, Opcode::add, change, 1);
    Instr* gain = mul(change, add(mul(change, own), binary(op, Opcode::multiply, mine, 2)));
    pqp = div(div(add(pqp, gain), scale), scale);
    qp = div(add(qp, mul(all(change), q_row(i))), all(scale));
    Instr* is_i = compare(op, Direction::eq, iota(op, Type::s32, extents, 1), i);
    p = div(op.b.select(is_i, add(p, all(change)), p), all(scale));
  }
  round.p = p;
  return round;
}

// Iterates each row until its error is small, as libsvm does: results depend on the stopping point.
Instr* coupled(Op& op, Instr* r) {
  const Ints cube = r->shape().extents();
  const int64_t rows = cube[0], k = cube[1];
  constexpr int64_t kMostRounds = 100;
  // q[i][j] = -r[j][i] r[i][j]; q[i][i] is the sum of the squares of r[j][i].
  Instr* turned = op.b.transpose(r, {0, 2, 1});
  Instr* squares = op.b.reduce(Opcode::add, op.b.binary(Opcode::multiply, r, r), {1});
  Instr* on =
      op.b.compare(Direction::eq, iota(op, Type::s32, cube, 1), iota(op, Type::s32, cube, 2));
  Instr* q = op.b.select(on, op.b.broadcast(squares, cube, {0, 1}),
                         op.b.unary(Opcode::negate, op.b.binary(Opcode::multiply, r, turned)));
  Instr* p = op.b.full(Shape::array(Type::f32, {rows, k}), 1.0 / static_cast<double>(k));
  Instr* going = op.b.full(Shape::array(Type::pred, {rows}), 1);
  Instr* count = op.b.scalar(Type::s32, 0);
  Instr* init = op.b.tuple({count, p, going, q});
  hlo::Computation* condition = op.b.module()->add_computation("rounds_left");
  {
    hlo::Builder inner(condition);
    Instr* state = inner.parameter(0, init->shape(), "state");
    Instr* left = inner.compare(Direction::lt, inner.get_tuple_element(state, 0),
                                inner.scalar(Type::s32, static_cast<double>(kMostRounds)));
    Instr* any = inner.reduce(Opcode::or_, inner.get_tuple_element(state, 2), {0});
    condition->set_root(inner.binary(Opcode::and_, left, any));
    inner.check();
  }
  hlo::Computation* body = op.b.module()->add_computation("couple");
  {
    hlo::Builder inner(body);
    Op at(op, inner);
    Instr* state = inner.parameter(0, init->shape(), "state");
    Instr* before = inner.get_tuple_element(state, 1);
    Instr* q_inside = inner.get_tuple_element(state, 3);
    const Round round = couple(at, before, q_inside);
    Instr* goes_on =
        inner.binary(Opcode::and_, inner.get_tuple_element(state, 2),
                     compare(at, Direction::ge, round.error, 0.005 / static_cast<double>(k)));
    Instr* after = inner.select(inner.broadcast(goes_on, {rows, k}, {0}), round.p, before);
    Instr* next = binary(at, Opcode::add, inner.get_tuple_element(state, 0), 1);
    body->set_root(inner.tuple({next, after, goes_on, q_inside}));
    inner.check();
  }
  return op.b.get_tuple_element(op.b.while_loop(condition, body, init), 1);
}

// [rows, classes, classes] from p [rows, pairs]: the probability of i given that it is i or j; 0 on
// the diagonal.
Instr* pair_square(Op& op, const Machine& machine, Instr* p) {
  const int64_t k = machine.classes, rows = p->shape().dim(0);
  Literal first(Shape::array(Type::f32, {machine.pairs(), k * k})), second = first;
  int64_t pair = 0;
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = i + 1; j < k; ++j, ++pair) {
      first.set_f64(pair * k * k + i * k + j, 1);
      second.set_f64(pair * k * k + j * k + i, 1);
    }
  }
  Instr* rest = op.b.binary(Opcode::subtract, op.b.full(p->shape(), 1), p);
  Instr* flat = op.b.binary(Opcode::add, matrix_product(op, p, op.b.constant(first)),
                            matrix_product(op, rest, op.b.constant(second)));
  return reshape(op, flat, {rows, k, k});
}

// 1 / (1 + exp(a s + b)), clamped away from 0 and 1.
Instr* pair_probabilities(Op& op, Instr* scores, const std::vector<float>& a,
                          const std::vector<float>& b) {
  const Ints extents = scores->shape().extents();
  const auto row = [&](const std::vector<float>& values) {
    return broadcast_along(op, ml::constant_list(op, Type::f32, ml::doubles(values), {extents[1]}),
                           extents, 1);
  };
  Instr* x = op.b.binary(Opcode::add, op.b.binary(Opcode::multiply, scores, row(a)), row(b));
  Instr* p = op.b.unary(Opcode::logistic, op.b.unary(Opcode::negate, x));
  return binary(op, Opcode::minimum, binary(op, Opcode::maximum, p, 1e-7), 1 - 1e-7);
}

Outputs linear_svm(Op& op, const ml::Labels& labels, Instr* x, Transform transform) {
  const std::vector<float> rho = op.floats_attr("rho");
  if (rho.empty()) op.fail("rho is missing");
  Instr* scores =
      ml::times_rows(op, x, op.floats_attr("coefficients"), labels.count(), "coefficients");
  scores = binary(op, Opcode::add, scores, static_cast<double>(rho[0]));
  return {ml::labels_at(op, labels, ml::argmax(op, scores)),
          ml::transformed(op, scores, transform)};
}

Outputs svm_classifier(Op& op) {
  const Kernel kernel = kernel_attr(op);
  const Transform transform = ml::transform_attr(op);
  const ml::Labels labels = ml::labels_attr(op, "classlabels_ints", "classlabels_strings");
  Machine machine;
  machine.counts = op.ints_attr("vectors_per_class");
  machine.classes = labels.count();
  machine.coefficients = op.floats_attr("coefficients");
  const std::vector<float> a = op.floats_attr("prob_a"), b = op.floats_attr("prob_b"),
                           vectors = op.floats_attr("support_vectors"), rho = op.floats_attr("rho");
  for (int64_t count : machine.counts) {
    if (count < 0 || count > static_cast<int64_t>(vectors.size()))
      op.fail("vectors_per_class has {}", count);
    machine.starts.push_back(machine.vectors);
    machine.vectors += count;
  }
  Instr* x = ml::table_input(op, 0, Type::f32);
  if (machine.vectors == 0) return linear_svm(op, labels, x, transform);
  const auto pairs = static_cast<size_t>(machine.pairs());
  constexpr int64_t kMostClasses = 128, kMostCoupled = 16;
  if (static_cast<int64_t>(machine.counts.size()) != machine.classes || machine.classes < 2 ||
      machine.classes > kMostClasses ||
      static_cast<int64_t>(machine.coefficients.size()) !=
          (machine.classes - 1) * machine.vectors ||
      rho.size() != pairs || a.size() != b.size() || (!a.empty() && a.size() != pairs))
    op.fail(
        "{} classes (2 to {}), {} support vectors, {} coefficients, {} rho, {} prob_a, {} "
        "prob_b do not go together",
        machine.classes, kMostClasses, machine.vectors, machine.coefficients.size(), rho.size(),
        a.size(), b.size());
  if (!a.empty() && machine.classes > kMostCoupled)
    op.fail("probabilities of {} classes, at most {} are supported", machine.classes, kMostCoupled);
  Instr* values = kernel_values(op, x, vectors, machine.vectors, kernel);
  Instr* scores =
      ml::add_row(op, matrix_product(op, values, pair_weights(op, machine)), rho, "rho");
  Output label = ml::labels_at(op, labels, ml::argmax(op, votes(op, machine, scores)));
  if (!a.empty()) {
    Instr* p = coupled(op, pair_square(op, machine, pair_probabilities(op, scores, a, b)));
    return {label, ml::transformed(op, p, transform)};
  }
  if (machine.classes > 2) return {label, ml::transformed(op, scores, transform)};
  if (transform == Transform::none)
    return {label, op.b.concatenate({op.b.unary(Opcode::negate, scores), scores}, 1)};
  if (transform == Transform::logistic)
    return {label,
            op.b.concatenate({op.b.unary(Opcode::logistic, op.b.unary(Opcode::negate, scores)),
                              op.b.unary(Opcode::logistic, scores)},
                             1)};
  if (transform == Transform::probit)
    op.fail("post_transform is PROBIT, which gives one score for two classes");
  Instr* one = op.b.full(scores->shape(), 1);
  return {label, op.b.concatenate({op.b.binary(Opcode::subtract, one, scores), scores}, 1)};
}

constexpr OpEntry kOps[] = {
    {"ai.onnx.ml.SVMClassifier", 1, 1, svm_classifier},
    {"ai.onnx.ml.SVMRegressor", 1, 1, svm_regressor},
};

}  // namespace

std::span<const OpEntry> ml_vector_ops() { return kOps; }

}  // namespace heddle::import
