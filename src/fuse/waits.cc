#include "fuse/waits.h"

#include <algorithm>

namespace heddle::fuse {

namespace {

constexpr int64_t kKeptBytes = 1 << 20, kShrinks = 16;

}  // namespace

Waits::Waits(const hlo::Computation& computation) {
  for (const Instr* instr : computation.instrs()) {
    int most = 0;
    for (const Instr* operand : instr->operands()) most = std::max(most, before_[operand]);
    before_[instr] = most + (is_product(instr) || instr->is(Opcode::while_));
  }
}

Decision Waits::may_join(const Instr* instr, const Group& group) const {
  if (!instr->is(Opcode::reduce) || !instr->shape().is_array()) return Decision::yes();
  const int64_t bytes = instr->operand(0)->shape().bytes();
  if (bytes < kKeptBytes || bytes < kShrinks * instr->shape().bytes()) return Decision::yes();
  auto known =
      [&](const Instr* value) {  // instructions that the cover added are nothing to wait for
        const auto found = before_.find(value);
        return found == before_.end() ? 0 : found->second;
      };
  const int alone = known(instr);
  for (const Instr* member : group.members)
    for (const Instr* operand : member->operands())
      if (known(operand) > alone && !has(group, operand))
        return Decision::no("waits", "{} bytes would be kept until {} is computed", bytes,
                            operand->name());
  return Decision::yes();
}

}  // namespace heddle::fuse
