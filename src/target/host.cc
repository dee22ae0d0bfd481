// What this machine is. The instruction set is read from cpuid and xgetbv and written as the list
// of LLVM feature names that shipped targets use, so that a feature the operating system does not
// save, or that a virtual machine hides, is never assumed from the name of the processor.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "base/check.h"
#include "base/parallel.h"
#include "target/target.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace heddle::target {
namespace {

std::set<std::string> host_features() {
  std::set<std::string> found;
#if defined(__x86_64__)
  struct Leaf {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  };
  auto leaf = [](unsigned number, unsigned sub) {
    Leaf result;
    if (!__get_cpuid_count(number, sub, &result.eax, &result.ebx, &result.ecx, &result.edx)) {
      return Leaf();
    }
    return result;
  };
  Leaf one = leaf(1, 0), seven = leaf(7, 0), seven_one = leaf(7, 1), extended = leaf(0x80000001, 0);
  unsigned long long saved = 0;
  if (one.ecx >> 27 & 1) {  // osxsave
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    saved = static_cast<unsigned long long>(high) << 32 | low;
  }
  bool ymm = (saved & 0x6) == 0x6, zmm = ymm && (saved & 0xe0) == 0xe0;
  struct Bit {
    const char* name;
    unsigned word;
    int bit;
    bool usable;
  };
  const Bit bits[] = {
      {"x87", one.edx, 0, true},
      {"cx8", one.edx, 8, true},
      {"cmov", one.edx, 15, true},
      {"mmx", one.edx, 23, true},
      {"fxsr", one.edx, 24, true},
      {"sse", one.edx, 25, true},
      {"sse2", one.edx, 26, true},
      {"sse3", one.ecx, 0, true},
      {"pclmul", one.ecx, 1, true},
      {"ssse3", one.ecx, 9, true},
      {"cx16", one.ecx, 13, true},
      {"sse4.1", one.ecx, 19, true},
      {"sse4.2", one.ecx, 20, true},
      {"crc32", one.ecx, 20, true},
      {"movbe", one.ecx, 22, true},
      {"popcnt", one.ecx, 23, true},
      {"aes", one.ecx, 25, true},
      {"xsave", one.ecx, 27, true},
      {"fma", one.ecx, 12, ymm},
      {"avx", one.ecx, 28, ymm},
      {"f16c", one.ecx, 29, ymm},
      {"sahf", extended.ecx, 0, true},
      {"lzcnt", extended.ecx, 5, true},
      {"bmi", seven.ebx, 3, true},
      {"avx2", seven.ebx, 5, ymm},
      {"bmi2", seven.ebx, 8, true},
      {"avx512f", seven.ebx, 16, zmm},
      {"evex512", seven.ebx, 16, zmm},
      {"avx512dq", seven.ebx, 17, zmm},
      {"avx512ifma", seven.ebx, 21, zmm},
      {"avx512cd", seven.ebx, 28, zmm},
      {"avx512bw", seven.ebx, 30, zmm},
      {"avx512vl", seven.ebx, 31, zmm},
      {"avx512vbmi", seven.ecx, 1, zmm},
      {"avx512vbmi2", seven.ecx, 6, zmm},
      {"gfni", seven.ecx, 8, true},
      {"vaes", seven.ecx, 9, ymm},
      {"vpclmulqdq", seven.ecx, 10, ymm},
      {"avx512vnni", seven.ecx, 11, zmm},
      {"avx512bitalg", seven.ecx, 12, zmm},
      {"avx512vpopcntdq", seven.ecx, 14, zmm},
      {"avx512fp16", seven.edx, 23, zmm},
      {"avxvnni", seven_one.eax, 4, ymm},
      {"avx512bf16", seven_one.eax, 5, zmm},
  };
  for (const Bit& bit : bits) {
    if (bit.usable && (bit.word >> bit.bit & 1)) found.insert(bit.name);
  }
#endif
  return found;
}

Target shipped(const char* name) {
  Result<Target> target = find_target(name);
  HEDDLE_CHECK(target.has_value(), "shipped target {}: {}", name, target.error().message);
  return *target;
}

bool has_all(const std::set<std::string>& features, const Target& wanted) {
  return std::includes(features.begin(), features.end(), wanted.features.begin(),
                       wanted.features.end());
}

// HEDDLE_ISA: takes away what the named instruction set lacks.
void lower(std::set<std::string>& features, const char* isa) {
  std::string name = isa ? isa : "";
  std::set<std::string> kept;
  if (name == "portable" || name == "avx2") {
    for (const std::string& feature : shipped(name.c_str()).features) kept.insert(feature);
  } else if (name == "avx512") {
    for (const std::string& feature : shipped("avx2").features) kept.insert(feature);
    kept.insert({"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl", "evex512"});
  } else {
    return;
  }
  std::erase_if(features, [&](const std::string& feature) { return !kept.contains(feature); });
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "0-3,8-11": how many processors.
int count_list(const std::string& list) {
  std::stringstream stream(list);
  std::string part;
  int count = 0;
  while (std::getline(stream, part, ',')) {
    int first = 0, last = 0;
    int fields = std::sscanf(part.c_str(), "%d-%d", &first, &last);
    if (fields == 1) last = first;
    if (fields >= 1 && last >= first && last < 1 << 20) count += last - first + 1;
  }
  return std::max(count, 1);
}

// Sizes and sharing of processor 0's caches; what sysfs does not say stays as it is.
void read_caches(std::vector<Cache>& caches) {
  for (int i = 0; i < 8; ++i) {
    std::string base = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    std::string size = first_line(base + "size"), type = first_line(base + "type");
    size_t level = static_cast<size_t>(std::atoi(first_line(base + "level").c_str()));
    if (size.empty() || type == "Instruction" || level < 1 || level > caches.size()) continue;
    int64_t bytes = std::atoll(size.c_str());
    if (size.back() == 'K') bytes <<= 10;
    if (size.back() == 'M') bytes <<= 20;
    if (bytes < 1) continue;
    caches[level - 1].bytes = bytes;
    caches[level - 1].shared_by_cores = count_list(first_line(base + "shared_cpu_list"));
  }
}

}  // namespace

Target host_target() {
  std::set<std::string> features = host_features();
  lower(features, std::getenv("HEDDLE_ISA"));
  Target target;
  for (const char* name : {"spr", "icelake", "avx2", "portable"}) {
    target = shipped(name);
    // AVX-512 of any kind is nearest to icelake, whatever of its later features are missing.
    bool some_avx512 = std::string_view(name) == "icelake" && features.contains("avx512f") &&
                       features.contains("avx512bw") && features.contains("avx512dq") &&
                       features.contains("avx512vl");
    if (some_avx512 || has_all(features, target)) break;
  }
  if (!features.contains("avx512vnni")) {
    target.mac_rate.erase("u8");
    target.mac_rate.erase("s8");
  }
  target.name = "host";
  target.features.assign(features.begin(), features.end());
  target.cores = available_cores();
  read_caches(target.caches);
  if (target.cores == 1)
    target.memory_bandwidth_all_bytes_per_ns = target.memory_bandwidth_bytes_per_ns;
  return target;
}

}  // namespace heddle::target
