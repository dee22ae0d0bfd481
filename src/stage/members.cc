#include "stage/members.h"

#include <algorithm>

namespace heddle::stage {

using hlo::Instr;
using hlo::Opcode;

namespace {

std::vector<const Instr*> leaves_of(const hlo::Computation& fusion) {
  const Instr* root = fusion.root();
  if (!root->is(Opcode::tuple)) return {root};
  return {root->operands().begin(), root->operands().end()};
}

std::vector<const Instr*> computed_in(const hlo::Computation& fusion) {
  std::vector<const Instr*> computed;
  for (const Instr* instr : fusion.instrs())
    if (!instr->is(Opcode::parameter) && !(instr == fusion.root() && instr->is(Opcode::tuple)))
      computed.push_back(instr);
  return computed;
}

}  // namespace

Members::Members(std::string name, std::vector<const Instr*> inputs,
                 std::vector<const Instr*> instrs, std::vector<const Instr*> outputs)
    : name_(std::move(name)),
      inputs_(std::move(inputs)),
      instrs_(std::move(instrs)),
      outputs_(std::move(outputs)) {
  for (const Instr* input : inputs_) numbers_.emplace(input, numbers_.size());
  for (const Instr* instr : instrs_)
    for (const Instr* operand : instr->operands())
      if (auto& readers = readers_[operand]; readers.empty() || readers.back() != instr)
        readers.push_back(instr);
}

Members::Members(const hlo::Computation& fusion)
    : Members(fusion.name(), {fusion.parameters().begin(), fusion.parameters().end()},
              computed_in(fusion), leaves_of(fusion)) {}

int Members::input_number(const Instr* instr) const {
  const auto found = numbers_.find(instr);
  return found == numbers_.end() ? -1 : found->second;
}

bool Members::is_output(const Instr* instr) const {
  return std::find(outputs_.begin(), outputs_.end(), instr) != outputs_.end();
}

const std::vector<const Instr*>& Members::readers(const Instr* instr) const {
  static const std::vector<const Instr*> kNone;
  const auto found = readers_.find(instr);
  return found == readers_.end() ? kNone : found->second;
}

}  // namespace heddle::stage
