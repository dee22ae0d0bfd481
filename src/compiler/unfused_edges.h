// The edges that stay between commands of a fused module: why each was not fused, and what that was
// judged to cost. For explain.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fuse/refusal.h"
#include "hlo/module.h"
#include "target/target.h"

namespace heddle::compiler {

struct UnfusedEdge {
  std::string producer, consumer;  // instructions of the fused entry: the commands' names
  std::string value;               // what goes between them, by its name before fusion
  int64_t bytes = 0;
  std::string code, reason;
  // Writing it (unless somebody else reads it too), reading it again, and the call.
  double ns = 0;
};

// Of the entry. `refusals`: what fuse() said, in its order; the last word on an edge counts. Codes
// besides those: `cover`, the search or the rules put the two into different kernels though they
// might share one; `no-kernel`, one of the two is no kernel of ours.
std::vector<UnfusedEdge> unfused_edges(const hlo::Module& module,
                                       const std::vector<fuse::Refusal>& refusals,
                                       const target::Target& target);

}  // namespace heddle::compiler
