// Limit on scratch held in a GPU thread's registers, in addition to those of its computation.
#pragma once

namespace heddle::target {

// At most so many 4-byte registers of a thread for scratch that only it uses. With as many again
// for addresses and operators, 512 threads share the 65536 registers of a multiprocessor.
inline constexpr int kHeldRegisters = 64;

}  // namespace heddle::target
