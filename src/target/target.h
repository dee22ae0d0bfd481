// Target: a device as data. Every cost and code decision reads this, never the host. Text form:
// JSON, one file per device in src/target/data/, compiled in; parse and print are inverse.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tensor/type.h"

namespace heddle::target {

enum class DeviceKind { cpu, gpu };

struct Cache {
  int64_t bytes = 0;
  int shared_by_cores = 1;
  double bandwidth_bytes_per_ns = 0;  // of one core, read + written
};

struct Target {
  std::string name;  // "portable", "avx2", "icelake", "spr", "zen5", "sm_80", "host"
  DeviceKind kind = DeviceKind::cpu;
  std::string llvm_triple, llvm_cpu;  // CPU; e.g. x86_64-unknown-linux-gnu, x86-64-v3
  std::vector<std::string> features;  // LLVM names, sorted: "avx2", "avx512f", "fma", …
  int simd_bits = 128;                // CPU: width of a vector register
  int vector_registers = 16;
  int cores = 1;  // task splits follow this, never the machine that runs
  double clock_ghz = 1;
  int fma_per_cycle = 1;                         // vector fma instructions per cycle and core
  std::vector<Cache> caches;                     // L1 data, L2, L3 (GPU: L1/shared, L2)
  double memory_bandwidth_bytes_per_ns = 0;      // one core, read + written by a copy
  double memory_bandwidth_all_bytes_per_ns = 0;  // all cores
  // One core that only reads, if that is slower: a copy's stores may overlap with its reads. 0: the
  // same as for a copy.
  double memory_read_bytes_per_ns = 0;
  // GPU: size of its memory; 0: not stated (no limit).
  int64_t memory_bytes = 0;
  // GPU: the link between its memory and the host's: bytes in one direction, as copies of pinned
  // memory reach them, and the fixed time of one copy. 0: no link, the memory is the host's.
  double link_bytes_per_ns = 0;
  double link_latency_ns = 0;
  double launch_ns = 0;  // CPU: fork and join of the workers
  double serial_command_ns = 0;
  // Relative rate of a multiply-accumulate against f32, by type name and by the name of an
  // instruction on tiles (kernel/mma.def): {"bf16": 0.5, "u8": 4, "tdpbf16ps": 16}.
  std::map<std::string, double> mac_rate;
  // Cycles per instruction of one class at full rate: {"exp": 7, "div": 8, …}.
  std::map<std::string, double> cycles;
  // GPU only.
  int multiprocessors = 0, threads_per_multiprocessor = 0, registers_per_multiprocessor = 0;
  int64_t shared_bytes_per_block = 0, shared_bytes_per_multiprocessor = 0;
  int warp_size = 32;
  // Tuning results for this device, by key (schedule/tuning.h). Kept separately from the text form;
  // null: none. They influence the compiled program.
  std::shared_ptr<const std::map<std::string, std::string>> records;

  bool has(std::string_view feature) const;
  bool has_any(std::string_view features) const;  // of names separated by blanks
  // Elements of `type` in one vector register, at least 1.
  int lanes(tensor::Type type) const;
  double peak_flops_per_ns(tensor::Type type) const;      // all cores, fma counts two
  double peak_flops_per_ns(std::string_view tile) const;  // of a tile instruction; 0: not stated
  // Of a core; typical sizes if the target does not state them.
  int64_t first_cache_bytes() const { return caches.empty() ? 32 << 10 : caches[0].bytes; }
  int64_t second_cache_bytes() const { return caches.size() > 1 ? caches[1].bytes : 512 << 10; }
  bool has_link() const { return link_bytes_per_ns > 0; }
  double link_ns(double bytes) const;  // one copy across the link, which must exist
  // Bytes of device memory that all cores could move in the time of a copy of `bytes` across the
  // link; `bytes` if there is no link.
  double memory_bytes_of_link(double bytes) const;
  bool operator==(const Target&) const = default;
};

bool operator==(const Cache& a, const Cache& b);

Result<Target> parse_target(std::string_view json);
std::string to_string(const Target& target);
std::vector<std::string> shipped_targets();
// A shipped target by name; "host": this machine. Error: lists the names.
Result<Target> find_target(const std::string& name);
// This machine: ISA by cpuid, cores by affinity and cgroup quota, caches from sysfs; rates from
// the nearest shipped target. `HEDDLE_ISA=portable|avx2|avx512` lowers it (never raises).
Target host_target();
// The largest of portable, avx2, avx512, avx512_vnni, … that a target supports: for reports.
std::string isa_name(const Target& target);

}  // namespace heddle::target
