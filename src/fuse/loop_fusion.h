// Private to fuse: a fusion of loops under construction.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "fuse/groups.h"

namespace heddle::fuse {

struct LoopFusion {
  explicit LoopFusion(hlo::Module* module) : computation(module->add_computation("loop")) {}

  // The parameter that stands for a value around the fusion.
  Instr* parameter(Instr* value);
  // The instruction in `parent`, and there one value for each output.
  std::vector<Instr*> add_to(Computation* parent, const std::string& name) const;

  Computation* computation;
  std::vector<Instr*> operands, outputs;
  std::unordered_map<const Instr*, Instr*> parameters;
};

}  // namespace heddle::fuse
