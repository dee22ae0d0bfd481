#include "emit/llvm/isa.h"

#include "kernel/mma.h"

namespace heddle::emit {

Isa Isa::of(const target::Target& target) {
  Isa isa;
  isa.fma = target.has("fma");
  isa.f16c = target.has("f16c");
  isa.avx = target.has("avx");
  isa.avx2 = target.has("avx2");
  isa.avx512 = target.has("avx512f") && target.has("avx512bw") && target.has("avx512dq") &&
               target.has("avx512vl");
  isa.avx512_bf16 = isa.avx512 && target.has("avx512bf16");
  isa.simd_bits = target.simd_bits;
  for (const std::string& feature : target.features) {
    isa.features += (isa.features.empty() ? "+" : ",+") + feature;
  }
  isa.tune_cpu = target.llvm_cpu;
  for (const kernel::MmaDescriptor& mma : kernel::mma_table())
    if (target.has_any(mma.features)) {
      if (mma.is_dot()) isa.dots.push_back(mma.name);
      if (mma.is_tile()) isa.tiles.push_back(mma.name);
    }
  return isa;
}

}  // namespace heddle::emit
