// Custom calls, collectives, and refusals.
#include <gmock/gmock.h>

#include "interp/run_test_util.h"

namespace heddle::interp {
namespace {

using ::testing::ElementsAre;

TEST(CustomCall, AnnotationsGiveTheirOperandBack) {
  for (const char* target : {"Sharding", "annotate_device_placement", "xla.sdy.FuncResultSharding",
                             "MoveToDevice", "MoveToHost", "SPMDFullToShardShape"}) {
    EXPECT_EQ(run_op("custom-call", "s32[2]", {"s32[2] {1, 2}"},
                     std::string("custom_call_target=\"") + target + "\""),
              "{1, 2}")
        << target;
  }
}

TEST(CustomCall, OthersAreRefusedByName) {
  auto module = module_of(R"(
    x = s32[2] constant({1, 2})
    y = s32[2] custom-call(x), custom_call_target="lapack_sgetrf"
    z = s32[1] custom-call(y), custom_call_target="Sharding"
    ROOT r = s32[1] negate(z))");
  ASSERT_NE(module, nullptr);
  EXPECT_THAT(unsupported(*module),
              ElementsAre("custom-call lapack_sgetrf (y)", "custom-call Sharding (z)"));
  auto result = evaluate(*module, {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "custom-call lapack_sgetrf (y): the target is not known here");
}

TEST(CustomCall, DeadCodeIsNotAsked) {
  auto module = module_of(R"(
    x = s32[2] constant({1, 2})
    y = s32[2] custom-call(x), custom_call_target="dead"
    ROOT r = s32[2] negate(x))");
  ASSERT_NE(module, nullptr);
  EXPECT_THAT(unsupported(*module), ElementsAre());
  EXPECT_TRUE(evaluate(*module, {}));
}

const std::string kAdd =
    "add { a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT r = s32[] add(a, b) }\n";

TEST(Collectives, OfOneParticipantAreIdentities) {
  EXPECT_EQ(run(kAdd + R"(
    ENTRY e { x = s32[2] constant({1, 2})
              a = s32[2] all-reduce(x), replica_groups={{0},{1}}, to_apply=add
              b = s32[2] all-gather(a), dimensions={0}, replica_groups=[4,1]<=[4]
              c = s32[2] reduce-scatter(b), dimensions={0}, replica_groups={}, to_apply=add
              d = s32[2] collective-permute(c), source_target_pairs={{0,0}}
              f = (s32[2]) all-to-all(d), replica_groups={}
              g = s32[2] get-tuple-element(f), index=0
              h = s32[2] collective-permute(g), source_target_pairs={}
              p = u32[] partition-id()
              r = u32[] replica-id()
              ROOT t = (s32[2], s32[2], u32[], u32[]) tuple(g, h, p, r) })"),
            "({1, 2}, {0, 0}, 0, 0)");
}

TEST(Collectives, OfMoreAreRefused) {
  auto refused = [](const std::string& header, const std::string& collective) {
    auto module =
        hlo::parse_module("HloModule m" + header + "\n" + kAdd +
                          "ENTRY e { x = s32[2] constant({1, 2})\n ROOT c = " + collective + " }");
    EXPECT_TRUE(module) << module.error().message;
    return unsupported(**module);
  };
  EXPECT_THAT(refused("", "s32[2] all-reduce(x), replica_groups={{0,1}}, to_apply=add"),
              ElementsAre("all-reduce (c)"));
  EXPECT_THAT(refused(", replica_count=2", "s32[2] all-reduce(x), replica_groups={}, to_apply=add"),
              ElementsAre("all-reduce (c)"));
  EXPECT_THAT(refused("", "s32[4] all-gather(x), dimensions={0}, replica_groups=[2,2]<=[4]"),
              ElementsAre("all-gather (c)"));
  EXPECT_THAT(refused("", "s32[4] all-gather(x), dimensions={0}, replica_groups={}"),
              ElementsAre("all-gather (c)"));
  EXPECT_THAT(refused("", "s32[2] collective-permute(x), source_target_pairs={{0,1},{1,0}}"),
              ElementsAre("collective-permute (c)"));
}

}  // namespace
}  // namespace heddle::interp
