// fold_tuples: an element of a newly built tuple is the value itself; a tuple built of all the
// elements of another is that other tuple.
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

// tuple(x#0, x#1, …) of all elements of x.
Instr* whole(Instr* tuple) {
  if (tuple->operands().empty() || !tuple->operand(0)->is(Opcode::get_tuple_element))
    return nullptr;
  Instr* x = tuple->operand(0)->operand(0);
  if (x->shape().elements().size() != tuple->operands().size()) return nullptr;
  for (size_t i = 0; i < tuple->operands().size(); ++i) {
    const Instr* part = tuple->operand(i);
    if (!part->is(Opcode::get_tuple_element) || part->operand(0) != x ||
        part->tuple_index() != static_cast<int64_t>(i))
      return nullptr;
  }
  return x;
}

Rewriter::Proposal visit(Instr* instr, hlo::Builder& b) {
  if (instr->is(Opcode::tuple)) return {whole(instr), "whole"};
  if (!instr->is(Opcode::get_tuple_element)) return {};
  Instr* x = instr->operand(0);
  const auto index = static_cast<size_t>(instr->tuple_index());
  if (x->is(Opcode::tuple)) return {x->operand(index), "element"};
  if (x->is(Opcode::constant)) return {b.constant(x->literal().elements()[index]), "constant"};
  return {};
}

}  // namespace

Result<bool> fold_tuples(hlo::Module& module, const PassContext& context) {
  return rewrite_module(module, context, "fold_tuples", visit, [](const Instr* instr) {
    return instr->is(Opcode::tuple) || instr->is(Opcode::get_tuple_element);
  });
}

}  // namespace heddle::opt
