// Hashes of much memory, by several threads.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/hash.h"

namespace heddle::cache {

// Of each array: the hash of its pieces' hashes, however many threads read them.
std::vector<Hash128> hash_by_pieces(std::span<const std::string_view> arrays, int threads);

}  // namespace heddle::cache
