// The interpreter's matrix instructions, and moves of their fragments.
#include "kernel/interp_exec.h"

namespace heddle::kernel {

int64_t InterpExec::first_register(const AccessPlan& plan) const {
  const InterpMemory::View& view = memory_.view(plan.buffer);
  int64_t first = 0;
  for (size_t axis = 0; axis < plan.indices.size(); ++axis)
    first += static_cast<int64_t>(cells_[plan.indices[axis].at]) * view.strides[axis];
  return first;
}

void InterpExec::run_mma(const Node& node) {
  const MmaPlan& plan = program_.mmas[node.mma];
  const MmaDescriptor& mma = *plan.mma;
  const int registers[] = {mma.map_d.registers(), mma.map_a.registers(), mma.map_b.registers(),
                           mma.map_d.registers()};
  std::vector<uint64_t> values[4];
  int64_t first[4];
  for (int i = 0; i < 4; ++i) {
    const AccessPlan& access = program_.accesses[plan.access[i]];
    const InterpMemory::View& view = memory_.view(access.buffer);
    first[i] = first_register(access);
    values[i].resize(static_cast<size_t>(mma.lanes * registers[i]));
    if (i == 0) continue;
    for (int l = 0; l < mma.lanes; ++l) {
      for (int r = 0; r < registers[i]; ++r) {
        Hazard found = memory_.load(view, access.buffer, first[i] + r, l,
                                    values[i][static_cast<size_t>(l * registers[i] + r)]);
        if (found != Hazard::none) hazard(access, found, first[i] + r, l, false);
      }
    }
  }
  execute_mma(mma, values[0].data(), values[1].data(), values[2].data(), values[3].data());
  const AccessPlan& out = program_.accesses[plan.access[0]];
  for (int l = 0; l < mma.lanes; ++l) {
    for (int r = 0; r < registers[0]; ++r) {
      memory_.store(memory_.view(out.buffer), out.buffer, first[0] + r, l,
                    values[0][static_cast<size_t>(l * registers[0] + r)]);
    }
  }
}

// One element of memory holds `parts` registers, the first in its lowest bits.
void InterpExec::move_fragment(const Node& node) {
  const AccessPlan& fragment = program_.accesses[node.source];
  const InterpMemory::View& registers = memory_.view(fragment.buffer);
  const int64_t first = first_register(fragment), all = registers.extents.back();
  if (node.stmt->kind == StmtKind::fragment_clear) {
    for (int64_t r = 0; r < all; ++r) memory_.store(registers, fragment.buffer, first + r, 0, 0);
    return;
  }
  const AccessPlan& plan = program_.accesses[node.access];
  const InterpMemory::View& view = memory_.view(plan.buffer);
  const bool storing = node.stmt->kind == StmtKind::fragment_store;
  const int bits = tensor::type_bits(registers.type);
  const int64_t parts = std::max(1, tensor::type_bits(view.type) / bits);
  const int64_t rows = node.stmt->count, a_row = all / rows / parts;
  const int64_t start =
      locate(plan, 0, storing ? "store" : "read", (rows - 1) * node.stmt->stride + a_row);
  if (start < 0) return;
  for (int64_t i = 0; i < rows * a_row; ++i) {
    const int64_t at = start + i / a_row * node.stmt->stride + i % a_row;
    uint64_t value = 0;
    if (storing) memory_.load(registers, fragment.buffer, first + i, 0, value);
    const Hazard found = storing ? memory_.store(view, plan.buffer, at, 0, value)
                                 : memory_.load(view, plan.buffer, at, 0, value);
    if (found != Hazard::none) hazard(plan, found, at, 0, storing);
    for (int64_t part = 0; part < parts && !storing; ++part)
      memory_.store(registers, fragment.buffer, first + i * parts + part, 0,
                    parts == 1 ? value : canonical_bits(registers.type, value >> (part * bits)));
  }
}

}  // namespace heddle::kernel
