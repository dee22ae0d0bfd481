// Content hashes (XXH3). Stable across runs and machines: cache keys use them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heddle {

struct Hash128 {
  uint64_t high = 0, low = 0;
  auto operator<=>(const Hash128&) const = default;
  std::string hex() const;  // 32 digits
};

uint64_t hash64(std::string_view bytes, uint64_t seed = 0);
Hash128 hash128(std::string_view bytes);

}  // namespace heddle
