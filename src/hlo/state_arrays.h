// State arrays: what a program keeps from run to run. State i of n is parameter (count - n + i) of
// the entry and element (size - n + i) of its root, a tuple: the run goes from the one to the
// other. Both are hidden from who runs the program, and share memory where the plan can.
//
// Module::states holds them; in a module's text heddle_states={number ...; ...}.
// Thread safety: that of the module.
#pragma once

#include <vector>

#include "hlo/module.h"

namespace heddle::hlo {

std::string states_text(const std::vector<std::vector<uint64_t>>& states);  // with braces
// Error: the text is not of the form above.
Result<std::vector<std::vector<uint64_t>>> read_states(std::string_view text);

// The values that the first run of a loaded program begins with, in order. None: the module has no
// states, or what it says of them does not fit its entry (invariant 13).
std::vector<Literal> states_of(const Module& module);
// In place of what the module says. `starts`: arrays without complex numbers; none: no states.
void set_states(Module* module, const std::vector<Literal>& starts);

// Invariant 13: what the module says of states fits the entry, or it says nothing.
bool states_fit(const Module& module);

}  // namespace heddle::hlo
