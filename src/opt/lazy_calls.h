// Calls that stay calls while the module is optimised and fused, so that what several calls have in
// common is worked on once ("lazy inlining"). Behind fusion they are replaced by
// copies (the pass inline_kept_calls).
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "hlo/module.h"

namespace heddle::opt {

// A computation is kept as one function where it is called at least so often and where inlining it
// at once would make so many more instructions to be worked on (about 0.1 ms each).
inline constexpr int64_t kFewestLazyCalls = 3;
inline constexpr int64_t kLeastLazyInstrs = 400;

// Of the entry's calls those that are kept. Every computation but the entry is without calls
// already. What is the same constant at every call moves into the computation; arguments that it
// does not read, and results that nobody reads, go. `notes`, where given: a line for each
// computation that is large enough, with what became of it and why.
struct KeptCalls {
  std::unordered_set<const hlo::Instr*> calls;
  bool changed = false;  // one of them, or what it calls
};
KeptCalls keep_calls(hlo::Module* module, std::vector<std::string>* notes);

}  // namespace heddle::opt
