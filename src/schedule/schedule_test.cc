// The worked examples of stages.md that are built (4.1 layer norm, 4.2 softmax, 4.6 GEMM): the
// schedule's text for named targets, what it derives, and refusals with their codes.
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

TEST(ScheduleTest, LayerNormIsRowsOfJoinedStages) {
  PlacedFusion placed = place_text(kLayerNorm);
  ASSERT_TRUE(static_cast<bool>(placed.decision)) << placed.decision.reason();
  EXPECT_EQ(to_string(placed.schedule, placed.graph), R"(schedule layer_norm on icelake
phase {
  group lanes 16 {
    for t0 parallel y.d0 {
      sum : vector r1/64;
      mean;
      d & vsum : vector d1,r1/64;
      q;
      y : vector d1/16;
    }
  }
}
)");
  // One value a row for the sums, a row for d; nothing is computed twice.
  for (const Placed& stage : placed.placement.stages) EXPECT_EQ(stage.recompute, 1.0);
  EXPECT_EQ(placed.placement.stages[0].space, stage::Space::reg);
  EXPECT_EQ(placed.placement.stages[2].space, stage::Space::scratch);
  EXPECT_EQ(placed.placement.scratch_bytes, 768 * 4);
}

TEST(ScheduleTest, LanesFollowTheTarget) {
  EXPECT_EQ(place_text(kLayerNorm, "avx2").schedule.phases[0][0].lanes, 8);
  EXPECT_EQ(place_text(kLayerNorm, "portable").schedule.phases[0][0].lanes, 4);
}

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

// Schedules made worse by hand are refused by footprint inference, with a code.
TEST(ScheduleTest, BadSchedulesAreRefused) {
  PlacedFusion placed = place_text(kLayerNorm);
  auto code = [&](const std::string& text) {
    auto parsed = parse_schedule(text, placed.graph);
    EXPECT_TRUE(parsed.has_value()) << parsed.error().message;
    return place_values(placed.graph, *parsed, target("icelake")).decision.code();
  };
  // The mean's reader stands outside the loop that computes it.
  EXPECT_EQ(code(R"(schedule bad on icelake phase { group lanes 16 {
    for t parallel y.d0 { sum : vector r1/64; mean; }
    for u parallel y.d0 { d & vsum : vector d1,r1/64; q; y : vector d1/16; } } })"),
            "other-block");
  // A reader stands before what it reads.
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
  // One task an element of the row: the row's sums would be computed by each.
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

TEST(ScheduleTest, GemmTakesMapsThatFollowItsTiles) {
  PlacedFusion placed = place_text(R"(HloModule m
ENTRY e {
  a = f32[128,768] parameter(0)
  packed = f32[24,768,32] parameter(1)
  bias = f32[768] parameter(2)
  t = f32[768,24,32] transpose(packed), dimensions={1,0,2}
  b = f32[768,768] reshape(t)
  d = f32[128,768] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  bb = f32[128,768] broadcast(bias), dimensions={1}
  s = f32[128,768] add(d, bb)
  h = f32[128,12,64] reshape(s)
  ROOT r = f32[12,128,64] transpose(h), dimensions={1,0,2}
})");
  ASSERT_TRUE(static_cast<bool>(placed.decision)) << placed.decision.reason();
  const Row& row = std::get<Row>(placed.schedule.nodes[0]);
  ASSERT_TRUE(row.gemm() != nullptr);
  EXPECT_EQ(row.gemm()->record.nv * row.gemm()->record.lanes, 32);
  EXPECT_EQ(row.joined.size(), 2u);
  std::string text = to_string(placed.schedule, placed.graph);
  auto parsed = parse_schedule(text, placed.graph);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  EXPECT_EQ(std::get<Row>(parsed->nodes[0]).gemm()->record, row.gemm()->record);
}

// Over a row: a chain. Over all: no row has what it needs.
TEST(ScheduleTest, ReductionsBehindAProduct) {
  auto reduced = [](const char* result, const char* dimensions) {
    return place_text(fmt::format(R"(HloModule m
max {{ x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] maximum(x, y) }}
ENTRY e {{
  a = f32[128,64] parameter(0)
  b = f32[64,128] parameter(1)
  d = f32[128,128] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  c = f32[] constant(-inf)
  ROOT m = {} reduce(d, c), dimensions={{{}}}, to_apply=max
}})",
                                  result, dimensions));
  };
  EXPECT_TRUE(is_chain(reduced("f32[128]", "1")));
  EXPECT_EQ(reduced("f32[]", "0,1").decision.code(), "gemm-epilogue");
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

// Parts of one array that go round are one read, modulo the extent.
TEST(ScheduleTest, RolledPartsAreOneRead) {
  PlacedFusion placed = place_text(R"(HloModule m
ENTRY roll {
  x = f32[56,96] parameter(0)
  e = f32[56,96] exponential(x)
  tail = f32[53,96] slice(e), slice={[3:56], [0:96]}
  head = f32[3,96] slice(e), slice={[0:3], [0:96]}
  ROOT rolled = f32[56,96] concatenate(tail, head), dimensions={0}
})");
  ASSERT_TRUE(static_cast<bool>(placed.decision)) << placed.decision.reason();
  int loads = 0;
  for (const Stage& stage : placed.graph.stages)
    for (const Load& load : stage.loads) {
      ++loads;
      EXPECT_TRUE(load.guards.empty());
      EXPECT_EQ(index::to_string(load.coordinates.at(0)), "d1 + ((d0 + 3) mod 56)*96");
    }
  EXPECT_EQ(loads, 1);
}

}  // namespace
}  // namespace heddle::schedule
