// What mixed precision decided, for people and for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "compiler/compile_options.h"

namespace heddle::tools {

std::string mixed_text(const compiler::MixedReport& mixed);
nlohmann::ordered_json mixed_json(const compiler::MixedReport& mixed);

}  // namespace heddle::tools
