// Scatters of rows into one table, each into the result of the previous one, become one fusion; a
// constant that fills the initial table is part of it (stage/row_scatter.h). A table that may be
// overwritten and has no other reader is updated in place (hlo/in_place.h). Only for a CPU.
#include "fuse/new_fusion.h"
#include "fuse/passes.h"
#include "hlo/in_place.h"
#include "stage/row_scatter.h"

namespace heddle::fuse {

namespace {

bool is_filled(const Instr* value) {
  return value->is(Opcode::broadcast) && value->operand(0)->is(Opcode::constant) &&
         value->operand(0)->shape().is_scalar();
}

// Whether its only reader is another row scatter, which takes it as its table.
bool goes_on(const Instr* scatter) {
  if (scatter->users().size() != 1 || scatter == scatter->parent()->root()) return false;
  const Instr* next = scatter->users()[0];
  return stage::is_row_scatter(*next) && next->operand(0) == scatter &&
         next->operand(1) != scatter && next->operand(2) != scatter;
}

void form(Instr* last) {
  Computation* parent = last->parent();
  std::vector<Instr*> chain{last};
  while (stage::is_row_scatter(*chain.back()->operand(0)) && goes_on(chain.back()->operand(0)))
    chain.push_back(chain.back()->operand(0));
  NewFusion fusion(parent->module(), "loop");
  Computation* made = fusion.computation;
  Instr* table = chain.back()->operand(0);
  Instr* at = nullptr;
  if (is_filled(table)) {
    const Instr* number = table->operand(0);
    at = made->add(Opcode::broadcast, table->shape().without_layout(),
                   {made->add(Opcode::constant, number->shape(), {}, number->attrs())},
                   table->attrs());
  } else {
    at = fusion.parameter(table);
  }
  for (size_t i = chain.size(); i-- > 0;) {
    Instr* scatter = chain[i];
    at = made->add(
        Opcode::scatter, scatter->shape().without_layout(),
        {at, fusion.parameter(scatter->operand(1)), fusion.parameter(scatter->operand(2))},
        scatter->attrs(), {parent->module()->clone_computation(*scatter->called()[0])},
        scatter->name());
    at->add_nodes(scatter->nodes());
  }
  if (may_be_overwritten(table) && table->users().size() == 1) hlo::set_in_place(at);
  fusion.outputs.push_back(at);
  parent->replace_all_uses(last, fusion.add_to(parent, last->name())[0]);
}

bool fuse_in(Computation* computation) {
  bool changed = false;
  for (Instr* instr : std::vector<Instr*>(computation->instrs())) {
    const bool unread = instr->users().empty() && instr != computation->root();
    if (!stage::is_row_scatter(*instr) || goes_on(instr) || unread) continue;
    form(instr);
    changed = true;
  }
  if (changed) {
    computation->remove_dead();
    computation->sort();
  }
  return changed;
}

}  // namespace

Result<bool> fuse_scatters(hlo::Module& module, const Context& context) {
  if (context.target->kind != target::DeviceKind::cpu) return false;
  bool changed = false;
  for (const Covered& covered : covered_computations(module))
    changed |= fuse_in(covered.computation);
  return changed;
}

}  // namespace heddle::fuse
