// All commands, in the order of --help.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "command.h"

namespace heddle::tools {

std::unique_ptr<Command> make_run();
std::unique_ptr<Command> make_bench();
std::unique_ptr<Command> make_check();
std::unique_ptr<Command> make_compile();
std::unique_ptr<Command> make_inspect();
std::unique_ptr<Command> make_explain();
std::unique_ptr<Command> make_report();
std::unique_ptr<Command> make_profile();
std::unique_ptr<Command> make_opt();
std::unique_ptr<Command> make_tune();
std::unique_ptr<Command> make_dryrun();
std::unique_ptr<Command> make_quantize();
std::unique_ptr<Command> make_calibrate();
std::unique_ptr<Command> make_advise();
std::unique_ptr<Command> make_reduce();
std::unique_ptr<Command> make_conform();
std::unique_ptr<Command> make_cache();
std::unique_ptr<Command> make_doctor();
std::unique_ptr<Command> make_completion(const std::vector<std::unique_ptr<Command>>& all);

}  // namespace heddle::tools
