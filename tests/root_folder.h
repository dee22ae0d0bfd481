// Where what programs read beside themselves lies: bench/rows, tests/gpu, tests/testdata.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace heddle {

// The program's own folder, HEDDLE_ROOT, or the sources that it was built from: the first of them
// that has bench/rows. So a folder with a program and its files runs wherever it is copied to.
inline std::string root_folder() {
  namespace fs = std::filesystem;
  static const std::string found = [] {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
    const char* named = std::getenv("HEDDLE_ROOT");
    for (const fs::path& folder : {program, fs::path(named == nullptr ? "" : named)})
      if (!folder.empty() && fs::is_directory(folder / "bench" / "rows", error))
        return folder.string();
    return std::string(HEDDLE_SOURCE_DIR);
  }();
  return found;
}

}  // namespace heddle
