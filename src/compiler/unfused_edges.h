// The edges that remain between commands of a fused module: why each was not fused, and its
// estimated cost. For explain.
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
  std::string value;               // the value between them: its name before fusion
  int64_t bytes = 0;
  std::string code, reason;
  // Writing it (unless it has other readers), reading it again, and the call.
  double ns = 0;
};

// Edges of the entry. `refusals`: those of fuse(), in its order; the last one for an edge counts.
// Further codes: `cover`, the search or the rules put the two into different kernels though they
// could share one; `no-kernel`, one of the two is not a kernel of ours.
std::vector<UnfusedEdge> unfused_edges(const hlo::Module& module,
                                       const std::vector<fuse::Refusal>& refusals,
                                       const target::Target& target);

}  // namespace heddle::compiler
