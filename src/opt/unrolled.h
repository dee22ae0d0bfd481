// Recurrences that were written out: equal steps, each of which reads what the one before it made.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"

namespace heddle::opt {

// What stands at the same place in every step.
struct StepValue {
  enum class Kind {
    same,     // one value for all steps
    piece,    // a slice of one array, a little further on in every step
    carried,  // what value `of` was in the step before; at[0] in the first
    computed  // by the same operator from `operands`
  };
  Kind kind = Kind::computed;
  std::vector<hlo::Instr*> at;  // by step
  std::vector<size_t> operands;
  size_t of = 0;
  // piece: of operand(0) of at[0], along `dim`: start, and how much later the next one starts.
  int64_t dim = 0, start = 0, stride = 0;
};

struct Unrolled {
  std::vector<StepValue> values;
  std::vector<size_t> order;  // of values, operands first; carried ones have none
  // Of what the steps compute: which value it is.
  std::unordered_map<const hlo::Instr*, size_t> computed;

  size_t steps() const { return values[0].at.size(); }
};

// The recurrence whose steps make `states`, in order; none: it is no recurrence. Steps behind the
// last state are taken in. Changes nothing.
std::optional<Unrolled> match_unrolled(const std::vector<hlo::Instr*>& states);

// Candidates for `states`: what the products with one right side read, of at least `least` steps.
std::vector<std::vector<hlo::Instr*>> find_chains(const hlo::Computation& computation,
                                                  size_t least);

}  // namespace heddle::opt
