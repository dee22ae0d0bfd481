// Figures by hand for named targets, and what must hold for all of them.
#include <gtest/gtest.h>

#include "base/check.h"
#include "cost/delta.h"
#include "cost/operator_cycles.h"
#include "cost/peak_memory.h"
#include "hlo/text.h"

namespace heddle::cost {
namespace {

target::Target target_of(const std::string& name) {
  auto target = target::find_target(name);
  HEDDLE_CHECK(target.has_value(), "{}", name);
  return *target;
}

std::unique_ptr<hlo::Module> parse(const std::string& text) {
  auto module = hlo::parse_module(text);
  HEDDLE_CHECK(module.has_value(), "{}", module.error().message);
  return std::move(*module);
}
// spr, one core: 48 KiB at 340 bytes/ns, 2 MiB at 77, 260 MiB at 27 (two cores share it: half
// counts), memory at 17.
TEST(Rates, KnotsOfTheCurve) {
  const target::Target spr = target_of("spr");
  const auto reg = Transition::memory_reg;
  EXPECT_EQ(transfer_ns(reg, 0, 1, spr), 0);
  EXPECT_NEAR(transfer_ns(reg, 12288, 1, spr), 12288 / 340.0, 1e-6);
  EXPECT_NEAR(transfer_ns(reg, 49152, 1, spr), 49152 / 77.0, 1e-6);
  // Half way between the two.
  EXPECT_NEAR(transfer_ns(reg, 30720, 1, spr), (12288 / 340.0 + 49152 / 77.0) / 2, 1e-6);
  EXPECT_NEAR(transfer_ns(reg, 524288, 1, spr), 524288 / 77.0, 1e-6);
  const double full = 272629760;
  EXPECT_NEAR(transfer_ns(reg, full, 1, spr), full / 17, 1);
  EXPECT_NEAR(transfer_ns(reg, 2 * full, 1, spr), 2 * full / 17, 1);
  // A tile comes from the first cache, or the second.
  EXPECT_NEAR(transfer_ns(Transition::near_reg, 4096, 1, spr), 4096 / 340.0, 1e-6);
  EXPECT_NEAR(transfer_ns(Transition::near_reg, 100000, 1, spr), 100000 / 77.0, 1e-6);
}

TEST(Rates, MoreBytesTakeNoLessAndMoreCoresNoMore) {
  for (const std::string& name : target::shipped_targets()) {
    const target::Target target = target_of(name);
    for (Transition transition :
         {Transition::memory_reg, Transition::memory_near, Transition::near_reg}) {
      double before = 0;
      for (double bytes = 64; bytes < 4e9; bytes *= 1.37) {
        const double ns = transfer_ns(transition, bytes, core_count(target), target);
        EXPECT_GE(ns, before) << name << " " << bytes;
        EXPECT_LE(ns, transfer_ns(transition, bytes, 1, target) * 1.0001) << name << " " << bytes;
        before = ns;
      }
    }
  }
}

TEST(Delta, HandComputed) {
  const target::Target spr = target_of("spr");
  const DeltaEvaluator delta(spr);
  const std::unique_ptr<hlo::Module> module = parse(R"(HloModule m
ENTRY e {
  x = f32[1024,1024] parameter(0)
  y = f32[1024,1024] parameter(1)
  s = f32[1024,1024] add(x, y)
  ROOT t = f32[1024,1024] multiply(s, x)
})");
  const hlo::Instr *sum = module->entry()->instrs()[2], *product = module->entry()->instrs()[3];
  // 4 MiB fill both cores' second caches: they come at the third one's rate, 2 x 27 bytes/ns.
  const double array = 4194304 / 54.0;
  EXPECT_NEAR(delta.array_ns(4194304), array, 1e-6);
  Work first, second, both;
  delta.add_operator(*sum, &first);
  for (int i = 0; i < 3; ++i) delta.add_array(4194304, &first);
  delta.add_operator(*product, &second);
  for (int i = 0; i < 3; ++i) delta.add_array(4194304, &second);
  delta.add_operator(*sum, &both);
  delta.add_operator(*product, &both);
  for (int i = 0; i < 3; ++i) delta.add_array(4194304, &both);
  // 1 Mi elements, 16 lanes, half a cycle, 2.9 GHz, two cores; hidden but for a twentieth.
  const double compute = 1048576 / 16.0 * 0.5 / 2.9 / 2;
  EXPECT_NEAR(delta.kernel_ns(first), 50 + 250 + 3 * array + 0.05 * compute, 1e-6);
  // Saved: a call, and the product's three arrays.
  EXPECT_NEAR(delta.kernel_ns(first) + delta.kernel_ns(second) - delta.kernel_ns(both),
              300 + 3 * array, 1e-6);
}

TEST(PeakMemory, ByHand) {
  // 0 -> 1 -> 2; 0 is read again by the last.
  const std::vector<SequenceStep> steps = {{{0}, {}}, {{1}, {0}}, {{2}, {1}}, {{3}, {0, 2}}};
  EXPECT_EQ(peak_bytes(steps, {100, 10, 1, 1}, {}), 111);
  EXPECT_EQ(peak_bytes(steps, {100, 10, 1, 1}, {1}), 112);
  EXPECT_EQ(peak_bytes({}, {}, {}), 0);
}

}  // namespace
}  // namespace heddle::cost
