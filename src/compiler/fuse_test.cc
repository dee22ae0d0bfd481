// The cover on random modules: the fused module computes the same, and every kernel it asks for is
// clean in the kernel interpreter and right.
#include "fuse/fuse.h"

#include <gtest/gtest.h>

#include "compiler/fusion_check.h"
#include "hlo/text.h"
#include "hlo/verify.h"
#include "interp/interp.h"
#include "interp/random_inputs.h"
#include "pass/random_module.h"
#include "tensor/compare.h"

namespace heddle::fuse {
namespace {

using tensor::Literal;

void expect_close(const Literal& got, const Literal& want, const std::string& what) {
  if (want.shape().is_tuple()) {
    for (size_t i = 0; i < want.elements().size(); ++i)
      expect_close(got.elements()[i], want.elements()[i], what);
    return;
  }
  tensor::Tolerance tolerance = tensor::derived_tolerance(want.type(), 4096);
  tolerance.relative_to_max = tolerance.absolute = tolerance.relative;
  auto comparison = tensor::compare(got, want, tolerance);
  EXPECT_TRUE(comparison.equal) << comparison.describe() << "\n" << what;
}

void check_module(const hlo::Module& module, const target::Target& target, Mode mode,
                  uint64_t seed) {
  std::unique_ptr<hlo::Module> fused = module.clone();
  auto changed = fuse(fused.get(), target, mode);
  ASSERT_TRUE(changed.has_value());
  auto verified = hlo::verify(*fused);
  ASSERT_TRUE(verified.has_value()) << verified.error().message << hlo::to_string(module);
  std::vector<Literal> arguments = interp::random_arguments(module, seed);
  auto want = interp::evaluate(module, arguments);
  ASSERT_TRUE(want.has_value()) << want.error().message;
  auto got = interp::evaluate(*fused, arguments);
  ASSERT_TRUE(got.has_value()) << got.error().message;
  expect_close(*got, *want, hlo::to_string(module));
  for (const hlo::Instr* instr : fused->entry()->instrs()) {
    if (!instr->is(hlo::Opcode::fusion)) continue;
    hlo::Module alone("fusion");
    alone.set_entry(alone.clone_computation(*instr->called()[0]));
    auto check = compiler::check_fusion(alone, target, seed, 4096);
    EXPECT_EQ(check.failure, "") << "seed " << seed << "\n" << hlo::to_string(alone) << check.text;
  }
}

TEST(FuseTest, RandomModulesComputeTheSame) {
  auto target = target::find_target("icelake");
  ASSERT_TRUE(target.has_value());
  for (uint64_t seed = 0; seed < 150; ++seed) {
    auto module = pass::random_module(seed);
    check_module(*module, *target, Mode::greedy, seed);
    if (seed % 4 == 0) check_module(*module, *target, Mode::off, seed);
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace heddle::fuse
