// What the uses of an argument ask of its values.
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
  std::optional<hlo::Opcode> neutral;  // it starts a reduction by this operator
  bool nonzero = false;                // it divides integers
  bool positive = false;               // under a logarithm or a root
  bool definite = false;               // matrices are factored or solved with
  int64_t exactly = -1;                // a dimension's size
};

// By leaf of the entry's parameters, row by row: parameter 0's leaves in order, then parameter 1's.
// Uses are followed through what moves, converts or passes values on.
std::vector<Wants> wants_of_parameters(const hlo::Module& module);

}  // namespace heddle::interp
