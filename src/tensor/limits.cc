#include "tensor/limits.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>

namespace heddle::tensor {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// The number in a file; kUnlimited if it has none ("max") or does not exist.
int64_t number_in(const std::string& path) {
  std::ifstream file(path);
  int64_t value = 0;
  return file >> value && value > 0 ? value : kUnlimited;
}

// Bytes of physical memory and swap.
int64_t machine_bytes() {
  std::ifstream file("/proc/meminfo");
  int64_t kilobytes = 0;
  for (std::string key; file >> key;) {
    int64_t value = 0;
    if ((key == "MemTotal:" || key == "SwapTotal:") && file >> value) kilobytes += value;
  }
  if (kilobytes > 0) return kilobytes * 1024;
  const int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? pages * page : kUnlimited;
}

// The smallest limit of this process's control group and its ancestors, in both versions.
int64_t group_bytes() {
  std::ifstream file("/proc/self/cgroup");
  int64_t least = kUnlimited;
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool is_unified = controllers.empty();
    if (!is_unified && ("," + controllers + ",").find(",memory,") == std::string::npos) continue;
    const std::string root = is_unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    const std::string name = is_unified ? "/memory.max" : "/memory.limit_in_bytes";
    for (std::string path = line.substr(second + 1);; path.resize(path.rfind('/'))) {
      least = std::min(least, number_in(root + (path == "/" ? "" : path) + name));
      if (path.rfind('/') == std::string::npos) break;
    }
  }
  return least;
}

int64_t resource_bytes(int resource) {
  rlimit limit = {};
  if (getrlimit(static_cast<decltype(RLIMIT_AS)>(resource), &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY)
    return kUnlimited;
  return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, static_cast<rlim_t>(kUnlimited)));
}

}  // namespace

int64_t memory_limit_bytes() {
  static const int64_t limit = std::min(
      {machine_bytes(), group_bytes(), resource_bytes(RLIMIT_AS), resource_bytes(RLIMIT_DATA)});
  return limit;
}

Status check_memory(std::string_view what, int64_t bytes) {
  if (bytes <= memory_limit_bytes()) return {};
  return error_of(ErrorKind::memory, "{} needs {} bytes, this machine has {} for a process", what,
                  bytes, memory_limit_bytes());
}

}  // namespace heddle::tensor
