// Private to api: what a program's commands and options say of it.
#pragma once

#include <string>

#include "api/session.h"
#include "program/program.h"

namespace heddle::api {

// "level=O2 fuse=stitch …": the value of a key; "" where it is missing.
std::string option_value(const std::string& options, const std::string& key);

// Launches, kernels, operations, bytes moved at least and bytes of constants, of one run. Regions
// count once.
void count_commands(const program::Program& program, ProgramFacts& facts);

}  // namespace heddle::api
