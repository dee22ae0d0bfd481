// Files mapped read-only, and the files of external tensor data, which must be beside the model.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace heddle::import {

// The bytes of a regular file. The mapping lives as long as the object.
class MappedFile {
 public:
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  // Errors (user): missing, or not a regular file (a pipe, a folder).
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
  // `location`: relative to the folder `directory`, by the containment rules of external data: no
  // absolute path, no "..", no backslash, no NUL, no link on the way, no second hard link.
  static Result<std::shared_ptr<const MappedFile>> open_inside(const std::string& directory,
                                                               std::string_view location);

  std::string_view bytes() const { return {data_, size_}; }
  // Hints that the pages wholly inside `part` are not needed again soon and may leave memory.
  void forget(std::string_view part) const;

 private:
  MappedFile(const char* data, size_t size) : data_(data), size_(size) {}
  static Result<std::shared_ptr<const MappedFile>> map(int descriptor, const std::string& shown);
  const char* data_;
  size_t size_;
};

// External data of one model: every file is mapped once.
class ExternalFiles {
 public:
  explicit ExternalFiles(std::string directory) : directory_(std::move(directory)) {}
  Result<std::shared_ptr<const MappedFile>> open(std::string_view location);
  std::vector<std::string> paths() const;  // of the opened files

 private:
  std::string directory_;  // empty: external data is not allowed
  std::map<std::string, std::shared_ptr<const MappedFile>, std::less<>> files_;
};

}  // namespace heddle::import
