// remove_identities: removes operators that return their operand on one device. Copies and barriers
// fix places or an order, which we choose ourselves; a collective with one participant exchanges
// nothing. The interpreter defines which collectives have one participant and which custom-calls
// are annotations. A custom-call that has an equivalent operator (TopK) becomes that operator.
#include "interp/custom_functions.h"
#include "interp/evaluator.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

Instr* operands_as_result(Instr* instr, hlo::Builder& b) {
  if (instr->shape().is_tuple() &&
      !(instr->operands().size() == 1 && instr->operand(0)->shape().is_tuple()))
    return b.tuple(instr->operands());
  return instr->operands().size() == 1 ? instr->operand(0) : nullptr;
}

bool one_participant(const Instr* instr) {
  return hlo::has_trait(instr->opcode(), hlo::Trait::collective) && !interp::refusal(*instr);
}

// The tuple that a start gives: operands, results, and contexts that are never read.
Instr* start_tuple(Instr* start, hlo::Builder& b) {
  Instr* operands = start->operands().size() == 1 ? start->operand(0) : b.tuple(start->operands());
  std::vector<Instr*> parts{operands, operands};
  const bool permute = start->is(Opcode::collective_permute_start);
  if (permute && start->attrs_as<hlo::CollectiveAttrs>().source_target_pairs.empty())
    return nullptr;
  for (size_t i = 2; i < start->shape().elements().size(); ++i) {
    const Shape& context = start->shape().elements()[i];
    if (!context.is_array() || !context.is_static()) return nullptr;
    parts.push_back(b.constant(Literal(context)));
  }
  return b.tuple(parts);
}

Instr* collective(Instr* instr, hlo::Builder& b) {
  switch (instr->opcode()) {
    case Opcode::partition_id:
    case Opcode::replica_id: {
      const hlo::Module& module = *b.module();
      return module.replica_count * module.num_partitions == 1 ? b.constant(Literal(instr->shape()))
                                                               : nullptr;
    }
    case Opcode::all_reduce_start:  // its value is already that of the operands
    case Opcode::all_gather:
    case Opcode::all_reduce:
    case Opcode::all_to_all:
    case Opcode::collective_broadcast:
    case Opcode::reduce_scatter:
      return operands_as_result(instr, b);
    case Opcode::all_reduce_done:
      return instr->operand(0);
    case Opcode::collective_permute:
      return instr->operands().size() == 1 &&
                     !instr->attrs_as<hlo::CollectiveAttrs>().source_target_pairs.empty()
                 ? instr->operand(0)
                 : nullptr;
    case Opcode::all_gather_start:
    case Opcode::collective_permute_start:
      return start_tuple(instr, b);
    case Opcode::all_gather_done:
    case Opcode::collective_permute_done:
      return instr->operand(0)->is(Opcode::tuple) ? instr->operand(0)->operand(1) : nullptr;
    default:
      return nullptr;
  }
}

// Whether a token orders only operations without effect: tokens all the way up.
bool is_idle_token(const Instr* token, int depth = 0) {
  if (!token->is(Opcode::after_all) || depth > 8) return false;
  for (const Instr* operand : token->operands())
    if (!is_idle_token(operand, depth + 1)) return false;
  return true;
}

bool is_top_k(const Instr* custom_call) {
  const auto& target = custom_call->attrs_as<hlo::CustomCallAttrs>().custom_call_target;
  return target == "TopK" || target == "mhlo.topk";
}

Rewriter::Proposal visit(Instr* instr, hlo::Builder& b) {
  switch (instr->opcode()) {
    case Opcode::copy:
    case Opcode::domain:
    case Opcode::opt_barrier:
      return {instr->operand(0), "copy"};
    case Opcode::copy_done:
      if (instr->operand(0)->is(Opcode::copy_start))
        return {instr->operand(0)->operand(0), "copy_done"};
      return {};
    case Opcode::add_dependency:
      if (is_idle_token(instr->operand(1))) return {instr->operand(0), "add_dependency"};
      return {};
    case Opcode::get_dimension_size: {
      const tensor::Dim& dim = instr->operand(0)->shape().dims()[static_cast<size_t>(
          instr->attrs_as<hlo::DimensionAttrs>().dimension)];
      if (dim.dynamic || dim.size < 0 || dim.size > INT32_MAX) return {};
      return {b.scalar(Type::s32, static_cast<double>(dim.size)), "get_dimension_size"};
    }
    case Opcode::custom_call:
      if (interp::refusal(*instr) || !instr->called().empty() ||
          interp::find_custom_function(*instr))
        return {};
      if (is_top_k(instr))
        return {b.make(Opcode::topk, instr->operands(),
                       hlo::TopKAttrs{instr->shape().elements()[0].dim(-1), true, false}),
                "top_k", /*drop_effect=*/true};
      return {operands_as_result(instr, b), "custom_call", /*drop_effect=*/true};
    default:
      if (!one_participant(instr)) return {};
      return {collective(instr, b), "collective", /*drop_effect=*/true};
  }
}

}  // namespace

Result<bool> remove_identities(hlo::Module& module, const PassContext& context) {
  return rewrite_module(module, context, "remove_identities", visit,
                        [](const Instr* instr) { return !is_elementwise(instr); });
}

}  // namespace heddle::opt
