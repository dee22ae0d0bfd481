// available_cores(): the number of cores that the scheduler gives this process.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/parallel.h"

namespace heddle {
namespace {

int affinity_cores() {
  // The kernel rejects masks that are too short for the machine.
  for (size_t cpus = 1024; cpus <= (size_t{1} << 20); cpus *= 4) {
    std::vector<unsigned char> mask(CPU_ALLOC_SIZE(cpus));
    auto* set = reinterpret_cast<cpu_set_t*>(mask.data());
    if (sched_getaffinity(0, mask.size(), set) == 0) return CPU_COUNT_S(mask.size(), set);
  }
  return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Cores allowed by quota / period, rounded up; 0: no limit.
int quota_cores(const std::string& quota, const std::string& period) {
  int64_t q = 0, p = 0;
  if (!(std::istringstream(quota) >> q) || !(std::istringstream(period) >> p)) return 0;
  if (q <= 0 || p <= 0) return 0;
  return static_cast<int>(std::min<int64_t>((q + p - 1) / p, 1 << 20));
}

// The tightest limit on the path from a control group up to its root.
int limit_along(const std::string& mount, std::string path, bool unified) {
  int tightest = 0;
  while (true) {
    const std::string directory = mount + (path == "/" ? "" : path);
    int cores = 0;
    if (unified) {
      std::istringstream line(first_line(directory + "/cpu.max"));
      std::string quota, period;
      line >> quota >> period;
      cores = quota_cores(quota, period);  // "max" reads as no limit
    } else {
      cores = quota_cores(first_line(directory + "/cpu.cfs_quota_us"),
                          first_line(directory + "/cpu.cfs_period_us"));
    }
    if (cores > 0) tightest = tightest == 0 ? cores : std::min(tightest, cores);
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos || path == "/" || path.empty()) return tightest;
    path.resize(slash);
  }
}

// Each line is "number:controllers:path"; in version 2 controllers is empty.
int cgroup_cores() {
  std::ifstream file("/proc/self/cgroup");
  int tightest = 0;
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    int cores = 0;
    if (controllers == ",,") {
      cores = limit_along("/sys/fs/cgroup", path, true);
    } else if (controllers.find(",cpu,") != std::string::npos) {
      // Inside a container the group's path may not be visible; the mount is then the group itself.
      cores = limit_along("/sys/fs/cgroup/cpu", path, false);
    }
    if (cores > 0) tightest = tightest == 0 ? cores : std::min(tightest, cores);
  }
  return tightest;
}

}  // namespace

int available_cores() {
  const int affinity = std::max(1, affinity_cores());
  const int quota = cgroup_cores();
  return quota > 0 ? std::min(affinity, quota) : affinity;
}

}  // namespace heddle
