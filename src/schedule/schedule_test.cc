// Texts of schedules are read back; schedules made worse by hand are refused or cost more. What
// schedules the examples of stages.md have is in the .hlo files beside this one.
#include "stage/schedule.h"

#include <gtest/gtest.h>

#include "hlo/text.h"
#include "schedule/place.h"

namespace heddle::schedule {
namespace {

target::Target target(const char* name) { return *target::find_target(name); }

PlacedFusion place_text(const std::string& text, const char* target_name = "icelake") {
  auto module = hlo::parse_module(text);
  EXPECT_TRUE(module.has_value()) << (module ? "" : module.error().message);
  static std::vector<std::unique_ptr<hlo::Module>> kept;  // graphs point into them
  kept.push_back(std::move(*module));
  return place(*kept.back()->entry(), target(target_name));
}

constexpr const char* kLayerNorm = R"(HloModule m
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y) }
ENTRY layer_norm {
  x = f32[4096,768] parameter(0)
  gamma = f32[768] parameter(1)
  zero = f32[] constant(0)
  n = f32[] constant(0.0013020834)
  nb = f32[4096] broadcast(n), dimensions={}
  sum = f32[4096] reduce(x, zero), dimensions={1}, to_apply=add
  mean = f32[4096] multiply(sum, nb)
  meanb = f32[4096,768] broadcast(mean), dimensions={0}
  d = f32[4096,768] subtract(x, meanb)
  sq = f32[4096,768] multiply(d, d)
  vsum = f32[4096] reduce(sq, zero), dimensions={1}, to_apply=add
  var = f32[4096] multiply(vsum, nb)
  q = f32[4096] rsqrt(var)
  qb = f32[4096,768] broadcast(q), dimensions={0}
  gb = f32[4096,768] broadcast(gamma), dimensions={1}
  dq = f32[4096,768] multiply(d, qb)
  ROOT y = f32[4096,768] multiply(dq, gb)
})";

TEST(ScheduleTest, TextIsReadBack) {
  PlacedFusion placed = place_text(kLayerNorm);
  std::string text = to_string(placed.schedule, placed.graph);
  auto parsed = parse_schedule(text, placed.graph);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  EXPECT_EQ(to_string(*parsed, placed.graph), text);
  Placement again = place_values(placed.graph, *parsed, target("icelake"));
  EXPECT_TRUE(static_cast<bool>(again.decision));
  EXPECT_EQ(again.scratch_bytes, placed.placement.scratch_bytes);
  EXPECT_FALSE(parse_schedule(text.substr(0, text.size() / 2), placed.graph).has_value());
  auto unknown = parse_schedule("schedule a on b phase { group lanes 4 { z; } }", placed.graph);
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().message, "schedule, line 1: got ';', wanted a stage of the graph");
}

// If a task transposed whole pictures, its inputs would be gone from the first cache when the next
// sweep reads them: tasks of lines took 0.9 of the time.
TEST(ScheduleTest, WhatIsTurnedHasShortStrips) {
  auto module = hlo::parse_module(R"(HloModule norm
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

ENTRY main {
  x = f32[64,96,56,56] parameter(0)
  gamma = f32[96] parameter(1)
  beta = f32[96] parameter(2)
  h = f32[64,56,56,96] transpose(x), dimensions={0,2,3,1}
  zero = f32[] constant(0)
  width = f32[] constant(96)
  widths = f32[64,56,56] broadcast(width), dimensions={}
  total = f32[64,56,56] reduce(h, zero), dimensions={3}, to_apply=add
  mean = f32[64,56,56] divide(total, widths)
  means = f32[64,56,56,96] broadcast(mean), dimensions={0,1,2}
  centered = f32[64,56,56,96] subtract(h, means)
  squares = f32[64,56,56,96] multiply(centered, centered)
  square_total = f32[64,56,56] reduce(squares, zero), dimensions={3}, to_apply=add
  variance = f32[64,56,56] divide(square_total, widths)
  epsilon = f32[] constant(1e-6)
  epsilons = f32[64,56,56] broadcast(epsilon), dimensions={}
  variance_plus = f32[64,56,56] add(variance, epsilons)
  inverse = f32[64,56,56] rsqrt(variance_plus)
  inverses = f32[64,56,56,96] broadcast(inverse), dimensions={0,1,2}
  normal = f32[64,56,56,96] multiply(centered, inverses)
  gammas = f32[64,56,56,96] broadcast(gamma), dimensions={3}
  scaled = f32[64,56,56,96] multiply(normal, gammas)
  betas = f32[64,56,56,96] broadcast(beta), dimensions={3}
  ROOT y = f32[64,56,56,96] add(scaled, betas)
})");
  ASSERT_TRUE(module.has_value()) << module.error().message;
  target::Target target = *target::find_target("icelake");
  target.cores = 2;
  for (const int64_t first_cache : {32 << 10, 48 << 10}) {
    target.caches[0].bytes = first_cache;
    const PlacedFusion placed = place(*(*module)->entry(), target);
    ASSERT_TRUE(static_cast<bool>(placed.decision)) << placed.decision.reason();
    EXPECT_GT(placed.schedule.count_tasks(), 1000) << to_string(placed.schedule, placed.graph);
  }
}

