// Tests over folders of models, each with its inputs and recorded outputs beside it.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace heddle {

// Names of the folders in `folder` that have a model.onnx, in order.
inline std::vector<std::string> model_folders(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (std::filesystem::exists(entry.path() / "model.onnx"))
      names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace heddle
