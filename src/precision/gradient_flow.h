// Where a step of training computes gradients, found by structure: what the loss does not need, and
// what what a step keeps (arrays that an input's memory keeps) does.
//
// Gradients are linear in what the backward pass begins with, so that all of them may carry a
// factor: it is put in where the linear operators begin, and is taken out again where they end,
// which is where the update of the weights begins.
#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "hlo/module.h"

namespace heddle::precision {

bool is_product(const hlo::Instr* x);  // a dot or a convolution

struct GradientFlow {
  // Values of the entry that are multiplied by the factor for those that carry it: the first of the
  // backward pass. Each is also read as it is.
  std::vector<hlo::Instr*> starts;
  // Those that carry it otherwise, in order, and by which operands: bit i is operand i.
  std::vector<hlo::Instr*> carriers;
  std::unordered_map<const hlo::Instr*, uint64_t> carrying;
  // Of `starts` and `carriers`, or of a product in front of which nothing can carry the factor:
  // what the update reads, and the number of the first parameter that it goes into.
  struct Gradient {
    hlo::Instr* value = nullptr;
    int64_t parameter = 0;
  };
  std::vector<Gradient> gradients;

  // What the update computes: behind the gradients, and of what it keeps for itself (moments).
  std::unordered_set<const hlo::Instr*> update;

  bool carries(const hlo::Instr* user, size_t operand) const {
    const auto found = carrying.find(user);
    return found != carrying.end() && operand < 64 && (found->second >> operand & 1) != 0;
  }
};

// Empty: the module is no step of training: nothing is kept, nothing that is not kept can be the
// loss, or no product stands between the two. The entry's root is a tuple.
GradientFlow find_gradients(const hlo::Module& module);

}  // namespace heddle::precision
