// The members of a kernel: instructions of a computation, whether or not they are a fusion yet.
// Scalar constants that they read are members too, listed or not; other values that they read are
// inputs.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"

namespace heddle::stage {

// Points into the computation, which must outlive it and everything made from it.
class Members {
 public:
  // `instrs`: operands before readers; `inputs`: by number, possibly unread; `outputs`:
  // instructions of these two, by number.
  Members(std::string name, std::vector<const hlo::Instr*> inputs,
          std::vector<const hlo::Instr*> instrs, std::vector<const hlo::Instr*> outputs);
  // The members of a fusion: its parameters are the inputs, the leaves of its root the outputs.
  Members(const hlo::Computation& fusion);  // NOLINT: a fusion is its members

  const std::string& name() const { return name_; }
  const std::vector<const hlo::Instr*>& inputs() const { return inputs_; }
  const std::vector<const hlo::Instr*>& instrs() const { return instrs_; }
  const std::vector<const hlo::Instr*>& outputs() const { return outputs_; }

  int input_number(const hlo::Instr* instr) const;  // -1: no input
  bool is_input(const hlo::Instr* instr) const { return input_number(instr) >= 0; }
  bool is_output(const hlo::Instr* instr) const;
  // The members that read `instr`, each once, in order; being an output does not count as a read.
  const std::vector<const hlo::Instr*>& readers(const hlo::Instr* instr) const;

 private:
  std::string name_;
  std::vector<const hlo::Instr*> inputs_, instrs_, outputs_;
  std::unordered_map<const hlo::Instr*, int> numbers_;  // of inputs
  std::unordered_map<const hlo::Instr*, std::vector<const hlo::Instr*>> readers_;
};

}  // namespace heddle::stage
