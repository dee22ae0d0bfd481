// A file of the system's folder for temporary ones, and its end.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "error.h"

namespace heddle::pjrt {

// In a folder of its own, so that what replaces the file by another does no harm.
class TemporaryFile {
 public:
  TemporaryFile() {
    const char* folder = std::getenv("TMPDIR");
    folder_ = std::string(folder != nullptr && *folder != 0 ? folder : "/tmp") + "/heddle-XXXXXX";
    if (mkdtemp(folder_.data()) == nullptr)
      fail(PJRT_Error_Code_INTERNAL, folder_ + ": cannot make a folder");
    path_ = folder_ + "/program";
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    unlink(path_.c_str());
    rmdir(folder_.c_str());
  }

  const std::string& path() const { return path_; }
  std::string read() const {
    std::ifstream file(path_, std::ios::binary);
    if (!file) fail(PJRT_Error_Code_INTERNAL, path_ + ": cannot be read");
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string folder_, path_;
};

}  // namespace heddle::pjrt
