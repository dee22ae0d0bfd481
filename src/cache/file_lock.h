// Mutual exclusion across threads and processes by a locked file (flock(2)). The kernel releases
// the lock when its holder ends, in any way, so that a killed holder blocks nobody.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace heddle::cache {

// Holds the lock during its lifetime. The file is created for it, in an existing folder, and
// removed at the end; a file left behind by a killed holder is taken over.
class FileLock {
 public:
  // Waits for the lock, at most `wait`. No value: someone else still has it, or locks do not work
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
