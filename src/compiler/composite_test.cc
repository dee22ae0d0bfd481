// Fusions of fusions: independent kernels as groups of a phase, dependent ones as phases.
#include <gtest/gtest.h>

#include "compiler/compiler.h"
#include "compiler/fusion_test_util.h"
#include "hlo/join.h"

namespace heddle::compiler {
namespace {

constexpr const char* kSum =
    "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"
    "max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }\n";

std::unique_ptr<hlo::Module> fused(const std::string& entry) {
  auto target = target::find_target("spr");
  auto module = fuse_only(parsed(std::string("HloModule m\n") + kSum + "ENTRY e {\n" + entry + "}"),
                          *target, {});
  EXPECT_TRUE(module) << (module ? "" : module.error().message);
  return std::move(*module);
}

std::vector<const hlo::Instr*> fusions(const hlo::Module& module) {
  std::vector<const hlo::Instr*> found;
  for (const hlo::Instr* instr : module.entry()->instrs())
    if (instr->is(hlo::Opcode::fusion)) found.push_back(instr);
  return found;
}

// The module is one fusion of phases, and its kernel computes what the module says.
FusionCheck proved(const std::unique_ptr<hlo::Module>& module) {
  const std::vector<const hlo::Instr*> found = fusions(*module);
  if (found.size() != 1 || hlo::join_of(*found[0]) != hlo::Join::phases) {
    ADD_FAILURE() << hlo::to_string(*module);
    return {};
  }
  hlo::Module alone("fusion");
  alone.set_entry(alone.clone_computation(*found[0]->called()[0]));
  FusionCheck check =
      check_fusion(alone, *target::find_target("spr"), 3, 2000, {}, hlo::Join::phases);
  EXPECT_EQ(check.failure, "") << check.text;
  return check;
}

TEST(composite, SumsAlongDifferentDigitsShareAPhase) {
  const FusionCheck made =
      proved(fused("x = f32[19,43] parameter(0) z = f32[] constant(0)\n"
                   "a = f32[43] reduce(x, z), dimensions={0}, to_apply=sum\n"
                   "b = f32[19] reduce(x, z), dimensions={1}, to_apply=max\n"
                   "ROOT t = tuple(a, b)\n"));
  EXPECT_EQ(made.kernel.phases.size(), 1u);
  EXPECT_EQ(made.kernel.phases[0].groups.size(), 2u);
}

TEST(composite, WhatReadsAnotherPartStandsInALaterPhase) {
  const FusionCheck made = proved(parsed(std::string("HloModule m\n") + kSum + R"(
first {
  p = f32[19,43] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[43] reduce(p, z), dimensions={0}, to_apply=max
}
second {
  p = f32[19,43] parameter(0)
  q = f32[1,43] parameter(1)
  r = f32[43] reshape(q)
  b = f32[19,43] broadcast(r), dimensions={1}
  ROOT s = f32[19,43] subtract(p, b)
}
both {
  p = f32[19,43] parameter(0)
  a = f32[43] fusion(p), kind=kLoop, calls=first
  v = f32[1,43] reshape(a)
  ROOT b = f32[19,43] fusion(p, v), kind=kLoop, calls=second
}
ENTRY e {
  x = f32[19,43] parameter(0)
  f = f32[19,43] fusion(x), kind=kLoop, calls=both, heddle_join=phases
  ROOT t = (f32[19,43]) tuple(f)
})"));
  EXPECT_EQ(made.kernel.phases.size(), 2u);
  // The first part's result is in a workspace; the second part overwrites the input of both.
  EXPECT_EQ(made.workspace_bytes, std::vector<int64_t>{43 * 4});
  EXPECT_EQ(made.in_place, std::vector<int>{0});
}

TEST(composite, TakesWhatCanStandAnywhere) {
  const FusionCheck made =
      proved(fused("x = f32[5,7] parameter(0) y = f32[3,130] parameter(1) z = f32[] constant(0)\n"
                   "a = f32[5] reduce(x, z), dimensions={1}, to_apply=max\n"
                   "ROOT t = tuple(a, exponential(y))\n"));
  EXPECT_EQ(made.kernel.phases.size(), 1u);
}

TEST(composite, OverwritesWhatNoOtherPartReads) {
  const FusionCheck made =
      proved(fused("x = f32[5,7] parameter(0) y = f32[3,130] parameter(1) z = f32[] constant(0)\n"
                   "a = f32[7] reduce(x, z), dimensions={0}, to_apply=max\n"
                   "b = f32[5] reduce(x, z), dimensions={1}, to_apply=max\n"
                   "ROOT t = tuple(a, exponential(y), b, negate(x))\n"));
  // exponential(y) overwrites y; x has several readers in the same phase.
  int overwritten = 0;
  for (size_t o = 0; o < made.in_place.size(); ++o) {
    if (made.in_place[o] < 0) continue;
    ++overwritten;
    EXPECT_EQ(made.kernel.buffers[static_cast<size_t>(made.in_place[o])].extents[0], 390);
  }
  EXPECT_LE(overwritten, 1);
}

}  // namespace
}  // namespace heddle::compiler
