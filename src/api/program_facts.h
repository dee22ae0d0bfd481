// Private to api: facts about a program from its commands and options.
#pragma once

#include <string>

#include "api/session.h"
#include "program/program.h"

namespace heddle::api {

// "level=O2 fuse=stitch …": the value of a key; "" where it is missing.
std::string option_value(const std::string& options, const std::string& key);

// Arithmetic and least bytes moved by one command; 0 for loops and branches, whose commands count.
struct CommandWork {
  int64_t flops = 0, bytes = 0;
};
CommandWork work_of(const program::Program& program, const program::Command& command);

// Counts launches, kernels, operations, least bytes moved and bytes of constants, for one run.
// Regions count once.
void count_commands(const program::Program& program, ProgramFacts& facts);

}  // namespace heddle::api
