// Control flow, calls, tuples and operators that only order or place values.
#include "interp/evaluator.h"
#include "tensor/unaligned.h"

namespace heddle::interp {

using hlo::Instr;
using hlo::Opcode;

Result<Literal> eval_while(Evaluator& e, const Instr& instr, Operands& operands) {
  Literal state = std::move(operands[0]);
  for (;;) {
    HEDDLE_ASSIGN_OR_RETURN(Literal again, e.run(*instr.called()[0], {state}));
    if (again.get_s64(0) == 0) return state;
    again = Literal();
    std::vector<Literal> arguments;
    arguments.push_back(std::move(state));
    HEDDLE_ASSIGN_OR_RETURN(state, e.run(*instr.called()[1], std::move(arguments)));
  }
}

// For a pred: true first; for a number: an out-of-range value takes the last branch.
Result<Literal> eval_conditional(Evaluator& e, const Instr& instr, Operands& operands) {
  const auto branches = static_cast<int64_t>(instr.called().size());
  int64_t branch = index_at(operands[0], 0);
  if (operands[0].type() == Type::pred) {
    branch = branch != 0 ? 0 : 1;
  } else if (branch < 0 || branch >= branches) {
    branch = branches - 1;
  }
  const auto b = static_cast<size_t>(branch);
  std::vector<Literal> arguments;
  arguments.push_back(std::move(operands[b + 1]));
  return e.run(*instr.called()[b], std::move(arguments));
}

namespace {

Literal one_or_tuple(Operands values) {
  if (values.size() == 1) return std::move(values[0]);
  return Literal::tuple(std::move(values));
}

// A start tuple: the known elements first, zeros (contexts, semaphores) for the rest.
Result<Literal> start_tuple(Evaluator& e, const Instr& instr, std::vector<Literal> known) {
  HEDDLE_ASSIGN_OR_RETURN(Shape shape, e.held(instr.shape()));
  for (size_t i = known.size(); i < shape.elements().size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(Literal rest, Literal::make(shape.elements()[i]));
    known.push_back(std::move(rest));
  }
  return Literal::tuple(std::move(known));
}

Result<Literal> element_of(const Instr& instr, Literal& tuple, size_t index) {
  if (index >= tuple.elements().size())
    return user_error("{}: no element {} in {}", describe(instr), index,
                      tensor::to_string(tuple.shape()));
  return tuple.elements()[index];
}

}  // namespace

Result<Literal> eval_structure(Evaluator& e, const Instr& instr, Operands& operands) {
  switch (instr.opcode()) {
    case Opcode::constant:
      return tensor::element_aligned(instr.literal());
    case Opcode::tuple:
      return Literal::tuple(std::move(operands));
    case Opcode::get_tuple_element:
      return element_of(instr, operands[0], static_cast<size_t>(instr.tuple_index()));
    case Opcode::call:
    case Opcode::fusion:
      return e.run(*instr.called()[0], std::move(operands));
    case Opcode::copy:
    case Opcode::domain:
    case Opcode::opt_barrier:
    case Opcode::add_dependency:
    case Opcode::async_update:
      return std::move(operands[0]);
    case Opcode::after_all:
      return Literal::make(Shape::make_token());
    case Opcode::copy_start:
      return start_tuple(e, instr, {operands[0], operands[0]});
    case Opcode::copy_done:
      return element_of(instr, operands[0], 0);
    case Opcode::async_start: {
      Literal given = Literal::tuple(operands);
      HEDDLE_ASSIGN_OR_RETURN(Literal result, e.run(*instr.called()[0], std::move(operands)));
      return start_tuple(e, instr, {std::move(given), std::move(result)});
    }
    case Opcode::async_done:
      return element_of(instr, operands[0], 1);
    default:
      return user_error("{}: this operator is not evaluated", describe(instr));
  }
}

// There is only one participant (refusal() checks that): nothing is exchanged.
Result<Literal> eval_collective(Evaluator& e, const Instr& instr, Operands& operands) {
  switch (instr.opcode()) {
    case Opcode::partition_id:
    case Opcode::replica_id:
      return e.zeros(instr.shape());
    case Opcode::all_gather_done:
    case Opcode::collective_permute_done:
      return element_of(instr, operands[0], 1);
    case Opcode::all_reduce_done:
      return std::move(operands[0]);
    case Opcode::all_gather_start: {
      Literal value = one_or_tuple(std::move(operands));
      return start_tuple(e, instr, {value, value});
    }
    case Opcode::collective_permute:
    case Opcode::collective_permute_start: {
      // Without a sender the result is zero.
      Literal source = one_or_tuple(std::move(operands));
      Literal value = source;
      if (instr.attrs_as<hlo::CollectiveAttrs>().source_target_pairs.empty()) {
        HEDDLE_ASSIGN_OR_RETURN(value, Literal::make(source.shape()));
      }
      if (instr.is(Opcode::collective_permute)) return value;
      return start_tuple(e, instr, {std::move(source), std::move(value)});
    }
    default:
      if (instr.shape().is_tuple()) return Literal::tuple(std::move(operands));
      return one_or_tuple(std::move(operands));
  }
}

}  // namespace heddle::interp
