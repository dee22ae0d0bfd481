// Private to api: what a program's commands and options say of it.
#pragma once

#include <string>

#include "api/session.h"
#include "program/program.h"

namespace heddle::api {

// "level=O2 fuse=stitch …": the value of a key; "" where it is missing.
std::string option_value(const std::string& options, const std::string& key);

// What one command computes and moves at least; loops and branches nothing, their commands do.
struct CommandWork {
  int64_t flops = 0, bytes = 0;
};
CommandWork work_of(const program::Program& program, const program::Command& command);

// Launches, kernels, operations, bytes moved at least and bytes of constants, of one run. Regions
// count once.
void count_commands(const program::Program& program, ProgramFacts& facts);

}  // namespace heddle::api
