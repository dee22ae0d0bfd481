// An index as a linear form: atoms (variables, and expressions that are not sums) times numbers,
// and a constant.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "kernel/kernel.h"

namespace heddle::kernel {

// The definition of a named value; an invalid id, or no function: it is treated as a variable.
using Lets = std::function<ExprId(VarId)>;  // must not add to the kernel

struct Linear {
  struct Term {
    ExprId atom;                // a variable, or an expression that is not a sum
    VarId var;                  // the atom, if it is a variable
    int64_t factor = 0;         // not 0
    std::vector<int64_t> dims;  // run-time dimensions that multiply it, too; sorted
  };
  std::vector<Term> terms;  // in the order in which they appear, no two of the same atom and dims
  int64_t constant = 0;

  // Adds factor * dims * id. Numbers wrap as the kernel's do.
  void add(const Kernel& kernel, ExprId id, int64_t factor = 1,
           const std::vector<int64_t>& dims = {}, const Lets& lets = {});

  // Whether it is variables times numbers and a constant, nothing else.
  bool is_of_variables() const;
  // The factor of the variable without dims; 0 if there is none.
  int64_t factor(VarId var) const;
};

Linear linear(const Kernel& kernel, ExprId id, const Lets& lets = {});

// The change of an index per step of a variable; nullopt if it is not constant.
std::optional<int64_t> factor_of(const Kernel& kernel, ExprId id, VarId var);

// The index without the constant of its sum, with its terms as they are written; invalid: it has no
// terms.
ExprId without_constant(Kernel* kernel, ExprId id);

}  // namespace heddle::kernel
