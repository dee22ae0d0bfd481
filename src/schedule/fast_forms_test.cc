#include "schedule/fast_forms.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "hlo/text.h"
#include "schedule/place.h"

namespace heddle::schedule {
namespace {

// Whether every operator of the kind, of which there is at least one, is the fast form.
bool is_fast(const std::string& body, hlo::Opcode opcode) {
  auto module = hlo::parse_module(
      "HloModule m\nENTRY e {\n  x = f32[4096] parameter(0)\n  one = f32[] constant(1)\n"
      "  ones = f32[4096] broadcast(one), dimensions={}\n" +
      body + "}\n");
  EXPECT_TRUE(module) << (module ? "" : module.error().message);
  const PlacedFusion placed = place(*(*module)->entry(), *target::find_target("icelake"));
  EXPECT_TRUE(placed.decision) << placed.decision.reason();
  int64_t all = 0, fast = 0;
  for (const Stage& stage : placed.graph.stages)
    for (const Node& node : stage.nodes)
      if (node.kind == Node::Kind::op && node.opcode == opcode) ++all, fast += node.fast;
  EXPECT_GT(all, 0);
  return fast == all;
}

// One is added to it, so that its last bits are lost.
TEST(FastForms, AnErfBehindWhichOneIsAdded) {
  EXPECT_TRUE(
      is_fast("  e = f32[4096] erf(x)\n  ROOT y = f32[4096] add(e, ones)\n", hlo::Opcode::erf));
  EXPECT_FALSE(
      is_fast("  e = f32[4096] erf(x)\n  ROOT y = f32[4096] add(e, x)\n", hlo::Opcode::erf));
}

TEST(FastForms, NotOfWhatIsAlsoAnOutput) {
  EXPECT_FALSE(
      is_fast("  e = f32[4096] erf(x)\n  y = f32[4096] add(e, ones)\n"
              "  ROOT t = (f32[4096], f32[4096]) tuple(y, e)\n",
              hlo::Opcode::erf));
}

}  // namespace
}  // namespace heddle::schedule
