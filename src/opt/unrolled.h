// Unrolled recurrences: identical steps, each of which reads values of the previous one.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"

namespace heddle::opt {

// Corresponding values of all steps.
struct StepValue {
  enum class Kind {
    same,     // one value for all steps
    piece,    // a slice of one array, at a constant distance from the previous step's
    carried,  // the previous step's value `of`; at[0] is the initial one
    computed  // by the same operator from `operands`
  };
  Kind kind = Kind::computed;
  std::vector<hlo::Instr*> at;  // by step
  std::vector<size_t> operands;
  size_t of = 0;
  // piece: of operand(0) of at[0], along `dim`: the first start, and the distance between starts.
  int64_t dim = 0, start = 0, stride = 0;
};

struct Unrolled {
  std::vector<StepValue> values;
  std::vector<size_t> order;  // of values, operands first; carried ones have none
  // For instructions that the steps compute: the number of their value.
  std::unordered_map<const hlo::Instr*, size_t> computed;

  size_t steps() const { return values[0].at.size(); }
};

// The recurrence whose steps make `states`, in order; none: not a recurrence. Includes steps after
// the last state. Changes nothing.
std::optional<Unrolled> match_unrolled(const std::vector<hlo::Instr*>& states);

// Candidates for `states`: the left operands of dots with the same right operand, at least `least`
// of them.
std::vector<std::vector<hlo::Instr*>> find_chains(const hlo::Computation& computation,
                                                  size_t least);

}  // namespace heddle::opt
