// What is held in registers of a GPU's thread beside what it computes with.
#pragma once

namespace heddle::target {

// 4-byte registers of a thread, at most, for scratch that only it uses. With as many for addresses
// and operators, 512 threads share the 65536 of a multiprocessor.
inline constexpr int kHeldRegisters = 64;

}  // namespace heddle::target
