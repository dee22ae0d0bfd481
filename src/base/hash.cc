#include "base/hash.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include "base/hash_avx2.h"

namespace heddle {
namespace {

// Shorter texts are hashed faster than the processor check takes.
constexpr size_t kWide = 4096;

bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}

}  // namespace

std::string Hash128::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

uint64_t hash64(std::string_view bytes, uint64_t seed) {
  if (bytes.size() >= kWide && has_avx2()) return hash64_avx2(bytes.data(), bytes.size(), seed);
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

Hash128 hash128(std::string_view bytes) {
  if (bytes.size() >= kWide && has_avx2()) {
    Hash128 wide;
    hash128_avx2(bytes.data(), bytes.size(), &wide.high, &wide.low);
    return wide;
  }
  XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

}  // namespace heddle
