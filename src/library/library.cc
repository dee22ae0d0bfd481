#include "library/library.h"

#include <cstdlib>
#include <string_view>

#include "library/onednn.h"

namespace heddle::library {

Opened open(const std::string& name, const target::Target& target) {
  if (name != kOneDnn)
    return {nullptr,
            Decision::no("library-unknown", "there is no library '{}', only {}", name, kOneDnn)};
  if (target.kind != target::DeviceKind::cpu)
    return {nullptr,
            Decision::no("library-device", "{} runs on the cpu, not on {}", name, target.name)};
  const char* path = std::getenv("HEDDLE_ONEDNN");
  if (path != nullptr && std::string_view(path) == "off")
    return {nullptr, Decision::no("library-absent", "HEDDLE_ONEDNN=off")};
  return onednn::open_library(path == nullptr ? "" : path, target);
}

}  // namespace heddle::library
