#include "temporary_folder.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace heddle::tools {

Result<std::unique_ptr<TemporaryFolder>> TemporaryFolder::make() {
  std::error_code ignored;
  std::string path = (std::filesystem::temp_directory_path(ignored) / "heddle-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) return machine_error("cannot make a folder {}", path);
  return std::make_unique<TemporaryFolder>(path);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace heddle::tools
