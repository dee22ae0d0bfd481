// LSTM, GRU and RNN: the input projection for all times is one dot; the steps run one after
// another.
#include <algorithm>

#include "import/onnx_ops.h"
#include "import/onnx_recurrent.h"

namespace heddle::import {
namespace {

struct Sizes {
  int64_t times = 0, batch = 0, input = 0, hidden = 0, directions = 1, gates = 1;
  bool batch_first = false, backward = false;
  Type type = Type::f32, compute = Type::f32;
};

// Slices [directions, ...] to one direction and drops the dimension. A known value stays known.
Instr* of_direction(Op& op, const Sizes& s, size_t input, int64_t direction, const Ints& extents) {
  Ints whole = extents;
  whole.insert(whole.begin(), s.directions);
  if (op.shape(input).extents() != whole || op.type(input) != s.type)
    op.fail("input {} is {}, wanted {}[{}]", input, to_string(op.shape(input)),
            tensor::type_name(s.type), fmt::join(whole, ","));
  const Literal* known = op.known(input);
  if (known != nullptr && s.type == s.compute) {
    const auto owner = std::make_shared<Literal>(*known);
    const int64_t bytes = product(extents) * tensor::type_bytes(s.type);
    return op.b.constant(Literal::view(Shape::array(s.type, extents),
                                       static_cast<const char*>(owner->data()) + direction * bytes,
                                       owner));
  }
  Ints starts(whole.size(), 0), limits = whole;
  starts[0] = direction;
  limits[0] = direction + 1;
  Instr* x = s.directions == 1 ? op.in(input) : op.b.slice(op.in(input), starts, limits, {});
  return op.b.convert(reshape(op, x, extents), s.compute);
}

Sizes read_sizes(Op& op, int64_t gates) {
  op.check_float(0);
  Sizes s;
  s.gates = gates;
  s.type = op.type(0);
  s.compute = compute_type(s.type);
  s.batch_first = op.int_attr("layout", 0) != 0;
  const std::string direction = op.string_attr("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    op.fail("direction is {}, wanted forward, reverse or bidirectional", quoted(direction));
  s.directions = direction == "bidirectional" ? 2 : 1;
  s.backward = direction == "reverse";
  op.ignore({"output_sequence"});
  if (op.rank(0) != 3 || op.rank(1) != 3 || op.rank(2) != 3)
    op.fail("X, W and R are {}, {} and {}; wanted rank 3", to_string(op.shape(0)),
            to_string(op.shape(1)), to_string(op.shape(2)));
  s.times = op.shape(0).dim(s.batch_first ? 1 : 0);
  s.batch = op.shape(0).dim(s.batch_first ? 0 : 1);
  s.input = op.shape(0).dim(2);
  s.hidden = op.int_attr("hidden_size", op.shape(2).dim(2));
  if (s.hidden < 1 || s.hidden != op.shape(2).dim(2) || s.times < 1)
    op.fail("hidden_size is {}, R is {}, {} times", s.hidden, to_string(op.shape(2)), s.times);
  op.check_extents({s.times, s.batch, s.gates * s.hidden});
  return s;
}

// The initial state of one direction, from [D,B,H] or, batch first, [B,D,H]; zeros if it is
// missing.
Instr* initial_state(Op& op, const Sizes& s, size_t input, int64_t direction) {
  if (!op.has(input)) return op.b.full(Shape::array(s.compute, {s.batch, s.hidden}), 0);
  if (!s.batch_first) return of_direction(op, s, input, direction, {s.batch, s.hidden});
  const Ints wanted{s.batch, s.directions, s.hidden};
  if (op.shape(input).extents() != wanted || op.type(input) != s.type)
    op.fail("input {} is {}, wanted [{}]", input, to_string(op.shape(input)),
            fmt::join(wanted, ","));
  Instr* x = op.b.slice(op.in(input), {0, direction, 0}, {s.batch, direction + 1, s.hidden}, {});
  return op.b.convert(reshape(op, x, {s.batch, s.hidden}), s.compute);
}

Instr* contract_last(Op& op, Instr* a, Instr* b) {
  hlo::DotAttrs attrs;
  attrs.lhs_contracting_dims = {a->shape().rank() - 1};
  attrs.rhs_contracting_dims = {1};
  return op.b.dot(a, b, std::move(attrs));
}

// x[..., from:to] of [B, n]
Instr* columns(Op& op, Instr* x, int64_t from, int64_t to) {
  return op.b.slice(x, {0, from}, {x->shape().dim(0), to}, {});
}

Instr* rows(Op& op, Instr* x, int64_t from, int64_t to) {
  if (const Literal* literal = constant_of(x)) {  // stays a constant
    const int64_t width = literal->shape().dim(1);
    const auto owner = std::make_shared<Literal>(*literal);
    const int64_t bytes = width * tensor::type_bytes(literal->type());
    return op.b.constant(Literal::view(Shape::array(literal->type(), {to - from, width}),
                                       static_cast<const char*>(owner->data()) + from * bytes,
                                       owner));
  }
  return op.b.slice(x, {from, 0}, {to, x->shape().dim(1)}, {});
}

struct Cell {
  Sizes sizes;
  std::vector<Activation> activations;
  double clip = 0;

  Instr* limited(Op& op, Instr* x) const {
    if (clip <= 0) return x;
    return binary(op, Opcode::minimum, binary(op, Opcode::maximum, x, -clip), clip);
  }
  Instr* gate(Op& op, Instr* x, size_t function) const {
    return activate(op, activations[function], limited(op, x));
  }
};

Cell read_cell(Op& op, const Sizes& sizes, const std::vector<std::string>& defaults,
               int64_t direction) {
  Cell cell;
  cell.sizes = sizes;
  cell.activations = read_activations(op, defaults, sizes.directions, direction);
  cell.clip = op.float_attr("clip", 0);
  if (!(cell.clip >= 0)) op.fail("clip is {}", cell.clip);
  return cell;
}

// W X + its bias for all times, [T,B,gates H]; `bias`: [gates H] or null.
Instr* project(Op& op, const Sizes& s, int64_t direction, Instr* bias) {
  Instr* x = op.b.convert(op.in(0), s.compute);
  if (s.batch_first) x = op.b.transpose(x, {1, 0, 2});
  Instr* projected =
      contract_last(op, x, of_direction(op, s, 1, direction, {s.gates * s.hidden, s.input}));
  op.check_builder();
  if (bias == nullptr) return projected;
  return op.b.binary(Opcode::add, projected,
                     broadcast_along(op, bias, projected->shape().extents(), 2));
}

struct Biases {
  Instr *input = nullptr, *recurrent = nullptr;  // [gates H]; null: none
};

Biases read_biases(Op& op, const Sizes& s, int64_t direction) {
  if (!op.has(3)) return {};
  const int64_t n = s.gates * s.hidden;
  Instr* both = of_direction(op, s, 3, direction, {2 * n});
  return {op.b.slice(both, {0}, {n}, {}), op.b.slice(both, {n}, {2 * n}, {})};
}

Instr* lengths_of(Op& op, const Sizes& s) {
  if (!op.has(4)) return nullptr;
  if (op.rank(4) != 1 || op.shape(4).dim(0) != s.batch || !tensor::is_integer(op.type(4)))
    op.fail("sequence_lens is {}, wanted s32[{}]", to_string(op.shape(4)), s.batch);
  if (const Literal* known = op.known(4)) {
    bool all = true;
    for (int64_t i = 0; i < known->elems(); ++i) all = all && known->get_s64(i) >= s.times;
    if (all) return nullptr;
  }
  return op.b.convert(op.in(4), Type::s32);
}

// Y of both directions [T,D,B,H] (batch first: [B,T,D,H]), then the last states [D,B,H] ([B,D,H]).
Outputs outputs_of(Op& op, const Sizes& s, const std::vector<Walked>& walked) {
  const auto join = [&](const std::vector<Instr*>& parts, int64_t dim) {
    return parts.size() == 1 ? parts[0] : op.b.concatenate(parts, dim);
  };
  Outputs outputs;
  std::vector<Instr*> parts;
  for (const Walked& w : walked) {
    if (w.all != nullptr) parts.push_back(reshape(op, w.all, {s.times, 1, s.batch, s.hidden}));
  }
  Instr* all = parts.empty() ? nullptr : op.b.convert(join(parts, 1), s.type);
  if (all != nullptr && s.batch_first) all = op.b.transpose(all, {2, 0, 1, 3});
  if (all == nullptr)  // the output is unused
    all = op.b.full(Shape::array(s.type, {s.times, s.directions, s.batch, s.hidden}), 0);
  outputs.emplace_back(all);
  for (size_t i = 0; i < walked[0].states.size(); ++i) {
    parts.clear();
    const Ints one = s.batch_first ? Ints{s.batch, 1, s.hidden} : Ints{1, s.batch, s.hidden};
    for (const Walked& w : walked) parts.push_back(reshape(op, w.states[i], one));
    outputs.emplace_back(op.b.convert(join(parts, s.batch_first ? 1 : 0), s.type));
  }
  return outputs;
}

Recurrence recurrence_of(Op& op, const Sizes& s, int64_t direction) {
  Recurrence r;
  r.reverse = s.backward || direction == 1;
  r.wants_all = op.wants(0);
  r.lengths = lengths_of(op, s);
  r.states = {initial_state(op, s, 5, direction)};
  r.shared = {of_direction(op, s, 2, direction, {s.gates * s.hidden, s.hidden})};
  return r;
}

Instr* add(Op& op, Instr* a, Instr* b) { return op.b.binary(Opcode::add, a, b); }
Instr* times(Op& op, Instr* a, Instr* b) { return op.b.binary(Opcode::multiply, a, b); }

Instr* sum_or_null(Op& op, const Biases& biases) {
  return biases.input == nullptr ? nullptr : add(op, biases.input, biases.recurrent);
}

Outputs rnn(Op& op) {
  const Sizes s = read_sizes(op, 1);
  std::vector<Walked> walked;
  for (int64_t d = 0; d < s.directions; ++d) {
    const Cell cell = read_cell(op, s, {"Tanh"}, d);
    Recurrence r = recurrence_of(op, s, d);
    r.projected = project(op, s, d, sum_or_null(op, read_biases(op, s, d)));
    r.step = [cell](Op& at, const Step& step) -> std::vector<Instr*> {
      return {
          cell.gate(at, add(at, step.input, contract_last(at, step.states[0], step.shared[0])), 0)};
    };
    walked.push_back(walk_time(op, r));
  }
  return outputs_of(op, s, walked);
}

// Gates in ONNX's order: update z, reset r, hidden h.
Outputs gru(Op& op) {
  const Sizes s = read_sizes(op, 3);
  const bool linear = op.int_attr("linear_before_reset", 0) != 0;
  const int64_t h = s.hidden;
  std::vector<Walked> walked;
  for (int64_t d = 0; d < s.directions; ++d) {
    const Cell cell = read_cell(op, s, {"Sigmoid", "Tanh"}, d);
    Recurrence r = recurrence_of(op, s, d);
    const Biases biases = read_biases(op, s, d);
    Instr* bias = biases.input;
    if (bias != nullptr && !linear) bias = add(op, bias, biases.recurrent);
    r.projected = project(op, s, d, bias);
    if (linear && bias != nullptr) r.shared.push_back(biases.recurrent);
    if (!linear) r.shared = {rows(op, r.shared[0], 0, 2 * h), rows(op, r.shared[0], 2 * h, 3 * h)};
    r.step = [cell, linear, h](Op& at, const Step& step) -> std::vector<Instr*> {
      Instr* before = step.states[0];
      Instr* recurrent = contract_last(at, before, step.shared[0]);
      if (linear && step.shared.size() > 1)
        recurrent = add(at, recurrent,
                        broadcast_along(at, step.shared[1], recurrent->shape().extents(), 1));
      const auto of_gate = [&](int64_t gate) {
        return add(at, columns(at, step.input, gate * h, (gate + 1) * h),
                   columns(at, recurrent, gate * h, (gate + 1) * h));
      };
      Instr* update = cell.gate(at, of_gate(0), 0);
      Instr* reset = cell.gate(at, of_gate(1), 0);
      Instr* hidden = linear ? times(at, reset, columns(at, recurrent, 2 * h, 3 * h))
                             : contract_last(at, times(at, reset, before), step.shared[1]);
      hidden = cell.gate(at, add(at, columns(at, step.input, 2 * h, 3 * h), hidden), 1);
      Instr* rest = at.b.binary(Opcode::subtract, at.b.full(update->shape(), 1), update);
      return {add(at, times(at, rest, hidden), times(at, update, before))};
    };
    walked.push_back(walk_time(op, r));
  }
  return outputs_of(op, s, walked);
}

// Gates in ONNX's order: input i, output o, forget f, cell c. Peepholes: for i, o, f.
Outputs lstm(Op& op) {
  const Sizes s = read_sizes(op, 4);
  const bool coupled = op.int_attr("input_forget", 0) != 0;
  const bool peephole = op.has(7);
  const int64_t h = s.hidden;
  std::vector<Walked> walked;
  for (int64_t d = 0; d < s.directions; ++d) {
    const Cell cell = read_cell(op, s, {"Sigmoid", "Tanh", "Tanh"}, d);
    Recurrence r = recurrence_of(op, s, d);
    r.projected = project(op, s, d, sum_or_null(op, read_biases(op, s, d)));
    r.states.push_back(initial_state(op, s, 6, d));
    if (peephole) {
      Instr* all = of_direction(op, s, 7, d, {3 * h});
      for (int64_t i = 0; i < 3; ++i)
        r.shared.push_back(op.b.slice(all, {i * h}, {(i + 1) * h}, {}));
    }
    r.step = [cell, coupled, peephole, h](Op& at, const Step& step) -> std::vector<Instr*> {
      Instr* c = step.states[1];
      Instr* gates = add(at, step.input, contract_last(at, step.states[0], step.shared[0]));
      const auto of_gate = [&](int64_t gate, Instr* seen) {
        Instr* x = columns(at, gates, gate * h, (gate + 1) * h);
        if (seen == nullptr || !peephole) return x;
        Instr* weight = step.shared[static_cast<size_t>(1 + gate)];
        return add(at, x, times(at, broadcast_along(at, weight, x->shape().extents(), 1), seen));
      };
      Instr* input = cell.gate(at, of_gate(0, c), 0);
      Instr* forget = coupled ? at.b.binary(Opcode::subtract, at.b.full(input->shape(), 1), input)
                              : cell.gate(at, of_gate(2, c), 0);
      Instr* fresh = cell.gate(at, of_gate(3, nullptr), 1);
      Instr* next = add(at, times(at, forget, c), times(at, input, fresh));
      Instr* output = cell.gate(at, of_gate(1, next), 0);
      return {times(at, output, activate(at, cell.activations[2], next)), next};
    };
    walked.push_back(walk_time(op, r));
  }
  return outputs_of(op, s, walked);
}

constexpr OpEntry kOps[] = {
    {"GRU", 3, 6, gru},
    {"LSTM", 3, 8, lstm},
    {"RNN", 3, 6, rnn},
};

}  // namespace

std::span<const OpEntry> recurrent_ops() { return kOps; }

}  // namespace heddle::import
