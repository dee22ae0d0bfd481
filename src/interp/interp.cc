#include "interp/interp.h"

#include <new>
#include <unordered_set>

#include "interp/evaluator.h"
#include "tensor/unaligned.h"

namespace heddle::interp {

using hlo::Computation;
using hlo::Instr;
using hlo::Opcode;

std::vector<const Instr*> live_instrs(const Computation& computation) {
  const auto& order = computation.instrs();
  std::unordered_set<const Instr*> live;
  std::vector<const Instr*> result;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const Instr* instr = *it;
    if (instr == computation.root() || hlo::has_effect(*instr)) live.insert(instr);
    if (!live.contains(instr)) continue;
    live.insert(instr->operands().begin(), instr->operands().end());
    result.push_back(instr);
  }
  return {result.rbegin(), result.rend()};
}

namespace {

Result<Literal> hold_one(Evaluator& e, const std::string& where, size_t i, const Literal& value,
                         const Shape& declared) {
  HEDDLE_ASSIGN_OR_RETURN(Shape want, static_shape(declared));
  const Shape& got = value.shape();
  if (!got.compatible(want) && !(e.widen() && got.compatible(wide_shape(want)))) {
    return user_error("{}: argument {} is {}, wanted {}", where, i, tensor::to_string(got),
                      tensor::to_string(want));
  }
  return e.hold(tensor::element_aligned(value));
}

Result<std::vector<Literal>> hold_arguments(Evaluator& e, const Computation& computation,
                                            std::span<const Literal> arguments) {
  const auto& parameters = computation.parameters();
  if (arguments.size() != parameters.size()) {
    return user_error("{}: {} arguments, wanted {}", computation.name(), arguments.size(),
                      parameters.size());
  }
  std::vector<Literal> result;
  for (size_t i = 0; i < arguments.size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(
        Literal held, hold_one(e, computation.name(), i, arguments[i], parameters[i]->shape()));
    result.push_back(std::move(held));
  }
  return result;
}

// Temporaries are a few times as large as the values; they may not fit in memory even if the values
// do.
template <typename Fn>
Result<Literal> within_memory(const std::string& name, Fn fn) {
  try {
    return fn();
  } catch (const std::bad_alloc&) {
    return machine_error("{}: no memory to evaluate it; use smaller shapes", name);
  }
}

Result<Literal> finish(const Options& options, Result<Literal> result, const Shape& declared) {
  if (!result || !options.widen || options.keep_wide) return result;
  HEDDLE_ASSIGN_OR_RETURN(Shape shape, static_shape(declared));
  return convert_floats(*result, shape);
}

}  // namespace

Result<Literal> evaluate(const Computation& computation, std::span<const Literal> arguments,
                         const Options& options) {
  return within_memory(computation.name(), [&]() -> Result<Literal> {
    Evaluator e(options);
    HEDDLE_ASSIGN_OR_RETURN(auto held, hold_arguments(e, computation, arguments));
    return finish(options, e.run(computation, std::move(held)), computation.root()->shape());
  });
}

Result<Literal> evaluate(const hlo::Module& module, std::span<const Literal> arguments,
                         const Options& options) {
  if (module.entry() == nullptr)
    return user_error("{}: the module has no entry computation", module.name());
  return evaluate(*module.entry(), arguments, options);
}

Result<Literal> evaluate_instr(const Instr& instr, std::span<const Literal> operands,
                               const Options& options) {
  HEDDLE_CHECK(!instr.is(Opcode::parameter), "a parameter has no value of its own");
  if (operands.size() != instr.operands().size()) {
    return user_error("{}: {} operands, wanted {}", describe(instr), operands.size(),
                      instr.operands().size());
  }
  return within_memory(instr.name(), [&]() -> Result<Literal> {
    Evaluator e(options);
    std::vector<Literal> held;
    for (size_t i = 0; i < operands.size(); ++i) {
      HEDDLE_ASSIGN_OR_RETURN(
          Literal value, hold_one(e, describe(instr), i, operands[i], instr.operand(i)->shape()));
      held.push_back(std::move(value));
    }
    return finish(options, e.run_instr(instr, std::move(held)), instr.shape());
  });
}

std::vector<std::string> unsupported(const hlo::Module& module) {
  std::vector<std::string> result;
  if (module.entry() == nullptr) return result;
  std::unordered_set<const Computation*> seen = {module.entry()};
  std::vector<const Computation*> pending = {module.entry()};
  while (!pending.empty()) {
    const Computation* computation = pending.back();
    pending.pop_back();
    for (const Instr* instr : live_instrs(*computation)) {
      if (refusal(*instr)) {
        result.push_back(describe(*instr));
        continue;  // callees of a refused instruction do not matter
      }
      for (const Computation* called : instr->called()) {
        if (seen.insert(called).second) pending.push_back(called);
      }
    }
  }
  return result;
}

}  // namespace heddle::interp
