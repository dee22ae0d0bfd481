// Compiled with -mavx2, so it must not include inline functions that other files share.
#include "base/hash_avx2.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace heddle {

uint64_t hash64_avx2(const void* data, size_t bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(data, bytes, seed);
}

void hash128_avx2(const void* data, size_t bytes, uint64_t* high, uint64_t* low) {
  const XXH128_hash_t hash = XXH3_128bits(data, bytes);
  *high = hash.high64;
  *low = hash.low64;
}

}  // namespace heddle
