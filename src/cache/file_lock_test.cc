#include "cache/file_lock.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

namespace heddle::cache {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

// Number of times that this process has the file open.
int times_open(const fs::path& path) {
  int count = 0;
  std::error_code error;  // of one that has been closed since it was listed
  for (const auto& one : fs::directory_iterator("/proc/self/fd"))
    count += fs::read_symlink(one.path(), error) == path;
  return count;
}

// The holder removes the file at the end, so a waiter locks a new file of that name, and a third
// process must see that lock.
TEST(FileLock, IsOfTheFileThatOthersFind) {
  const fs::path path =
      fs::canonical(fs::temp_directory_path()) / fmt::format("heddle-lock-{}", getpid());
  auto first = FileLock::acquire(path, milliseconds(0));
  ASSERT_TRUE(first);
  EXPECT_FALSE(FileLock::acquire(path, milliseconds(2)));
  std::optional<FileLock> second;
  std::thread waits([&] { second = FileLock::acquire(path, std::chrono::minutes(1)); });
  while (times_open(path) < 2) std::this_thread::sleep_for(milliseconds(1));
  first.reset();
  waits.join();
  ASSERT_TRUE(second);
  EXPECT_TRUE(fs::exists(path));
  EXPECT_FALSE(FileLock::acquire(path, milliseconds(2)));
  second.reset();
  EXPECT_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace heddle::cache
