// A folder for files that are gone when it goes.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"

namespace heddle::tools {

class TemporaryFolder {
 public:
  // Only this user can read it. Error (machine): it cannot be made.
  static Result<std::unique_ptr<TemporaryFolder>> make();
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace heddle::tools