TEST(ScheduleTest, BadSchedulesAreRefused) {
  PlacedFusion placed = place_text(kLayerNorm);
  auto code = [&](const std::string& text) {
    auto parsed = parse_schedule(text, placed.graph);
    EXPECT_TRUE(parsed.has_value()) << parsed.error().message;
    return place_values(placed.graph, *parsed, target("icelake")).decision.code();
  };
  // The mean's reader is outside the loop that computes it.
  EXPECT_EQ(code(R"(schedule bad on icelake phase { group lanes 16 {
    for t parallel y.d0 { sum : vector r1/64; mean; }
    for u parallel y.d0 { d & vsum : vector d1,r1/64; q; y : vector d1/16; } } })"),
            "other-block");
  // A reader precedes its producer.
  EXPECT_EQ(code(R"(schedule bad on icelake phase { group lanes 16 {
    for t parallel y.d0 { sum : vector r1/64; mean; d & vsum & y : vector d1,r1,d1/64; q; } } })"),
            "order");
  // A reader joined to a reduction whose loop it shares.
  EXPECT_EQ(code(R"(schedule bad on icelake phase { group lanes 16 {
    for t parallel y.d0 { sum & d : vector r1,d1/64; mean; vsum : vector r1/64; q; y : vector d1/16; } } })"),
            "order");
  // A whole matrix of intermediate values does not fit.
  EXPECT_EQ(code(R"(schedule bad on icelake phase { group lanes 16 {
    sum : serial d0 vector r1/64; mean : vector d0/16; d : serial d0 vector d1/16;
    vsum : serial d0 vector r1/64; q : vector d0/16; y : serial d0 vector d1/16; } })"),
            "space-full");
  EXPECT_EQ(
      code("schedule bad on icelake phase { group lanes 16 { y : serial d0 vector d1/16; } }"),
      "missing");
}

TEST(ScheduleTest, RecomputeIsCounted) {
  // One task per element of the row: each would compute the row's sums.
  PlacedFusion placed = place_text(kLayerNorm);
  auto parsed = parse_schedule(R"(schedule worse on icelake phase { group lanes 16 {
    for r parallel y.d0 { for c parallel y.d1/96 {
      sum : vector r1/64; mean; d : vector d1/16; vsum : vector r1/64; q; y : vector d1/16; } } } })",
                               placed.graph);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  Placement placement = place_values(placed.graph, *parsed, target("icelake"));
  ASSERT_TRUE(static_cast<bool>(placement.decision)) << placement.decision.reason();
  EXPECT_EQ(placement.stages[0].recompute, 8.0);
}

TEST(ScheduleTest, RefusalsNameTheirReason) {
  PlacedFusion complex = place_text(R"(HloModule m
ENTRY e { a = c64[4] parameter(0)
  ROOT b = c64[4] add(a, a) })");
  EXPECT_EQ(complex.decision.code(), "type");
  PlacedFusion sort = place_text(R"(HloModule m
lt { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = pred[] compare(x, y), direction=LT }
ENTRY e { a = f32[4] parameter(0)
  ROOT b = f32[4] sort(a), dimensions={0}, to_apply=lt })");
  EXPECT_EQ(sort.decision.code(), "no-kernel");
}

}  // namespace
}  // namespace heddle::schedule
