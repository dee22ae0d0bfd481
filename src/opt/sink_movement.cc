// sink_movement: f(reshape x, reshape y) => reshape f(x, y), and the same for transposes, so that
// elementwise operators are next to the producers of their operands, and reshapes meet other
// reshapes, with which they merge, or a dot, which absorbs them. Movement only goes down, past one
// operator at a time, so this ends. Operands that are cheap in any shape (splats, broadcasts,
// iotas, constants) are reshaped to match.
#include <algorithm>

#include "opt/passes.h"
#include "opt/rewriter.h"
#include "opt/rules.h"

namespace heddle::opt {
namespace {

// Scalar operands that select and clamp take with arrays.
bool is_scalar_beside(const Instr* x, const Instr* operand) {
  return operand->shape().rank() == 0 && x->shape().rank() != 0;
}

Instr* compute_before(Instr* x, std::vector<Instr*> operands, const Ints& extents, Builder& b) {
  const Shape shape = Shape::array(x->shape().type(), extents);
  return b.make(x->opcode(), std::move(operands), x->attrs(), {}, &shape);
}

Instr* sink_reshape(Instr* x, Builder& b) {
  bool found = false;
  Ints extents;
  for (const Instr* operand : x->operands()) {
    if (!operand->is(Opcode::reshape) || is_scalar_beside(x, operand)) continue;
    const Ints from = operand->operand(0)->shape().extents();
    if (found && from != extents) return nullptr;
    extents = from;
    found = true;
  }
  if (!found) return nullptr;
  for (Instr* operand : x->operands())
    if (!operand->is(Opcode::reshape) && !is_scalar_beside(x, operand) &&
        !reshape_cheaply(operand, extents, b, /*build=*/false))
      return nullptr;
  std::vector<Instr*> operands;
  for (Instr* operand : x->operands()) {
    if (is_scalar_beside(x, operand)) {
      operands.push_back(operand);
    } else if (operand->is(Opcode::reshape)) {
      operands.push_back(operand->operand(0));
    } else {
      operands.push_back(reshape_cheaply(operand, extents, b, /*build=*/true));
    }
  }
  Instr* result = compute_before(x, std::move(operands), extents, b);
  return b.reshape(result, x->shape().extents());
}

// A transpose with other readers would be duplicated.
bool is_own_transpose(const Instr* operand) {
  return operand->is(Opcode::transpose) && operand->users().size() == 1;
}

Instr* sink_transpose(Instr* x, Builder& b) {
  const Ints* order = nullptr;
  for (const Instr* operand : x->operands()) {
    if (!is_own_transpose(operand)) continue;
    if (order && *order != operand->dimensions()) return nullptr;
    order = &operand->dimensions();
  }
  if (!order) return nullptr;
  const Ints forward = *order, back = inverted(forward);
  for (Instr* operand : x->operands())
    if (!is_own_transpose(operand) && !is_scalar_beside(x, operand) &&
        !transpose_cheaply(operand, back, b, /*build=*/false))
      return nullptr;
  std::vector<Instr*> operands;
  for (Instr* operand : x->operands()) {
    if (is_scalar_beside(x, operand)) {
      operands.push_back(operand);
    } else if (is_own_transpose(operand)) {
      operands.push_back(operand->operand(0));
    } else {
      operands.push_back(transpose_cheaply(operand, back, b, /*build=*/true));
    }
  }
  const Ints extents = permuted(x->shape().extents(), back);
  return b.transpose(compute_before(x, std::move(operands), extents, b), forward);
}

Rewriter::Proposal visit(Instr* x, Builder& b) {
  if (!is_elementwise(x) || !are_static_arrays(x)) return {};
  for (const Instr* operand : x->operands()) {
    const bool scalar = is_scalar_beside(x, operand);
    if (scalar ? !(x->is(Opcode::select) || x->is(Opcode::clamp))
               : operand->shape().extents() != x->shape().extents())
      return {};  // a bitcast-convert to another width
  }
  if (Instr* to = sink_reshape(x, b)) return {to, "reshape"};
  return {sink_transpose(x, b), "transpose"};
}

}  // namespace

Result<bool> sink_movement(hlo::Module& module, const PassContext& context) {
  return rewrite_module(module, context, "sink_movement", visit, [](const Instr* instr) {
    return is_elementwise(instr) && std::any_of(instr->operands().begin(), instr->operands().end(),
                                                [](const Instr* operand) {
                                                  return operand->is(Opcode::reshape) ||
                                                         operand->is(Opcode::transpose);
                                                });
  });
}

}  // namespace heddle::opt
