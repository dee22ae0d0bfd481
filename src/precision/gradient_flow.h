// Finds by structure where a training step computes gradients: in values that the loss does not
// need but that the kept results (outputs aliased to inputs) do.
//
// Gradients are linear in the first values of the backward pass, so all of them may carry a factor:
// it is multiplied in where the linear operators begin and divided out where they end, which is
// where the update of the weights begins.
#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "hlo/module.h"

namespace heddle::precision {

bool is_product(const hlo::Instr* x);  // a dot or a convolution

struct GradientFlow {
  // The first values of the backward pass, in the entry: they are multiplied by the factor for
  // readers that carry it. Other readers get them unscaled.
  std::vector<hlo::Instr*> starts;
  // The other values that carry the factor, in order, and the operands that it comes through: bit i
  // is operand i.
  std::vector<hlo::Instr*> carriers;
  std::unordered_map<const hlo::Instr*, uint64_t> carrying;
  // A value read by the update: from `starts` or `carriers`, or a product whose inputs cannot carry
  // the factor; and the number of the first parameter that it updates.
  struct Gradient {
    hlo::Instr* value = nullptr;
    int64_t parameter = 0;
  };
  std::vector<Gradient> gradients;

  // Values that the update computes: from gradients, and from the arrays that it keeps (moments).
  std::unordered_set<const hlo::Instr*> update;

  bool carries(const hlo::Instr* user, size_t operand) const {
    const auto found = carrying.find(user);
    return found != carrying.end() && operand < 64 && (found->second >> operand & 1) != 0;
  }
};

// Empty if the module is not a training step: it keeps nothing, none of its other results can be
// the loss, or there is no product between the two. The entry's root must be a tuple.
GradientFlow find_gradients(const hlo::Module& module);

}  // namespace heddle::precision
