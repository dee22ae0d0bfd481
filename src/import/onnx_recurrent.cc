#include "import/onnx_recurrent.h"

#include <algorithm>
#include <map>

namespace heddle::import {
namespace {

constexpr int64_t kShortSequence = 4;

struct Known {
  double alpha, beta;
};

// The functions named by ONNX, with their default parameters.
const std::map<std::string, Known>& known_activations() {
  static const auto* const table =
      new std::map<std::string, Known>{{"relu", {0, 0}},         {"tanh", {0, 0}},
                                       {"sigmoid", {0, 0}},      {"affine", {1, 0}},
                                       {"leakyrelu", {0.01, 0}}, {"thresholdedrelu", {1, 0}},
                                       {"scaledtanh", {1, 1}},   {"hardsigmoid", {0.2, 0.5}},
                                       {"elu", {1, 0}},          {"softsign", {0, 0}},
                                       {"softplus", {0, 0}}};
  return *table;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return c < 0x80 ? static_cast<char>(std::tolower(c)) : '?';
  });
  return text;
}

Instr* softplus(Op& op, Instr* x) {
  Instr* small =
      op.b.unary(Opcode::exponential, op.b.unary(Opcode::negate, op.b.unary(Opcode::abs, x)));
  return op.b.binary(Opcode::add, binary(op, Opcode::maximum, x, 0),
                     op.b.unary(Opcode::log_plus_one, small));
}

// x where x >= 0, else `negative`.
Instr* positive_or(Op& op, Instr* x, Instr* negative) {
  return op.b.select(compare(op, Direction::lt, x, 0), negative, x);
}

}  // namespace

std::vector<Activation> read_activations(Op& op, const std::vector<std::string>& defaults,
                                         int64_t directions, int64_t direction) {
  std::vector<std::string> names = op.strings_attr("activations");
  const std::vector<float> alphas = op.floats_attr("activation_alpha");
  const std::vector<float> betas = op.floats_attr("activation_beta");
  const size_t each = defaults.size();
  if (names.empty()) {
    for (int64_t d = 0; d < directions; ++d)
      names.insert(names.end(), defaults.begin(), defaults.end());
  }
  if (names.size() != each * static_cast<size_t>(directions))
    op.fail("{} activations for {} directions, wanted {} each", names.size(), directions, each);
  // Parameters are listed in order, only for the functions that have one.
  size_t next_alpha = 0, next_beta = 0;
  std::vector<Activation> result;
  for (size_t i = 0; i < names.size(); ++i) {
    Activation activation;
    activation.name = lower(names[i]);
    const auto known = known_activations().find(activation.name);
    if (known == known_activations().end()) op.fail("activation {} is not known", quoted(names[i]));
    activation.alpha = known->second.alpha;
    activation.beta = known->second.beta;
    const bool has_beta = activation.name == "affine" || activation.name == "scaledtanh" ||
                          activation.name == "hardsigmoid";
    const bool has_alpha = has_beta || activation.name == "leakyrelu" ||
                           activation.name == "thresholdedrelu" || activation.name == "elu";
    if (has_alpha && next_alpha < alphas.size()) activation.alpha = alphas[next_alpha++];
    if (has_beta && next_beta < betas.size()) activation.beta = betas[next_beta++];
    result.push_back(activation);
  }
  const auto begin = result.begin() + static_cast<std::ptrdiff_t>(each) * direction;
  return {begin, begin + static_cast<std::ptrdiff_t>(each)};
}

Instr* activate(Op& op, const Activation& a, Instr* x) {
  const auto times = [&](Instr* value, double by) {
    return binary(op, Opcode::multiply, value, by);
  };
  if (a.name == "tanh") return op.b.unary(Opcode::tanh, x);
  if (a.name == "sigmoid") return op.b.unary(Opcode::logistic, x);
  if (a.name == "relu") return binary(op, Opcode::maximum, x, 0);
  if (a.name == "affine") return binary(op, Opcode::add, times(x, a.alpha), a.beta);
  if (a.name == "leakyrelu") return positive_or(op, x, times(x, a.alpha));
  if (a.name == "scaledtanh") return times(op.b.unary(Opcode::tanh, times(x, a.beta)), a.alpha);
  if (a.name == "softplus") return softplus(op, x);
  if (a.name == "elu")
    return positive_or(op, x, times(op.b.unary(Opcode::exponential_minus_one, x), a.alpha));
  if (a.name == "thresholdedrelu")
    return select(op, compare(op, Direction::gt, x, a.alpha), x, op.b.scalar(x->shape().type(), 0));
  if (a.name == "softsign")
    return op.b.binary(Opcode::divide, x, binary(op, Opcode::add, op.b.unary(Opcode::abs, x), 1));
  Instr* line = binary(op, Opcode::add, times(x, a.alpha), a.beta);  // hardsigmoid
  return binary(op, Opcode::minimum, binary(op, Opcode::maximum, line, 0), 1);
}

