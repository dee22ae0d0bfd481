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

  // The parameter for a value outside the fusion.
  Instr* parameter(Instr* value);
  // The same, but scalar constants are copied into the fusion.
  Instr* inside(Instr* value);
  // The inner value of a part, or of a view or an element of one; else the parameter.
  Instr* value_of(Instr* value, const std::function<bool(const Instr*)>& is_part);
  // Adds a fusion as a part of this one; its operands are as value_of() gives them.
  void add_part(const Instr* part, const std::function<bool(const Instr*)>& is_part);
  // Adds the fusion to `parent`. Returns one value there for each output, with its name.
  std::vector<Instr*> add_to(Computation* parent, const std::string& name) const;

  Computation* computation;
  hlo::Join join;  // of the fusion
  std::vector<Instr*> operands, outputs;
  std::unordered_map<const Instr*, Instr*> values;  // inner values, by outer value
};

}  // namespace heddle::fuse
