#include "compiler/weight_hashes.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "cache/piece_hash.h"

namespace heddle::compiler {
namespace {

using tensor::Literal;

// Less than this of a file is read faster than looked up.
constexpr int64_t kLeastKept = int64_t{4} << 20;

std::string_view bytes_of(const Literal& weight) {
  return {static_cast<const char*>(weight.data()), static_cast<size_t>(weight.bytes())};
}

// A piece of a file in memory.
struct Mapping {
  uintptr_t begin = 0, end = 0;
  uint64_t offset = 0;  // in the file
  std::string identity;
};

std::string identity_of(const std::string& path, unsigned device_major, unsigned device_minor,
                        uint64_t inode, int settled_seconds) {
  struct stat status{};
  timespec now{};
  if (::stat(path.c_str(), &status) != 0 || status.st_ino != inode ||
      major(status.st_dev) != device_major || minor(status.st_dev) != device_minor)
    return {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  if (std::max(status.st_mtim.tv_sec, status.st_ctim.tv_sec) > now.tv_sec - settled_seconds)
    return {};
  return fmt::format("{}:{}:{}:{}.{}:{}.{}:{}", status.st_dev, status.st_ino, status.st_size,
                     status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec,
                     status.st_ctim.tv_nsec, path);
}

// Read-only mappings of files.
std::vector<Mapping> find_mappings(int settled_seconds) {
  std::vector<Mapping> mappings;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0, offset = 0, inode = 0;
    unsigned device_major = 0, device_minor = 0;
    char rights[5] = {};
    int path = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %lx %x:%x %lu %n", &begin, &end, rights, &offset,
                    &device_major, &device_minor, &inode, &path) != 7 ||
        inode == 0 || std::string_view(rights) != "r--p")
      continue;
    mappings.push_back({begin, end, offset, line.substr(static_cast<size_t>(path))});
    std::string& identity = mappings.back().identity;
    identity = identity_of(identity, device_major, device_minor, inode, settled_seconds);
  }
  return mappings;
}

// The weights in one mapping, by number, and the key of their hashes.
struct Part {
  std::vector<size_t> weights;
  cache::Key key;
  bool known = false;
};

std::optional<Part> part_of(const Mapping& mapping, std::span<const Literal> weights) {
  if (mapping.identity.empty()) return std::nullopt;
  Part part;
  std::string places;
  int64_t bytes = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto begin = reinterpret_cast<uintptr_t>(weights[i].data());
    const auto size = static_cast<uint64_t>(weights[i].bytes());
    if (size == 0 || begin < mapping.begin || begin >= mapping.end || size > mapping.end - begin)
      continue;
    part.weights.push_back(i);
    places += fmt::format("{}+{} ", begin - mapping.begin + mapping.offset, size);
    bytes += weights[i].bytes();
  }
  if (bytes < kLeastKept) return std::nullopt;
  part.key = cache::make_key({"weights of a file", mapping.identity, places});
  return part;
}

bool take_known(const std::vector<uint8_t>& kept, const Part& part, std::vector<Hash128>& hashes) {
  if (kept.size() != part.weights.size() * sizeof(Hash128)) return false;
  for (size_t i = 0; i < part.weights.size(); ++i)
    std::memcpy(&hashes[part.weights[i]], kept.data() + i * sizeof(Hash128), sizeof(Hash128));
  return true;
}

void read_weights(std::span<const Literal> weights, const std::vector<bool>& is_known, int threads,
                  std::vector<Hash128>& hashes) {
  std::vector<std::string_view> unknown;
  for (size_t i = 0; i < weights.size(); ++i)
    if (!is_known[i]) unknown.push_back(bytes_of(weights[i]));
  const std::vector<Hash128> found = cache::hash_by_pieces(unknown, threads);
  size_t next = 0;
  for (size_t i = 0; i < weights.size(); ++i)
    if (!is_known[i]) hashes[i] = found[next++];
}

}  // namespace

Hash128 hash_of_weights(std::span<const Literal> weights, int threads, cache::ObjectCache& cache,
                        int settled_seconds) {
  std::vector<Hash128> hashes(weights.size());
  std::vector<bool> is_known(weights.size(), false);
  std::vector<Part> parts;
  int64_t bytes = 0;
  for (const Literal& weight : weights) bytes += weight.bytes();
  std::vector<Mapping> mappings;
  if (bytes >= kLeastKept) mappings = find_mappings(settled_seconds);
  for (const Mapping& mapping : mappings) {
    std::optional<Part> part = part_of(mapping, weights);
    if (!part) continue;
    const auto kept = cache.find(part->key);
    part->known = kept && take_known(*kept, *part, hashes);
    if (part->known)
      for (const size_t weight : part->weights) is_known[weight] = true;
    parts.push_back(std::move(*part));
  }
  read_weights(weights, is_known, threads, hashes);
  for (const Part& part : parts) {
    if (part.known) continue;
    std::vector<uint8_t> kept(part.weights.size() * sizeof(Hash128));
    for (size_t i = 0; i < part.weights.size(); ++i)
      std::memcpy(kept.data() + i * sizeof(Hash128), &hashes[part.weights[i]], sizeof(Hash128));
    (void)cache.store(part.key, kept);  // without it the next start only takes longer
  }
  std::string all;
  for (size_t i = 0; i < weights.size(); ++i)
    all += fmt::format("{}:{} ", weights[i].bytes(), hashes[i].hex());
  return hash128(all);
}

}  // namespace heddle::compiler
