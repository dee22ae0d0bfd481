// What of a model cannot be imported, for people and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "import/onnx_support.h"

namespace heddle::tools {

std::string support_text(const std::string& model, const import::SupportReport& report);
nlohmann::ordered_json support_json(const std::string& model, const import::SupportReport& report);

}  // namespace heddle::tools
