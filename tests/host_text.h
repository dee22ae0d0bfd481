// CUDA text made ready for the host's compiler, over gpu_host.h.
#pragma once

#include <sstream>
#include <string>

namespace heddle {

// Without its functions in the GPU's assembly: gpu_host.h has its own.
inline std::string without_assembly(const std::string& text) {
  std::string result;
  std::istringstream lines(text);
  std::string function;  // being read
  for (std::string line; std::getline(lines, line);) {
    const bool begins =
        function.empty() && (line.starts_with("__device__") || line.starts_with("template"));
    if (!begins && function.empty()) {
      result += line + "\n";
      continue;
    }
    function += line + "\n";
    const bool ends =
        line == "}" || line == "};" || (line.starts_with("__device__") && line.ends_with("}"));
    if (!ends) continue;
    const bool own = function.find("asm") != std::string::npos ||
                     function.find("_nan(double") != std::string::npos ||
                     function.find("to_half(") != std::string::npos;
    if (!own || function.find("to_integer") != std::string::npos) result += function;
    function.clear();
  }
  return result;
}

}  // namespace heddle
