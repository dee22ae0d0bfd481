// Covers that have no order, and the covers that replace them.
#include "fuse/rebuild.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "hlo/text.h"
#include "hlo/verify.h"

namespace heddle::fuse {
namespace {

// a and d could be one kernel, or b and c, but not both.
constexpr const char* kCrossed = R"(HloModule m
ENTRY e {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  a = f32[8] tanh(x)
  b = f32[8] tanh(y)
  c = f32[8] negate(a)
  d = f32[8] negate(b)
  ROOT t = (f32[8], f32[8]) tuple(c, d)
})";

struct Crossed {
  explicit Crossed(const char* text = kCrossed) : module(*hlo::parse_module(text)) {
    covered = covered_computations(*module).front();
  }
  Group* group(std::initializer_list<const char*> names) {
    owned.push_back(std::make_unique<Group>());
    for (const char* name : names) owned.back()->members.push_back(module->entry()->find(name));
    return owned.back().get();
  }
  int64_t fusions() const {
    return std::ranges::count_if(module->entry()->instrs(),
                                 [](const Instr* instr) { return instr->is(Opcode::fusion); });
  }
  std::unique_ptr<hlo::Module> module;
  Covered covered;
  std::vector<std::unique_ptr<Group>> owned;
};

TEST(Rebuild, ChangesNothingWhereKernelsWaitForOneAnother) {
  Crossed crossed;
  const std::string before = hlo::to_string(*crossed.module);
  const GroupCover cover{{crossed.group({"a", "d"}), crossed.group({"b", "c"})}, {}};
  const Decision decision = rebuild(crossed.covered, cover);
  EXPECT_EQ(decision.code(), kInternalCycle);
  EXPECT_EQ(hlo::to_string(*crossed.module), before);
}

TEST(Rebuild, TheNextCoverTakesTheFirstOnesPlace) {
  Crossed crossed;
  const GroupCover wrong{{crossed.group({"a", "d"}), crossed.group({"b", "c"})}, {}};
  const GroupCover right{{crossed.group({"a", "d"}), crossed.group({"b"}), crossed.group({"c"})},
                         {}};
  std::vector<Refusal> refusals;
  rebuild_first(crossed.covered, {&wrong, &right}, &refusals);
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0].code, kInternalCycle);
  EXPECT_TRUE(hlo::verify(*crossed.module));
  EXPECT_EQ(crossed.fusions(), 3);
}

TEST(Rebuild, AtLastEveryOperatorIsAKernel) {
  Crossed crossed;
  const GroupCover wrong{{crossed.group({"a", "d"}), crossed.group({"b", "c"})}, {}};
  std::vector<Refusal> refusals;
  rebuild_first(crossed.covered, {&wrong, &wrong}, &refusals);
  EXPECT_EQ(refusals.size(), 2u);
  EXPECT_TRUE(hlo::verify(*crossed.module));
  EXPECT_EQ(crossed.fusions(), 4);
}

// Control edges of operators become edges of their kernels, also through dead operators.
TEST(Rebuild, ControlEdgesLeadFromKernelToKernel) {
  Crossed edges(R"(HloModule m
ENTRY e {
  x = f32[8] parameter(0)
  a = f32[8] tanh(x)
  b = f32[8] negate(a)
  c = f32[8] abs(x), control-predecessors={a}
  d = f32[8] cosine(c)
  ROOT t = (f32[8], f32[8]) tuple(b, d)
})");
  ASSERT_TRUE(rebuild(edges.covered, {{edges.group({"a", "b"}), edges.group({"c", "d"})}, {}}));
  const Instr* second = edges.module->entry()->find("d");
  ASSERT_NE(second, nullptr);
  ASSERT_EQ(second->control_predecessors().size(), 1u);
  EXPECT_EQ(second->control_predecessors()[0]->name(), "b");
}

}  // namespace
}  // namespace heddle::fuse
