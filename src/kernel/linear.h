// An index as a sum: variables, and what is no sum itself, times numbers, and a constant.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "kernel/kernel.h"

namespace heddle::kernel {

// What a named value stands for; an invalid id, or no function: it is a variable like others.
using Lets = std::function<ExprId(VarId)>;  // which adds nothing to the kernel

struct Linear {
  struct Term {
    ExprId atom;                // a variable, or what is no sum
    VarId var;                  // the atom, where it is one
    int64_t factor = 0;         // not 0
    std::vector<int64_t> dims;  // run-time dimensions that multiply it, too; sorted
  };
  std::vector<Term> terms;  // in the order in which they appear, no two of the same atom and dims
  int64_t constant = 0;

  // The sum of what is there and factor * dims * id. Numbers wrap as the kernel's do.
  void add(const Kernel& kernel, ExprId id, int64_t factor = 1,
           const std::vector<int64_t>& dims = {}, const Lets& lets = {});

  // Whether it is variables times numbers and a constant, nothing else.
  bool is_of_variables() const;
  // Of the variable by itself; 0 where it is not there.
  int64_t factor(VarId var) const;
};

Linear linear(const Kernel& kernel, ExprId id, const Lets& lets = {});

// How far an index moves with a variable; nothing where that is not the same everywhere.
std::optional<int64_t> factor_of(const Kernel& kernel, ExprId id, VarId var);

// The index without the constant of its sum, its terms as they are written; invalid: there are
// none.
ExprId without_constant(Kernel* kernel, ExprId id);

}  // namespace heddle::kernel
