#include "interp/evaluator.h"

#include <algorithm>

#include "interp/disturb.h"

namespace heddle::interp {

using hlo::Computation;
using hlo::Instr;
using hlo::Opcode;

namespace {

// Depth of nested calls that fits any thread's stack. Real modules nest a few tens deep.
constexpr int kMaxDepth = 400;

// The family that evaluates the opcode; null: eval_elementwise, or none (refusal() reports it
// first).
Evaluate family_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::map:
      return eval_map;
    case Opcode::bitcast_convert:
      return eval_bitcast_convert;
    case Opcode::broadcast:
      return eval_broadcast;
    case Opcode::bitcast:
    case Opcode::reshape:
    case Opcode::dynamic_reshape:
      return eval_reshape;
    case Opcode::transpose:
      return eval_transpose;
    case Opcode::slice:
      return eval_slice;
    case Opcode::pad:
      return eval_pad;
    case Opcode::concatenate:
      return eval_concatenate;
    case Opcode::reverse:
      return eval_reverse;
    case Opcode::iota:
      return eval_iota;
    case Opcode::dynamic_slice:
      return eval_dynamic_slice;
    case Opcode::dynamic_update_slice:
      return eval_dynamic_update_slice;
    case Opcode::get_dimension_size:
    case Opcode::set_dimension_size:
      return eval_dimension_size;
    case Opcode::gather:
      return eval_gather;
    case Opcode::scatter:
      return eval_scatter;
    case Opcode::reduce:
      return eval_reduce;
    case Opcode::reduce_window:
      return eval_reduce_window;
    case Opcode::select_and_scatter:
      return eval_select_and_scatter;
    case Opcode::scan:
      return eval_scan;
    case Opcode::sort:
      return eval_sort;
    case Opcode::topk:
      return eval_topk;
    case Opcode::dot:
      return eval_dot;
    case Opcode::scaled_dot:
      return eval_scaled_dot;
    case Opcode::ragged_dot:
      return eval_ragged_dot;
    case Opcode::convolution:
      return eval_convolution;
    case Opcode::batch_norm_training:
    case Opcode::batch_norm_inference:
    case Opcode::batch_norm_grad:
      return eval_batch_norm;
    case Opcode::cholesky:
      return eval_cholesky;
    case Opcode::triangular_solve:
      return eval_triangular_solve;
    case Opcode::fft:
      return eval_fft;
    case Opcode::rng:
      return eval_rng;
    case Opcode::rng_bit_generator:
      return eval_rng_bit_generator;
    case Opcode::rng_get_and_update_state:
      return eval_rng_state;
    case Opcode::while_:
      return eval_while;
    case Opcode::conditional:
      return eval_conditional;
    case Opcode::custom_call:
      return eval_custom_call;
    default:
      if (hlo::has_trait(opcode, hlo::collective)) return eval_collective;
      return hlo::has_trait(opcode, hlo::elementwise) ? eval_elementwise : eval_structure;
  }
}

}  // namespace

Function::Function(Evaluator& evaluator, const Computation& computation)
    : evaluator_(evaluator),
      computation_(computation),
      body_(Body::compile(computation, evaluator.widen(), 1)) {
  for (const Instr* parameter : computation.parameters())
    input_types_.push_back(evaluator.held(parameter->shape().type()));
  const Shape& result = computation.root()->shape();
  if (!result.is_tuple()) output_types_.push_back(evaluator.held(result.type()));
  for (const Shape& element : result.elements())
    output_types_.push_back(evaluator.held(element.type()));
}

Status Function::call(const Cell* in, Cell* out) {
  if (!body_) return call_slowly(in, out);
  for (size_t i = 0; i < body_->inputs(); ++i) *body_->input(i) = in[i];
  body_->run(1);
  for (size_t i = 0; i < body_->outputs(); ++i) out[i] = *body_->output(i);
  return {};
}

Status Function::call_slowly(const Cell* in, Cell* out) {
  std::vector<Literal> arguments;
  for (size_t i = 0; i < input_types_.size(); ++i) {
    Literal argument(Shape::scalar(input_types_[i]));
    store_cells(argument.type(), argument.mutable_data(), 0, 1, in + i);
    arguments.push_back(std::move(argument));
  }
  HEDDLE_ASSIGN_OR_RETURN(Literal result, evaluator_.run(computation_, std::move(arguments)));
  if (!result.shape().is_tuple()) {
    out[0] = load_cell(result, 0);
    return {};
  }
  for (size_t i = 0; i < output_types_.size(); ++i) out[i] = load_cell(result.elements()[i], 0);
  return {};
}

Result<Function*> Evaluator::function(const Computation& computation, size_t inputs,
                                      size_t outputs) {
  auto wrong = [&](const Instr& instr) {
    return user_error("{}: {} is {}; wanted a computation of {} scalars that gives {}",
                      computation.name(), instr.name(), tensor::to_string(instr.shape(), false),
                      inputs, outputs);
  };
  auto& slot = functions_[&computation];
  if (slot == nullptr) {
    for (const Instr* parameter : computation.parameters()) {
      if (!parameter->shape().is_scalar()) return wrong(*parameter);
    }
    const Shape& result = computation.root()->shape();
    bool fits = result.is_scalar() || (result.is_tuple() && !result.elements().empty());
    for (const Shape& element : result.elements()) fits = fits && element.is_scalar();
    if (!fits) return wrong(*computation.root());
    slot = std::make_unique<Function>(*this, computation);
  }
  if (slot->inputs() != inputs || slot->outputs() != outputs) return wrong(*computation.root());
  return slot.get();
}

Result<Shape> Evaluator::held(const Shape& declared) const {
  HEDDLE_ASSIGN_OR_RETURN(Shape shape, static_shape(declared));
  return widen() ? wide_shape(shape) : shape;
}

