// Each element of a top-k that is read becomes a separate array (hlo/top_k_part.h). If both are
// read and end up in one kernel, they become one stage again.
#include "fuse/groups.h"
#include "fuse/passes.h"
#include "hlo/builder.h"
#include "hlo/top_k_part.h"
#include "stage/top_k.h"

namespace heddle::fuse {

namespace {

bool split_in(Computation* computation, const target::Target& target) {
  bool changed = false;
  auto part_of = [&](Instr* both, bool places) {
    const auto& attrs = both->attrs_as<hlo::TopKAttrs>();
    hlo::CustomCallAttrs call;
    call.custom_call_target = hlo::top_k_target({attrs.k, attrs.largest, places});
    const tensor::Shape shape = both->shape().elements()[places ? 1 : 0].without_layout();
    hlo::Builder b(computation);
    Instr* part = b.make(Opcode::custom_call, {both->operand(0)}, call, {}, &shape);
    b.check();
    return part;
  };
  // Threads of a GPU do not share a list: each has the lists of its rows.
  const bool gpu = target.kind == target::DeviceKind::gpu;
  auto has_parts = [&](const Instr* both) {
    if (!both->is(Opcode::topk)) return false;
    const tensor::Shape& shape = both->operand(0)->shape();
    const int64_t k = both->attrs_as<hlo::TopKAttrs>().k;
    return gpu ? stage::has_top_k_in_lanes(shape, k) : stage::has_top_k(shape, k);
  };
  if (Instr* root = computation->root(); has_parts(root)) {
    Instr* values = part_of(root, false);
    hlo::Builder b(computation);
    computation->set_root(b.tuple({values, part_of(root, true)}));
    b.check();
    changed = true;
  }
  const std::vector<Instr*> order = computation->instrs();
  for (Instr* instr : order) {
    if (!instr->is(Opcode::get_tuple_element) || !has_parts(instr->operand(0))) continue;
    computation->replace_all_uses(instr, part_of(instr->operand(0), instr->tuple_index() == 1));
    changed = true;
  }
  if (!changed) return false;
  computation->remove_dead();
  computation->sort();
  return true;
}

}  // namespace

Result<bool> split_top_k(hlo::Module& module, const Context& context) {
  bool changed = false;
  for (const Covered& covered : covered_computations(module))
    changed |= split_in(covered.computation, *context.target);
  return changed;
}

}  // namespace heddle::fuse
