// Requirements of an argument's uses on its values.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"

namespace heddle::interp {

struct Wants {
  // Indices: the largest value of each component of an index vector, in turn along the elements.
  std::vector<int64_t> limits;
  bool is_sorted = false, is_unique = false;
  std::optional<hlo::Opcode> neutral;  // start of a reduction by this operator
  bool nonzero = false;                // a divisor of integers
  bool positive = false;               // an operand of a logarithm or a root
  bool definite = false;               // matrices that are factored or solved with
  int64_t exactly = -1;                // the size of a dimension
};

// By leaf of the entry's parameters: parameter 0's leaves in order, then parameter 1's. Uses are
// followed through operators that move, convert or pass values on.
std::vector<Wants> wants_of_parameters(const hlo::Module& module);

}  // namespace heddle::interp
