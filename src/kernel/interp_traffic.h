// The cost of a subgroup's accesses to a GPU's memory: passes over the banks of scratch, sectors of
// global memory.
#pragma once

#include <cstdint>
#include <vector>

namespace heddle::kernel {

inline constexpr int64_t kBanks = 32, kBankBytes = 4, kSectorBytes = 32;
// The most bytes that one access of a lane moves, from an address that is a multiple of its size:
// code generation merges neighbours (emit/cuda/wide.cc).
inline constexpr int64_t kMostAccessBytes = 16;

// `first_bytes`: where the elements of `size` bytes begin that the lanes of one request touch;
// sorted on return. In a pass each bank serves one word, to all lanes that read it; elements of 8
// bytes are two words.
int64_t count_bank_passes(std::vector<int64_t>& first_bytes, int size);
struct Sectors {
  int64_t touched = 0, least = 0;  // least: the fewest that hold the bytes
};
Sectors count_sectors(std::vector<int64_t>& first_bytes, int size);

}  // namespace heddle::kernel
