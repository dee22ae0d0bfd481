// The profile of one command of a program.
#pragma once

#include "api/session.h"
#include "program/program.h"
#include "runtime/executor.h"

namespace heddle::api {

// Without model nodes. The texts belong to the program.
CommandReport report_command(const program::Program& program, const program::Command& command,
                             const runtime::CommandProfile& profile);

}  // namespace heddle::api
