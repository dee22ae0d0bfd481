#include "fuse/placed_facts.h"

#include <gtest/gtest.h>

#include "cost/traffic.h"
#include "hlo/text.h"
#include "schedule/place.h"

namespace heddle::fuse {
namespace {

// The same layer twice, and pairs that cannot be one kernel.
constexpr const char* kModule = R"(HloModule m
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  x = f32[64,128] parameter(0)
  y = f32[64,128] parameter(1)
  w = f32[128,32] parameter(2)
  zero = f32[] constant(0)
  first = f32[64] reduce(x, zero), dimensions={1}, to_apply=sum
  first_wide = f32[64,128] broadcast(first), dimensions={0}
  second = f32[64] reduce(y, zero), dimensions={1}, to_apply=sum
  second_wide = f32[64,128] broadcast(second), dimensions={0}
  third = f32[64,32] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  third_sum = f32[64] reduce(third, zero), dimensions={1}, to_apply=sum
  fourth = f32[64,32] dot(y, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  fourth_sum = f32[64] reduce(fourth, zero), dimensions={1}, to_apply=sum
  ROOT all = (f32[64,128], f32[64,128], f32[64], f32[64]) tuple(first_wide, second_wide, third_sum, fourth_sum)
})";

TEST(placed_facts, EqualSetsAreToldApartByTheirNamesOnly) {
  const auto module = hlo::parse_module(kModule);
  ASSERT_TRUE(module) << module.error().message;
  const target::Target target = *target::find_target("icelake");
  std::unordered_map<std::string, Instr*> by_name;
  for (Instr* instr : (*module)->entry()->instrs()) by_name[instr->name()] = instr;
  PlacedFacts facts(target, /*with_traffic=*/true);
  int refused = 0;
  const std::vector<std::vector<const char*>> sets = {
      {"first", "first_wide"},  {"second", "second_wide"},       {"third", "third_sum"},
      {"fourth", "fourth_sum"}, {"first_wide", "third_sum"},     {"second_wide", "fourth_sum"},
      {"third", "third_sum"},   {"first", "third", "third_sum"}, {"second", "fourth", "fourth_sum"},
  };
  for (const auto& names : sets) {
    std::vector<Instr*> members;
    for (const char* name : names) members.push_back(by_name.at(name));
    auto leaves = [&](const Instr* instr) { return instr == members.back() || names.size() == 3; };
    const Facts known = facts.of(members, leaves);
    const stage::PlacedFusion placed = schedule::place(members_of(members, leaves), target);
    EXPECT_EQ(known.decision.code(), placed.decision.code());
    EXPECT_EQ(known.decision.reason(), placed.decision.reason());
    refused += !known.decision;
    if (!known.decision) continue;
    EXPECT_EQ(known.stages, placed.graph.stages.size());
    EXPECT_EQ(known.is_template, stage::is_template(placed));
    EXPECT_EQ(known.traffic_ns, cost::traffic_ns(placed, target));
  }
  EXPECT_GT(refused, 1);
  EXPECT_LT(refused, static_cast<int>(sets.size()));
}

}  // namespace
}  // namespace heddle::fuse