namespace {

// After a sequence has ended its states stay and its output is zero.
struct Kept {
  std::vector<Instr*> states;
  Instr* output;
};

Kept keep_ended(Op& op, std::vector<Instr*> next, const std::vector<Instr*>& before, Instr* time,
                Instr* lengths) {
  if (lengths == nullptr) return {next, next[0]};
  const Ints extents = next[0]->shape().extents();
  Instr* runs = compare(op, Direction::lt, time, lengths);  // [B]
  runs = op.b.broadcast(runs, extents, {0});
  Kept kept;
  for (size_t i = 0; i < next.size(); ++i)
    kept.states.push_back(op.b.select(runs, next[i], before[i]));
  kept.output = select(op, runs, next[0], op.b.scalar(next[0]->shape().type(), 0));
  return kept;
}

Instr* number_s32(Op& op, int64_t value) {
  return op.b.scalar(Type::s32, static_cast<double>(value));
}

Walked write_out(Op& op, const Recurrence& r, int64_t times) {
  std::vector<Instr*> states = r.states, outputs(static_cast<size_t>(times));
  const Ints extents = r.projected->shape().extents();
  for (int64_t i = 0; i < times; ++i) {
    const int64_t t = r.reverse ? times - 1 - i : i;
    Instr* input = op.b.slice(r.projected, {t, 0, 0}, {t + 1, extents[1], extents[2]}, {});
    const Step step{reshape(op, input, {extents[1], extents[2]}), states, r.shared};
    Kept kept = keep_ended(op, r.step(op, step), states, number_s32(op, t), r.lengths);
    states = std::move(kept.states);
    Ints one = kept.output->shape().extents();
    one.insert(one.begin(), 1);
    if (r.wants_all) outputs[static_cast<size_t>(t)] = reshape(op, kept.output, one);
  }
  Walked walked;
  walked.states = states;
  if (r.wants_all) walked.all = outputs.size() == 1 ? outputs[0] : op.b.concatenate(outputs, 0);
  return walked;
}

// The state: trip number, states, then loop-invariant values: projection, shared values, lengths;
// then the outputs of all times.
Walked as_while(Op& op, const Recurrence& r, int64_t times) {
  std::vector<Instr*> init{number_s32(op, 0)};
  init.insert(init.end(), r.states.begin(), r.states.end());
  const size_t fixed = init.size();
  init.push_back(r.projected);
  // Constants are copied into the body: they are then not part of the state.
  for (Instr* shared : r.shared) {
    if (!shared->is(Opcode::constant)) init.push_back(shared);
  }
  if (r.lengths != nullptr) init.push_back(r.lengths);
  const size_t all = init.size();
  const Ints extents = r.projected->shape().extents();
  Ints everything = r.states[0]->shape().extents();
  everything.insert(everything.begin(), times);
  if (r.wants_all)
    init.push_back(op.b.full(Shape::array(r.states[0]->shape().type(), everything), 0));
  op.check_builder();
  std::vector<Shape> shapes;
  for (const Instr* value : init) shapes.push_back(value->shape());

  hlo::Builder body(op.b.module()->add_computation("step"));
  Op inner(op, body);
  Instr* state = body.parameter(0, Shape::make_tuple(shapes), "state");
  const auto element = [&](size_t i) {
    return body.get_tuple_element(state, static_cast<int64_t>(i));
  };
  Instr* trip = element(0);
  Instr* time = trip;
  if (r.reverse) time = body.binary(Opcode::subtract, number_s32(inner, times - 1), trip);
  Instr* zero = number_s32(inner, 0);
  Step step;
  for (size_t i = 1; i < fixed; ++i) step.states.push_back(element(i));
  Instr* input =
      body.dynamic_slice(element(fixed), {time, zero, zero}, {1, extents[1], extents[2]});
  step.input = body.reshape(input, {extents[1], extents[2]});
  size_t at = fixed + 1;
  for (Instr* shared : r.shared)
    step.shared.push_back(shared->is(Opcode::constant) ? body.constant(shared->literal())
                                                       : element(at++));
  Instr* lengths = r.lengths != nullptr ? element(at) : nullptr;
  const Kept kept = keep_ended(inner, r.step(inner, step), step.states, time, lengths);
  std::vector<Instr*> next{body.binary(Opcode::add, trip, number_s32(inner, 1))};
  next.insert(next.end(), kept.states.begin(), kept.states.end());
  for (size_t i = fixed; i < all; ++i) next.push_back(element(i));
  if (r.wants_all) {
    Ints one = kept.output->shape().extents();
    one.insert(one.begin(), 1);
    next.push_back(body.dynamic_update_slice(element(all), body.reshape(kept.output, one),
                                             {time, zero, zero}));
  }
  body.computation()->set_root(body.tuple(next));
  inner.check_builder();

  hlo::Builder condition(op.b.module()->add_computation("more"));
  Instr* tested = condition.parameter(0, Shape::make_tuple(shapes), "state");
  condition.computation()->set_root(
      condition.compare(Direction::lt, condition.get_tuple_element(tested, 0),
                        condition.scalar(Type::s32, static_cast<double>(times))));
  Instr* loop = op.b.while_loop(condition.computation(), body.computation(), op.b.tuple(init));
  Walked walked;
  for (size_t i = 1; i < fixed; ++i)
    walked.states.push_back(op.b.get_tuple_element(loop, static_cast<int64_t>(i)));
  if (r.wants_all) walked.all = op.b.get_tuple_element(loop, static_cast<int64_t>(all));
  return walked;
}

}  // namespace

Walked walk_time(Op& op, const Recurrence& recurrence) {
  const int64_t times = recurrence.projected->shape().dim(0);
  if (times > kShortSequence) return as_while(op, recurrence, times);
  return write_out(op, recurrence, times);
}

}  // namespace heddle::import
