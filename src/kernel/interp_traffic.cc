#include "kernel/interp_traffic.h"

#include <algorithm>
#include <array>

namespace heddle::kernel {

// An access of 8 bytes per lane is served in two halves of the lanes, so that unit stride is free
// of conflicts: the words are counted for all lanes at once, and a pass of a half is half of that.
int64_t count_bank_passes(std::vector<int64_t>& first_bytes, int size) {
  std::vector<int64_t> words;
  for (int64_t byte : first_bytes)
    for (int64_t word = byte / kBankBytes; word <= (byte + size - 1) / kBankBytes; ++word)
      words.push_back(word);
  std::sort(first_bytes.begin(), first_bytes.end());
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  std::array<int64_t, kBanks> of_bank{};
  for (int64_t word : words) ++of_bank[static_cast<size_t>(word % kBanks)];
  const int64_t most = *std::max_element(of_bank.begin(), of_bank.end());
  const int64_t halves = std::max<int64_t>(1, size / kBankBytes);
  return std::max<int64_t>(1, (most + halves - 1) / halves);
}

Sectors count_sectors(std::vector<int64_t>& first_bytes, int size) {
  std::sort(first_bytes.begin(), first_bytes.end());
  Sectors result;
  int64_t last_sector = -1, last_byte = -1, distinct = 0;
  for (int64_t byte : first_bytes) {
    if (byte != last_byte) distinct += size;
    last_byte = byte;
    for (int64_t sector = byte / kSectorBytes; sector <= (byte + size - 1) / kSectorBytes;
         ++sector) {
      if (sector <= last_sector) continue;
      ++result.touched;
      last_sector = sector;
    }
  }
  result.least = (distinct + kSectorBytes - 1) / kSectorBytes;
  return result;
}

}  // namespace heddle::kernel
