#include <gtest/gtest.h>

#include "hlo/text.h"
#include "interp/interp.h"
#include "opt/passes.h"
#include "opt/test_util.h"

namespace heddle::opt {
namespace {

// The same bits as the generator's, and no generator is left.
TEST(RandomBits, AreArithmeticOnPlaces) {
  for (const char* algorithm : {"rng_three_fry", "rng_philox", "rng_default"}) {
    for (const char* words : {"2", "3"}) {
      if (std::string(algorithm) == "rng_three_fry" && words[0] == '3') continue;
      for (const char* shape : {"u32[7]", "u32[5,3]", "s32[3,4,5]", "u64[3,3]", "s64[6]"}) {
        auto module =
            parse(fmt::format("ENTRY e {{ s = u64[{0}] parameter(0)\n"
                              "ROOT r = (u64[{0}], {1}) rng-bit-generator(s), algorithm={2} }}",
                              words, shape, algorithm));
        const auto before = module->clone();
        EXPECT_TRUE(run(*module, "algebraic,dce").changed);
        for (const hlo::Instr* instr : module->entry()->instrs())
          EXPECT_FALSE(instr->is(hlo::Opcode::rng_bit_generator));
        for (uint64_t seed : {1, 2, 3})
          expect_same_values(*before, *module, seed, false, algorithm);
        // Counters that wrap.
        expect_same_special_values(*before, *module, algorithm);
      }
    }
  }
}

TEST(RandomBits, ReadPairsOfNarrowWords) {
  auto module = parse(
      "ENTRY e { s = u32[2,2] parameter(0) k = u64[2] bitcast-convert(s)\n"
      "r = (u64[2], u32[7]) rng-bit-generator(k), algorithm=rng_default\n"
      "ROOT b = u32[7] get-tuple-element(r), index=1 }");
  const auto before = module->clone();
  run(*module, "{fold_tuples,algebraic,dce}*");
  for (const hlo::Instr* instr : module->entry()->instrs())
    EXPECT_FALSE(instr->is(hlo::Opcode::bitcast_convert));
  expect_same_values(*before, *module, 4, false, "pairs");
}

}  // namespace
}  // namespace heddle::opt
