#include "pass/random_module.h"

#include <gtest/gtest.h>

#include <set>

#include "hlo/text.h"
#include "hlo/verify.h"

namespace heddle::pass {
namespace {

RandomModuleOptions with_control() {
  RandomModuleOptions options;
  options.control = true;
  return options;
}

TEST(RandomModule, IsValidAndSmall) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const RandomModuleOptions options = seed % 4 == 0 ? with_control() : RandomModuleOptions();
    auto module = random_module(seed, options);
    Status status = hlo::verify(*module);
    ASSERT_TRUE(status) << "seed " << seed << ": " << status.error().message;
    for (const auto& computation : module->computations())
      for (const hlo::Instr* instr : computation->instrs()) {
        if (!instr->shape().is_array()) continue;
        ASSERT_LE(instr->shape().elems(), options.max_elems)
            << "seed " << seed << ": " << hlo::to_string(*instr);
      }
  }
}

TEST(RandomModule, TheSameSeedGivesTheSameText) {
  EXPECT_EQ(hlo::to_string(*random_module(5)), hlo::to_string(*random_module(5)));
  EXPECT_NE(hlo::to_string(*random_module(5)), hlo::to_string(*random_module(6)));
}

TEST(RandomModule, TextReadsBack) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::string text = hlo::to_string(*random_module(seed, with_control()));
    auto module = hlo::parse_module(text);
    ASSERT_TRUE(module) << module.error().message;
    EXPECT_EQ(hlo::to_string(**module), text);
  }
}

// Differential tests rely on this: the operators that they are about occur.
TEST(RandomModule, ManyOperatorsOccur) {
  std::set<hlo::Opcode> seen;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    auto module = random_module(seed, with_control());
    for (const auto& computation : module->computations())
      for (const hlo::Instr* instr : computation->instrs()) seen.insert(instr->opcode());
  }
  using hlo::Opcode;
  for (Opcode opcode : {Opcode::add,
                        Opcode::tanh,
                        Opcode::select,
                        Opcode::clamp,
                        Opcode::compare,
                        Opcode::convert,
                        Opcode::broadcast,
                        Opcode::reshape,
                        Opcode::transpose,
                        Opcode::slice,
                        Opcode::pad,
                        Opcode::concatenate,
                        Opcode::reverse,
                        Opcode::iota,
                        Opcode::reduce,
                        Opcode::dot,
                        Opcode::gather,
                        Opcode::dynamic_slice,
                        Opcode::dynamic_update_slice,
                        Opcode::call,
                        Opcode::while_,
                        Opcode::conditional,
                        Opcode::tuple,
                        Opcode::power})
    EXPECT_TRUE(seen.contains(opcode)) << hlo::opcode_text(opcode);
}

TEST(RandomModule, OptionsLeaveThingsOut) {
  RandomModuleOptions options;
  options.narrow = options.wide = options.contractions = options.reductions = options.indexing =
      false;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    auto module = random_module(seed, options);
    for (const hlo::Instr* instr : module->entry()->instrs()) {
      EXPECT_FALSE(instr->is(hlo::Opcode::dot) || instr->is(hlo::Opcode::reduce) ||
                   instr->is(hlo::Opcode::gather))
          << "seed " << seed;
      EXPECT_NE(instr->shape().type(), hlo::Type::bf16);
    }
  }
}

}  // namespace
}  // namespace heddle::pass
