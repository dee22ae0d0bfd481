// One at a time, over threads and processes: a file that is locked (flock(2)). The kernel lets go
// when its holder ends, however that ends, so that a killed holder blocks nobody.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace heddle::cache {

// Holds the lock while it lives. The file is made for it, in a folder that is there, and is removed
// with it; one that a killed holder left behind is taken over.
class FileLock {
 public:
  // Waits for the lock, `wait` at most. None: someone else has it still, or no lock can be had
  // there (read-only, a file system without locks).
  static std::optional<FileLock> acquire(const std::string& path, std::chrono::milliseconds wait);
  ~FileLock();
  FileLock(FileLock&& other) noexcept
      : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}
  FileLock& operator=(FileLock&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(fd_, other.fd_);
    return *this;
  }

 private:
  FileLock(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  int fd_;
};

}  // namespace heddle::cache
