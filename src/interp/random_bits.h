// Counter-based random bits.
#pragma once

#include <array>
#include <cstdint>

namespace heddle::interp {

// Three-Fry 2x32 with 20 rounds and Philox 4x32 with 10 (Salmon et al., SC 2011).
std::array<uint32_t, 2> three_fry_2x32(std::array<uint32_t, 2> counter,
                                       std::array<uint32_t, 2> key);
std::array<uint32_t, 4> philox_4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// The mixing function of splitmix64.
uint64_t mix(uint64_t x);

}  // namespace heddle::interp
