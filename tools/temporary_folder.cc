#include "temporary_folder.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace heddle::tools {

Result<std::unique_ptr<TemporaryFolder>> TemporaryFolder::make() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error)
    return machine_error("no folder for temporary files: {}; TMPDIR names one", error.message());
  std::string path = (folder / "heddle-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) return machine_error("cannot make a folder {}", path);
  return std::make_unique<TemporaryFolder>(path);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace heddle::tools
