// The host target. The instruction set is read from cpuid and xgetbv and expressed as the LLVM
// feature names that shipped targets use, so that a feature that the operating system does not
// save, or a virtual machine hides, is never assumed from the processor's name.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <tuple>

#include "base/check.h"
#include "base/parallel.h"
#include "target/target.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace heddle::target {
namespace {

#if defined(__x86_64__)

// Registers that cpuid answers in, and the registers that the system must save for a feature.
enum Word { k1c, k1d, k7b, k7c, k7d, k71a, kExtendedC, kWords };
enum Needs { kNothing, kYmm, kZmm, kTiles };

struct Feature {
  const char* name;
  Word word;
  int bit;
  Needs needs;
};

constexpr Feature kFeatures[] = {
    {"x87", k1d, 0, kNothing},
    {"cx8", k1d, 8, kNothing},
    {"cmov", k1d, 15, kNothing},
    {"mmx", k1d, 23, kNothing},
    {"fxsr", k1d, 24, kNothing},
    {"sse", k1d, 25, kNothing},
    {"sse2", k1d, 26, kNothing},
    {"sse3", k1c, 0, kNothing},
    {"pclmul", k1c, 1, kNothing},
    {"ssse3", k1c, 9, kNothing},
    {"fma", k1c, 12, kYmm},
    {"cx16", k1c, 13, kNothing},
    {"sse4.1", k1c, 19, kNothing},
    {"sse4.2", k1c, 20, kNothing},
    {"crc32", k1c, 20, kNothing},
    {"movbe", k1c, 22, kNothing},
    {"popcnt", k1c, 23, kNothing},
    {"aes", k1c, 25, kNothing},
    {"xsave", k1c, 27, kNothing},
    {"avx", k1c, 28, kYmm},
    {"f16c", k1c, 29, kYmm},
    {"sahf", kExtendedC, 0, kNothing},
    {"lzcnt", kExtendedC, 5, kNothing},
    {"bmi", k7b, 3, kNothing},
    {"avx2", k7b, 5, kYmm},
    {"bmi2", k7b, 8, kNothing},
    {"avx512f", k7b, 16, kZmm},
    {"evex512", k7b, 16, kZmm},
    {"avx512dq", k7b, 17, kZmm},
    {"avx512ifma", k7b, 21, kZmm},
    {"avx512cd", k7b, 28, kZmm},
    {"avx512bw", k7b, 30, kZmm},
    {"avx512vl", k7b, 31, kZmm},
    {"avx512vbmi", k7c, 1, kZmm},
    {"avx512vbmi2", k7c, 6, kZmm},
    {"gfni", k7c, 8, kNothing},
    {"vaes", k7c, 9, kYmm},
    {"vpclmulqdq", k7c, 10, kYmm},
    {"avx512vnni", k7c, 11, kZmm},
    {"avx512bitalg", k7c, 12, kZmm},
    {"avx512vpopcntdq", k7c, 14, kZmm},
    {"amx-bf16", k7d, 22, kTiles},
    {"avx512fp16", k7d, 23, kZmm},
    {"amx-tile", k7d, 24, kTiles},
    {"amx-int8", k7d, 25, kTiles},
    {"avxvnni", k71a, 4, kYmm},
    {"avx512bf16", k71a, 5, kZmm},
};

// The emulator of tests/tiles, if loaded: it executes tile instructions that the processor lacks.
bool has_stand_in_for_tiles() { return dlsym(RTLD_DEFAULT, "heddle_tiles_stand_in") != nullptr; }

// Linux saves tiles only for a process that has requested it; one request covers all threads.
bool may_use_tiles() {
#ifdef SYS_arch_prctl
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

// Registers that the operating system saves.
Needs saved_registers(unsigned leaf1_ecx) {
  if ((leaf1_ecx >> 27 & 1) == 0) return kNothing;  // no xgetbv
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  if ((low & 0x6) != 0x6) return kNothing;
  if ((low & 0xe0) != 0xe0) return kYmm;
  return (low & 0x60000) == 0x60000 && may_use_tiles() ? kTiles : kZmm;
}

bool is_amd() {
  unsigned a, b, c, d;
  return __get_cpuid(0, &a, &b, &c, &d) && b == 0x68747541;  // "Auth"
}

std::set<std::string> host_features() {
  unsigned words[kWords] = {}, unused;
  auto ask = [&](unsigned leaf, unsigned sub, unsigned& a, unsigned& b, unsigned& c, unsigned& d) {
    if (!__get_cpuid_count(leaf, sub, &a, &b, &c, &d)) a = b = c = d = 0;
  };
  ask(1, 0, unused, unused, words[k1c], words[k1d]);
  ask(7, 0, unused, words[k7b], words[k7c], words[k7d]);
  ask(7, 1, words[k71a], unused, unused, unused);
  ask(0x80000001, 0, unused, unused, words[kExtendedC], unused);
  Needs saved = saved_registers(words[k1c]);
  std::set<std::string> found;
  for (const Feature& feature : kFeatures) {
    bool usable = feature.needs <= saved;
    if (usable && (words[feature.word] >> feature.bit & 1)) found.insert(feature.name);
  }
  if (has_stand_in_for_tiles()) found.insert({"amx-bf16", "amx-int8", "amx-tile"});
  return found;
}

#else

bool is_amd() { return false; }
std::set<std::string> host_features() { return {}; }

#endif

Target shipped(const char* name) {
  Result<Target> target = find_target(name);
  HEDDLE_CHECK(target.has_value(), "shipped target {}: {}", name, target.error().message);
  return *target;
}

bool has_all(const std::set<std::string>& features, const Target& wanted) {
  return std::includes(features.begin(), features.end(), wanted.features.begin(),
                       wanted.features.end());
}

// HEDDLE_ISA: removes features that the named instruction set lacks.
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

// Number of processors in a list such as "0-3,8-11".
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

// Sizes and sharing of processor 0's caches; values that sysfs lacks stay unchanged.
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
  const bool zen3 = is_amd() && features.contains("vaes");  // or later
  lower(features, std::getenv("HEDDLE_ISA"));
  Target target;
  for (const char* name : {"zen5", "zen4", "spr_amx", "spr", "icelake", "avx2", "portable"}) {
    if (std::string_view(name).starts_with("zen") && !is_amd()) continue;  // spr without f16
    target = shipped(name);
    // Any AVX-512 is closest to icelake, even if later features are missing.
    bool some_avx512 = std::string_view(name) == "icelake" && features.contains("avx512f") &&
                       features.contains("avx512bw") && features.contains("avx512dq") &&
                       features.contains("avx512vl");
    if (some_avx512 || has_all(features, target)) break;
  }
  // Integer rates with the dot-product instruction (AVX512-VNNI or AVX-VNNI). Without it, from
  // multiply-adds of pairs of 16 bits, if a core does two of these and four additions per cycle
  // (Zen 5: 180 GFLOP/s of bytes, 127 of f32); on other cores that is no faster than floats.
  const bool words = features.contains("avx512vnni") || features.contains("avxvnni");
  const bool pairs = zen3 && features.contains("avx2");
  for (const auto& [type, word_rate, pair_rate] :
       {std::tuple{"u8", 4.0, 1.4}, {"s8", 4.0, 1.4}, {"s16", 2.0, 2.0}}) {
    if (words && target.mac_rate.contains(type)) continue;  // as measured
    if (words || pairs)
      target.mac_rate[type] = words ? word_rate : pair_rate;
    else
      target.mac_rate.erase(type);
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
