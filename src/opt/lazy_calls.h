// Calls that stay calls while the module is optimised and fused, so that the shared computation is
// processed once ("lazy inlining"). After fusion they are replaced by copies (the pass
// inline_kept_calls).
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "hlo/module.h"

namespace heddle::opt {

// A computation is kept as a function if it is called at least this many times and inlining it at
// once would add at least this many instructions to process (about 0.1 ms each).
inline constexpr int64_t kFewestLazyCalls = 3;
inline constexpr int64_t kLeastLazyInstrs = 400;

// The calls of the entry that are kept. Precondition: no computation but the entry has calls. A
// constant that is the same at every call moves into the computation; unread arguments and results
// are removed. `notes`, if given: a line for each computation that is large enough, with the
// decision and its reason.
struct KeptCalls {
  std::unordered_set<const hlo::Instr*> calls;
  bool changed = false;  // a call or its callee
};
KeptCalls keep_calls(hlo::Module* module, std::vector<std::string>* notes);

}  // namespace heddle::opt
