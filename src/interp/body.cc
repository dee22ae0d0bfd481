#include "interp/body.h"

#include <algorithm>

namespace heddle::interp {
namespace {

using hlo::Computation;
using hlo::Instr;
using hlo::Opcode;

constexpr int kMaxSteps = 4096;
constexpr int kMaxInlineDepth = 32;

// Operators that return a scalar operand unchanged.
bool is_scalar_copy(Opcode opcode) {
  switch (opcode) {
    case Opcode::copy:
    case Opcode::bitcast:
    case Opcode::broadcast:
    case Opcode::reshape:
    case Opcode::transpose:
    case Opcode::reverse:
    case Opcode::opt_barrier:
      return true;
    default:
      return false;
  }
}

}  // namespace

int Body::new_slot() { return slots_++; }

std::optional<Body> Body::compile(const Computation& computation, bool widen, int64_t lanes) {
  Body body;
  body.widen_ = widen;
  body.lanes_ = lanes;
  std::vector<std::vector<Port>> arguments;
  for (const Instr* parameter : computation.parameters()) {
    if (!parameter->shape().is_scalar()) return std::nullopt;
    Type type = parameter->shape().type();
    Port port{body.new_slot(), widen ? wide_type(type) : type};
    body.inputs_.push_back(port);
    arguments.push_back({port});
  }
  if (!body.add(computation, arguments, 0, body.outputs_)) return std::nullopt;
  body.cells_.resize(static_cast<size_t>(body.slots_ * lanes));
  for (const auto& [slot, cell] : body.constants_) std::fill_n(body.at(slot), lanes, cell);
  return body;
}

std::optional<Body> Body::compile(const Instr& instr, bool widen, int64_t lanes) {
  Body body;
  body.widen_ = widen;
  body.lanes_ = lanes;
  Step step;
  if (!make_step(instr, widen, step)) return std::nullopt;
  for (const Instr* operand : instr.operands()) {
    Type type = operand->shape().type();
    body.inputs_.push_back({body.new_slot(), widen ? wide_type(type) : type});
  }
  step.a = body.inputs_[0].slot;
  if (instr.operands().size() > 1) step.b = body.inputs_[1].slot;
  if (instr.operands().size() > 2) step.c = body.inputs_[2].slot;
  step.out = body.new_slot();
  step.rounds = false;
  body.outputs_ = {{step.out, step.to}};
  body.steps_ = {step};
  body.cells_.resize(static_cast<size_t>(body.slots_ * lanes));
  return body;
}

void Body::run(int64_t n) {
  for (const Step& step : steps_) {
    Cell* out = at(step.out);
    step.run(step, n, out, at(step.a), at(step.b), at(step.c));
    if (step.rounds) round_cells(step.to, n, out);
  }
}

bool Body::add(const Computation& computation, const std::vector<std::vector<Port>>& arguments,
               int depth, std::vector<Port>& result) {
  if (depth > kMaxInlineDepth || arguments.size() != computation.parameters().size()) return false;
  Values values;
  for (size_t i = 0; i < arguments.size(); ++i) values[computation.parameters()[i]] = arguments[i];
  for (const Instr* instr : computation.instrs()) {
    if (!instr->is(Opcode::parameter) && !add_instr(*instr, values, depth)) return false;
    if (steps_.size() > kMaxSteps) return false;
  }
  result = values.at(computation.root());
  return true;
}

bool Body::add_instr(const Instr& instr, Values& values, int depth) {
  std::vector<std::vector<Port>> operands;
  for (const Instr* operand : instr.operands()) operands.push_back(values.at(operand));
  if (instr.is(Opcode::tuple)) {
    std::vector<Port>& elements = values[&instr];
    for (const auto& operand : operands) {
      if (operand.size() != 1) return false;  // a tuple in a tuple
      elements.push_back(operand[0]);
    }
    return true;
  }
  if (instr.is(Opcode::get_tuple_element)) {
    values[&instr] = {operands[0][static_cast<size_t>(instr.tuple_index())]};
    return true;
  }
  if (instr.is(Opcode::call) || instr.is(Opcode::fusion)) {
    std::vector<Port> result;
    if (!add(*instr.called()[0], operands, depth + 1, result)) return false;
    values[&instr] = std::move(result);
    return true;
  }
  if (!instr.shape().is_scalar()) return false;
  if (instr.is(Opcode::constant)) {
    Type type = instr.shape().type();
    int slot = new_slot();
    constants_.emplace_back(slot, load_cell(instr.literal(), 0));
    values[&instr] = {{slot, widen_ ? wide_type(type) : type}};
    return true;
  }
  // XLA's bitcast may change the type: then it is a bitcast-convert.
  const bool same_type =
      !instr.is(Opcode::bitcast) || instr.shape().type() == instr.operand(0)->shape().type();
  if (is_scalar_copy(instr.opcode()) && same_type) {
    if (!instr.operand(0)->shape().is_scalar()) return false;
    values[&instr] = operands[0];
    return true;
  }
  return (!same_type || hlo::has_trait(instr.opcode(), hlo::elementwise)) &&
         add_step(instr, values);
}

bool Body::add_step(const Instr& instr, Values& values) {
  Step step;
  for (size_t i = 0; i < instr.operands().size(); ++i) {
    if (!instr.operand(i)->shape().is_scalar()) return false;
    int slot = values.at(instr.operand(i))[0].slot;
    (i == 0 ? step.a : i == 1 ? step.b : step.c) = slot;
  }
  if (!make_step(instr, widen_, step)) return false;
  step.out = new_slot();
  values[&instr] = {{step.out, step.to}};
  steps_.push_back(step);
  return true;
}

}  // namespace heddle::interp
