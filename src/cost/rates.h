// What moving bytes and starting kernels takes on a target. Every figure comes from the target's
// file (`heddle calibrate` measures them); times are nanoseconds, sizes bytes.
#pragma once

#include <cstdint>

#include "target/target.h"

namespace heddle::cost {

// Over which border bytes go. memory_reg: between registers and wherever an array lies; read: the
// same where bytes only come in (a copy's stores may pass beside its reads); memory_near: between
// there and the last private memory of a core (GPU: a multiprocessor's shared memory; CPU: the
// second cache); near_reg: between that and registers.
enum class Transition { memory_reg, read, memory_near, near_reg };

// Cores that a target computes with: a CPU's cores, a GPU's multiprocessors.
int core_count(const target::Target& target);

// The time until an array of `bytes` bytes was read or written once by `cores` cores together:
// piecewise linear, 0 at 0, and never less for more bytes. Arrays that fill a quarter of a cache
// at most come at that cache's rate, those that fill it at the next one's; between them the time
// is interpolated.
double transfer_ns(Transition transition, double bytes, int cores, const target::Target& target);

// Below this much work a phase is not shared between the cores of a CPU: half of what the next one
// reads would then lie in another core's cache, a few microseconds for as many KB (DIEN's 600 small
// kernels took 1.5 times as long on two threads as on one).
inline constexpr int64_t kSerialFlops = 2'000'000, kSerialBytes = 256 << 10;
bool runs_serially(double flops, double bytes, double tasks);

// To start a kernel of `phases` phases: on a CPU a serial one is a call, the others a fork and a
// join each; on a GPU each phase is a launch.
double call_ns(bool serial, int phases, const target::Target& target);

// What computing and moving take together: they overlap, but not to the last bit.
double overlapped_ns(double compute_ns, double moved_ns);

}  // namespace heddle::cost
