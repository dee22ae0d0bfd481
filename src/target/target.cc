#include "target/target.h"

#include <algorithm>

#include "target/shipped.h"

namespace heddle::target {

using tensor::Type;

bool operator==(const Cache& a, const Cache& b) {
  return a.bytes == b.bytes && a.shared_by_cores == b.shared_by_cores &&
         a.bandwidth_bytes_per_ns == b.bandwidth_bytes_per_ns;
}

bool Target::has(std::string_view feature) const {
  return std::binary_search(features.begin(), features.end(), feature);
}

bool Target::has_any(std::string_view names) const {
  for (size_t at = 0; at < names.size();) {
    const size_t end = std::min(names.find(' ', at), names.size());
    if (has(names.substr(at, end - at))) return true;
    at = end + 1;
  }
  return false;
}

int Target::lanes(Type type) const {
  return std::max<int>(1, simd_bits / static_cast<int>(8 * tensor::type_bytes(type)));
}

double Target::link_ns(double bytes) const { return link_latency_ns + bytes / link_bytes_per_ns; }

double Target::memory_bytes_of_link(double bytes) const {
  return has_link() ? link_ns(bytes) * memory_bandwidth_all_bytes_per_ns : bytes;
}

namespace {

double f32_flops_per_ns(const Target& target) {
  const bool gpu = target.kind == DeviceKind::gpu;
  const double lanes = gpu ? target.warp_size : target.simd_bits / 32.0;
  const int units = gpu ? target.multiprocessors : target.cores;
  return 2.0 * units * target.clock_ghz * target.fma_per_cycle * lanes;
}

}  // namespace

double Target::peak_flops_per_ns(Type type) const {
  // A type without an entry is computed like f32, 64-bit types at half the rate.
  auto row = mac_rate.find(std::string(tensor::type_name(type)));
  double rate = row != mac_rate.end() ? row->second : tensor::type_bits(type) > 32 ? 0.5 : 1.0;
  return f32_flops_per_ns(*this) * rate;
}

double Target::peak_flops_per_ns(std::string_view tile) const {
  auto row = mac_rate.find(std::string(tile));
  return row == mac_rate.end() ? 0 : f32_flops_per_ns(*this) * row->second;
}

std::vector<std::string> shipped_targets() {
  std::vector<std::string> names;
  for (const ShippedText& text : shipped_texts()) names.emplace_back(text.name);
  return names;
}

std::string isa_name(const Target& target) {
  if (target.kind == DeviceKind::gpu) return target.name;
  struct Step {
    const char* name;
    std::vector<const char*> features;
  };
  static const Step steps[] = {
      // largest first; each lists its features
      {"amx", {"avx512f", "avx512vnni", "amx-tile", "amx-int8", "amx-bf16"}},
      {"avx512_fp16", {"avx512f", "avx512vnni", "avx512bf16", "avx512fp16"}},
      {"avx512_bf16", {"avx512f", "avx512vnni", "avx512bf16"}},
      {"avx512_vnni", {"avx512f", "avx512vnni"}},
      {"avx512", {"avx512f", "avx512bw", "avx512dq", "avx512vl"}},
      {"avx2_vnni", {"avx2", "fma", "avxvnni"}},
      {"avx2", {"avx2", "fma"}},
  };
  for (const Step& step : steps) {
    bool all = std::all_of(step.features.begin(), step.features.end(),
                           [&](const char* feature) { return target.has(feature); });
    if (all) return step.name;
  }
  return "portable";
}

}  // namespace heddle::target