Result<Literal> Evaluator::zeros(const Shape& declared) const {
  HEDDLE_ASSIGN_OR_RETURN(Shape shape, held(declared));
  return Literal::make(shape);
}

Result<Literal> Evaluator::hold(Literal value) const {
  if (!widen()) return value;
  return convert_floats(value, wide_shape(value.shape()));
}

Evaluator::Plan Evaluator::make_plan(const Computation& computation) {
  Plan plan;
  std::unordered_map<const Instr*, int> places;
  for (const Instr* instr : live_instrs(computation)) {
    places[instr] = static_cast<int>(plan.steps.size());
    Step step{.instr = instr};
    for (const Instr* operand : instr->operands()) step.operands.push_back(places.at(operand));
    plan.steps.push_back(std::move(step));
  }
  plan.root = places.at(computation.root());

  // Backwards, to find last uses. The root is read at the end. A tuple that is only read by element
  // hands each element over to its last reader, so that a loop's arrays are updated in place.
  std::vector<bool> read(plan.steps.size(), false);
  read[static_cast<size_t>(plan.root)] = true;
  std::unordered_map<int, std::vector<int64_t>> taken;  // elements of a tuple read later
  for (size_t i = plan.steps.size(); i-- > 0;) {
    Step& step = plan.steps[i];
    step.last_use.resize(step.operands.size());
    for (size_t k = 0; k < step.operands.size(); ++k) {
      auto place = static_cast<size_t>(step.operands[k]);
      bool again = std::count(step.operands.begin() + static_cast<long>(k) + 1, step.operands.end(),
                              step.operands[k]) > 0;
      step.last_use[k] = !read[place] && !again;
    }
    for (int operand : step.operands) {
      read[static_cast<size_t>(operand)] = true;
      if (!step.instr->is(Opcode::get_tuple_element)) {
        taken[operand].push_back(-1);  // as a whole
        continue;
      }
      auto& indices = taken[operand];
      int64_t index = step.instr->tuple_index();
      step.steals = operand != plan.root && std::count(indices.begin(), indices.end(), -1) == 0 &&
                    std::count(indices.begin(), indices.end(), index) == 0;
      indices.push_back(index);
    }
  }
  return plan;
}

const Evaluator::Plan& Evaluator::plan(const Computation& computation) {
  auto& slot = plans_[&computation];
  if (slot == nullptr) slot = std::make_unique<Plan>(make_plan(computation));
  return *slot;
}

Result<Literal> Evaluator::run(const Computation& computation, std::vector<Literal> arguments) {
  if (depth_ >= kMaxDepth)
    return user_error("{}: calls nest more than {} deep", computation.name(), kMaxDepth);
  if (arguments.size() != computation.parameters().size())
    return user_error("{}: {} arguments, wanted {}", computation.name(), arguments.size(),
                      computation.parameters().size());
  ++depth_;
  const Plan& plan = this->plan(computation);
  std::vector<Literal> values(plan.steps.size());
  Status status;
  for (size_t i = 0; i < plan.steps.size() && status; ++i) {
    auto value = run_step(plan.steps[i], values, arguments);
    if (value) {
      values[i] = std::move(*value);
    } else {
      status = tl::unexpected<Error>(value.error());
    }
  }
  --depth_;
  HEDDLE_RETURN_IF_ERROR(status);
  return std::move(values[static_cast<size_t>(plan.root)]);
}

Result<Literal> Evaluator::run_step(const Step& step, std::vector<Literal>& values,
                                    std::vector<Literal>& arguments) {
  const Instr& instr = *step.instr;
  if (instr.is(Opcode::parameter)) {
    return std::move(arguments[static_cast<size_t>(instr.parameter_number())]);
  }
  if (step.steals) {
    Literal& tuple = values[static_cast<size_t>(step.operands[0])];
    auto index = static_cast<size_t>(instr.tuple_index());
    if (index < tuple.elements().size()) {
      --steps_left_;
      return std::move(tuple.mutable_elements()[index]);
    }
  }
  std::vector<Literal> operands;
  operands.reserve(step.operands.size());
  for (size_t k = 0; k < step.operands.size(); ++k) {
    Literal& value = values[static_cast<size_t>(step.operands[k])];
    operands.push_back(step.last_use[k] ? std::move(value) : value);
  }
  return run_instr(instr, std::move(operands));
}

Result<Literal> Evaluator::run_instr(const Instr& instr, std::vector<Literal> operands) {
  if (--steps_left_ < 0) {
    return user_error("{}: more than {} instructions have run; an endless loop?", describe(instr),
                      options_.max_steps);
  }
  if (auto why = refusal(instr)) return user_error("{}: {}", describe(instr), *why);
  Disturbance::Amounts amounts;
  const Disturbance* disturbance = options_.disturbance;
  if (disturbance != nullptr) {
    amounts = disturbance->amounts(instr);
    for (Literal& operand : operands)
      disturb(operand, amounts.operands, disturbance->seed, disturbed_);
  }
  HEDDLE_ASSIGN_OR_RETURN(Literal value, family_of(instr.opcode())(*this, instr, operands));
  HEDDLE_ASSIGN_OR_RETURN(Literal result, hold(std::move(value)));
  if (disturbance != nullptr) disturb(result, amounts.result, disturbance->seed, disturbed_);
  HEDDLE_ASSIGN_OR_RETURN(Shape want, held(instr.shape()));
  if (!result.shape().compatible(want)) {
    return user_error("{}: its value is {}, its shape says {}", describe(instr),
                      tensor::to_string(result.shape()), tensor::to_string(want));
  }
  return result;
}

}  // namespace heddle::interp
