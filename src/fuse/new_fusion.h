// Private to fuse: a fusion under construction.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "fuse/groups.h"
#include "hlo/join.h"

namespace heddle::fuse {

struct NewFusion {
  NewFusion(hlo::Module* module, std::string_view name, hlo::Join join = hlo::Join::none)
      : computation(module->add_computation(name)), join(join) {}

  // The parameter that stands for a value around the fusion.
  Instr* parameter(Instr* value);
  // The same, but a scalar constant stands in the fusion itself.
  Instr* inside(Instr* value);
  // The value of a part inside, or what is a view or an element of one; else the parameter.
  Instr* value_of(Instr* value, const std::function<bool(const Instr*)>& is_part);
  // A fusion as a part of this one, which reads values as value_of() gives them.
  void add_part(const Instr* part, const std::function<bool(const Instr*)>& is_part);
  // The instruction in `parent`, and there one value for each output, with its name.
  std::vector<Instr*> add_to(Computation* parent, const std::string& name) const;

  Computation* computation;
  hlo::Join join;  // of the fusion
  std::vector<Instr*> operands, outputs;
  std::unordered_map<const Instr*, Instr*> values;  // inside, by those around
};

}  // namespace heddle::fuse
