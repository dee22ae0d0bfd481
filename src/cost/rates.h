// The time to move bytes and to start kernels on a target. Every figure comes from the target's
// file (`heddle calibrate` measures them); times are nanoseconds, sizes bytes.
#pragma once

#include <cstdint>

#include "target/target.h"

namespace heddle::cost {

// The levels between which bytes move. memory_reg: between registers and wherever an array is;
// read: the same for reads only (a copy's stores may overlap its reads); memory_near: between
// wherever an array is and the last private memory of a core (GPU: a multiprocessor's shared
// memory; CPU: the second cache); near_reg: between the latter and registers.
enum class Transition { memory_reg, read, memory_near, near_reg };

// Cores that a target computes with: a CPU's cores, a GPU's multiprocessors.
int core_count(const target::Target& target);

// The time in which `cores` cores together read or write an array of `bytes` bytes once: piecewise
// linear, 0 at 0, and never less for more bytes. Arrays of up to a quarter of a cache move at that
// cache's rate, arrays that fill it at the next one's; between them the time is interpolated.
double transfer_ns(Transition transition, double bytes, int cores, const target::Target& target);

// Below this much work a phase is not shared between the cores of a CPU: half of the next phase's
// input would then be in another core's cache, a few microseconds for as many KB (DIEN's 600 small
// kernels took 1.5 times as long on two threads as on one).
inline constexpr int64_t kSerialFlops = 2'000'000, kSerialBytes = 256 << 10;
bool runs_serially(double flops, double bytes, double tasks);

// The time to start a kernel of `phases` phases: on a CPU a serial one is a call, the others a fork
// and a join per phase; on a GPU each phase is a launch.
double call_ns(bool serial, int phases, const target::Target& target);

// The time of computing and moving together: they overlap, but not completely.
double overlapped_ns(double compute_ns, double moved_ns);

}  // namespace heddle::cost
