// Hashes of large memory, with several threads.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/hash.h"

namespace heddle::cache {

// For each array: the hash of its pieces' hashes, independent of the number of threads.
std::vector<Hash128> hash_by_pieces(std::span<const std::string_view> arrays, int threads);

}  // namespace heddle::cache
