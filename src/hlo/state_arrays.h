// State arrays: data that a program keeps from run to run. State i of n is parameter (count - n +
// i) of the entry and element (size - n + i) of its root, a tuple: a run maps the former to the
// latter. Both are hidden from the caller of the program, and share memory where the plan can
// arrange it.
//
// Module::states holds the initial values; in a module's text heddle_states={number ...; ...}.
// Thread safety: as for the module.
#pragma once

#include <vector>

#include "hlo/module.h"

namespace heddle::hlo {

std::string states_text(const std::vector<std::vector<uint64_t>>& states);  // with braces
// Error: the text is not of the form above.
Result<std::vector<std::vector<uint64_t>>> read_states(std::string_view text);

// The initial values for the first run of a loaded program, in order. None: the module has no
// states, or Module::states does not fit its entry (invariant 13).
std::vector<Literal> states_of(const Module& module);
// Replaces Module::states. `starts`: arrays without complex numbers; empty: no states.
void set_states(Module* module, const std::vector<Literal>& starts);

// Invariant 13: Module::states fits the entry, or is empty.
bool states_fit(const Module& module);

}  // namespace heddle::hlo
