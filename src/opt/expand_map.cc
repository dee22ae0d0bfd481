// expand_map: map applies a computation of scalars to every element. If that computation has
// elementwise operators only, they are applied to the arrays directly.
#include <algorithm>
#include <unordered_map>

#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

bool is_liftable(const Instr* instr) {
  if (!instr->shape().is_scalar()) return false;
  switch (instr->opcode()) {
    case Opcode::parameter:
    case Opcode::constant:
    case Opcode::copy:
      return true;
    case Opcode::map:
      return false;  // not expanded itself
    case Opcode::broadcast:
    case Opcode::reshape:
      return instr->operand(0)->shape().is_scalar();
    default:
      return is_elementwise(instr);
  }
}

// Rebuilds operators of scalars as operators on arrays of the map's dimensions.
Instr* lift(Instr* map, hlo::Builder& b) {
  std::unordered_map<const Instr*, Instr*> arrays;
  for (const Instr* instr : map->called()[0]->instrs()) {
    const Shape shape(instr->shape().type(), map->shape().dims());
    Instr* array = nullptr;
    if (instr->is(Opcode::parameter)) {
      array = map->operand(static_cast<size_t>(instr->parameter_number()));
    } else if (instr->is(Opcode::constant)) {
      array = b.constant(instr->literal());
      if (shape.rank() > 0) array = b.make(Opcode::broadcast, {array}, {}, {}, &shape);
    } else if (!is_elementwise(instr)) {
      array = arrays.at(instr->operand(0));
    } else {
      std::vector<Instr*> operands;
      for (const Instr* operand : instr->operands()) operands.push_back(arrays.at(operand));
      array = b.make(instr->opcode(), std::move(operands), instr->attrs(), {}, &shape);
    }
    arrays.emplace(instr, array);
  }
  return arrays.at(map->called()[0]->root());
}

}  // namespace

Result<bool> expand_map(hlo::Module& module, const PassContext& context) {
  return rewrite_module(
      module, context, "expand_map",
      [](Instr* instr, hlo::Builder& b) -> Rewriter::Proposal {
        const auto& body = instr->called()[0]->instrs();
        if (!std::all_of(body.begin(), body.end(), is_liftable)) return {};
        return {lift(instr, b), "map"};
      },
      [](const Instr* instr) { return instr->is(Opcode::map); });
}

}  // namespace heddle::opt
