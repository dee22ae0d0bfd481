// The features of a target that the emitter checks, as flags, and as text for LLVM.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "target/target.h"

namespace heddle::emit {

struct Isa {
  bool fma = false, f16c = false, avx = false, avx2 = false;
  bool avx512 = false;  // f, bw, dq and vl
  bool avx512_bf16 = false;
  int simd_bits = 128;
  std::string features;  // "+avx,+avx2,…": exactly the target's list
  std::string tune_cpu;
  std::vector<std::string_view> dots, tiles;  // its instructions of either kind, by mma.def

  static Isa of(const target::Target& target);
};

}  // namespace heddle::emit
