// What the accesses of a subgroup cost a GPU's memory: passes over the banks of scratch, sectors of
// global memory.
#pragma once

#include <cstdint>
#include <vector>

namespace heddle::kernel {

inline constexpr int64_t kBanks = 32, kBankBytes = 4, kSectorBytes = 32;
// What one access of a lane moves at most, from a place that is a multiple of its size: the text of
// a kernel puts neighbours together (emit/cuda/wide.cc).
inline constexpr int64_t kMostAccessBytes = 16;

// `first_bytes`: where the elements of `size` bytes begin that the lanes of one request touch;
// sorted on return. Passes: each bank gives one word a pass, to all lanes that want it; words of 8
// bytes are two.
int64_t count_bank_passes(std::vector<int64_t>& first_bytes, int size);
struct Sectors {
  int64_t touched = 0, least = 0;  // least: as many as the bytes fill
};
Sectors count_sectors(std::vector<int64_t>& first_bytes, int size);

}  // namespace heddle::kernel
