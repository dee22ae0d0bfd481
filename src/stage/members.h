// What a kernel computes: instructions of a computation, whether they are a fusion yet or not. A
// scalar constant that they read is theirs, listed or not; all else that they read is an input.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"

namespace heddle::stage {

// Points into the computation, which outlives it and what is made of it.
class Members {
 public:
  // `instrs`: operands before readers; `inputs`: by number, some of them unread perhaps; `outputs`:
  // of these two, by number.
  Members(std::string name, std::vector<const hlo::Instr*> inputs,
          std::vector<const hlo::Instr*> instrs, std::vector<const hlo::Instr*> outputs);
  // Those of a fusion: its parameters are the inputs, the leaves of its root the outputs.
  Members(const hlo::Computation& fusion);  // NOLINT: a fusion is its members

  const std::string& name() const { return name_; }
  const std::vector<const hlo::Instr*>& inputs() const { return inputs_; }
  const std::vector<const hlo::Instr*>& instrs() const { return instrs_; }
  const std::vector<const hlo::Instr*>& outputs() const { return outputs_; }

  int input_number(const hlo::Instr* instr) const;  // -1: no input
  bool is_input(const hlo::Instr* instr) const { return input_number(instr) >= 0; }
  bool is_output(const hlo::Instr* instr) const;
  // Each member that reads it, once, in order; being an output is no reader.
  const std::vector<const hlo::Instr*>& readers(const hlo::Instr* instr) const;

 private:
  std::string name_;
  std::vector<const hlo::Instr*> inputs_, instrs_, outputs_;
  std::unordered_map<const hlo::Instr*, int> numbers_;  // of inputs
  std::unordered_map<const hlo::Instr*, std::vector<const hlo::Instr*>> readers_;
};

}  // namespace heddle::stage
