#include "cache/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

namespace heddle::cache {
namespace {

// Whether `path` still names the file of `fd`: the previous holder may have removed it.
bool is_file_of(const std::string& path, int fd) {
  struct stat open_one, named;
  return fstat(fd, &open_one) == 0 && lstat(path.c_str(), &named) == 0 &&
         open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

}  // namespace

std::optional<FileLock> FileLock::acquire(const std::string& path, std::chrono::milliseconds wait) {
  const auto deadline = std::chrono::steady_clock::now() + wait;
  std::chrono::milliseconds pause{1};
  while (true) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return std::nullopt;
    int error = 0;
    // flock has no time limit; a compilation takes much longer than these pauses.
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
      error = errno;
      if (error != EWOULDBLOCK && error != EINTR) break;
      if (std::chrono::steady_clock::now() >= deadline) break;
      error = 0;
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, std::chrono::milliseconds(16));
    }
    if (error == 0 && is_file_of(path, fd)) return FileLock(path, fd);
    ::close(fd);
    if (error != 0) return std::nullopt;
  }
}

FileLock::~FileLock() {
  if (fd_ < 0) return;
  ::unlink(path_.c_str());  // while the lock is held: waiters notice that the file is gone
  ::close(fd_);
}

}  // namespace heddle::cache
