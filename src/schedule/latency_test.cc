// Predicted times of placed kernels: figures by hand for named targets, and what must hold for all
// of them.
#include <gtest/gtest.h>

#include "base/check.h"
#include "cost/body_cycles.h"
#include "cost/delta.h"
#include "cost/latency.h"
#include "cost/operator_cycles.h"
#include "hlo/text.h"
#include "schedule/place.h"

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

const char* kSum =
    "HloModule m\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
    "  ROOT c = f32[] add(a, b)\n}\n";

Latency latency_of(const std::string& body, const target::Target& target) {
  const std::unique_ptr<hlo::Module> module = parse(kSum + body);
  const stage::PlacedFusion placed = schedule::place(*module->entry(), target);
  HEDDLE_CHECK(static_cast<bool>(placed.decision), "{}", placed.decision.reason());
  return latency(placed, target);
}

std::string softmax(int64_t rows, int64_t columns) {
  return fmt::format(R"(biggest {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}}
ENTRY e {{
  x = f32[{0},{1}] parameter(0)
  least = f32[] constant(-inf)
  zero = f32[] constant(0)
  m = f32[{0}] reduce(x, least), dimensions={{1}}, to_apply=biggest
  mm = f32[{0},{1}] broadcast(m), dimensions={{0}}
  t = f32[{0},{1}] subtract(x, mm)
  p = f32[{0},{1}] exponential(t)
  s = f32[{0}] reduce(p, zero), dimensions={{1}}, to_apply=sum
  ss = f32[{0},{1}] broadcast(s), dimensions={{0}}
  ROOT y = f32[{0},{1}] divide(p, ss)
}})",
                     rows, columns);
}

std::string scaled(int64_t elems) {
  return fmt::format(R"(ENTRY e {{
  x = f32[{0}] parameter(0)
  y = f32[{0}] parameter(1)
  ROOT s = f32[{0}] add(x, y)
}})",
                     elems);
}

// Exponentials that are all live when their sum is known: it is multiplied by each of them.
std::string many_alive(int count) {
  std::string body = "ENTRY e {\n  x = f32[4096] parameter(0)\n", last = "x";
  for (int i = 0; i < count; ++i)
    body += fmt::format("  a{} = f32[4096] parameter({})\n  e{} = f32[4096] exponential(a{})\n", i,
                        i + 1, i, i);
  for (const std::string op : {"add", "multiply"})
    for (int i = 0; i < count; ++i) {
      const bool root = op == "multiply" && i == count - 1;
      const std::string next = fmt::format("{}{}", op, i);
      body += fmt::format("  {}{} = f32[4096] {}({}, e{})\n", root ? "ROOT " : "", next, op, last,
                          count - 1 - i);
      last = next;
    }
  return body + "}";
}

// spr, one core: 48 KiB at 340 bytes/ns, 2 MiB at 77, 260 MiB at 27 (two cores share it: half
// counts), memory at 17.
// Serial: 256 vectors of two loads, an addition beside them and a store, and one round.
TEST(LatencyTest, HandComputedMap) {
  const target::Target spr = target_of("spr");
  const Latency got = latency_of(scaled(4096), spr);
  EXPECT_TRUE(got.serial);
  ASSERT_EQ(got.phases.size(), 1u);
  EXPECT_EQ(got.call_ns, 50);
  EXPECT_EQ(got.bytes, 3 * 16384);
  const double moved =
      3 * (12288 / 340.0 + (16384 - 12288) / (49152.0 - 12288) * (49152 / 77.0 - 12288 / 340.0));
  EXPECT_NEAR(got.moved_ns, moved, 1e-6);
  const double cycles = 256 * (0.5 + 0.5 + 1) + 6;
  EXPECT_NEAR(got.compute_ns, cycles / 2.9, 1e-6);
  EXPECT_NEAR(got.ns, 50 + overlapped_ns(got.compute_ns, got.moved_ns), 1e-6);
  EXPECT_EQ(got.registers, 2);
  EXPECT_EQ(got.spilled, 0);
}

// Only beyond the caches: there a copy's stores overlap its reads.
TEST(LatencyTest, WhatIsOnlyReadMayComeSlower) {
  target::Target spr = target_of("spr");
  const double near = 524288, full = 2.0 * static_cast<double>(spr.caches[2].bytes);
  EXPECT_EQ(transfer_ns(Transition::read, full, 1, spr),
            transfer_ns(Transition::memory_reg, full, 1, spr));
  spr.memory_read_bytes_per_ns = 10;
  EXPECT_NEAR(transfer_ns(Transition::read, full, 1, spr), full / 10, 1);
  EXPECT_EQ(transfer_ns(Transition::read, near, 1, spr),
            transfer_ns(Transition::memory_reg, near, 1, spr));
  // A sum of 256 Mi numbers reads 1 GiB; a copy of 128 Mi reads half of it and writes as much.
  const std::string sum =
      "ENTRY e {\n  x = f32[262144,1024] parameter(0)\n  z = f32[] constant(0)\n"
      "  ROOT s = f32[262144] reduce(x, z), dimensions={1}, to_apply=sum\n}";
  const std::string copy =
      "ENTRY e {\n  x = f32[134217728] parameter(0)\n  ROOT y = f32[134217728] negate(x)\n}";
  EXPECT_GT(latency_of(sum, spr).moved_ns, 1.3 * latency_of(copy, spr).moved_ns);
  spr.memory_read_bytes_per_ns = 0;
  EXPECT_NEAR(latency_of(sum, spr).moved_ns / latency_of(copy, spr).moved_ns, 1, 0.05);
}

// A row of 4 MiB fits no second cache: the fused kernel pays for going through the third one.
TEST(LatencyTest, DeltaHasThePenaltyOfLongRows) {
  const target::Target spr = target_of("spr");
  const DeltaEvaluator delta(spr);
  auto work = [&](int64_t rows, int64_t columns) {
    const std::unique_ptr<hlo::Module> module = parse(kSum + softmax(rows, columns));
    Work work;
    for (const hlo::Instr* instr : module->entry()->instrs())
      if (!instr->is(hlo::Opcode::parameter) && !instr->is(hlo::Opcode::constant))
        delta.add_operator(*instr, &work);
    for (int i = 0; i < 2; ++i) delta.add_array(4.0 * static_cast<double>(rows * columns), &work);
    return work;
  };
  const Work shorter = work(1024, 1024), longer = work(1, 1048576);
  EXPECT_EQ(shorter.scratch_bytes, 4096);
  EXPECT_EQ(longer.scratch_bytes, 4194304);
  EXPECT_GT(delta.kernel_ns(longer), delta.kernel_ns(shorter) * 1.1);
  // On a GPU scratch costs occupancy.
  const target::Target sm_90 = target_of("sm_90");
  const DeltaEvaluator on_gpu(sm_90);
  Work crowded = shorter;
  crowded.scratch_bytes = 200000;
  EXPECT_GT(on_gpu.kernel_ns(crowded), on_gpu.kernel_ns(shorter));
}

// 64 rows on both cores: a row's maximum, then exponentials (kept in scratch) and their sum, then
// the quotients.
TEST(LatencyTest, HandComputedSoftmax) {
  const target::Target spr = target_of("spr");
  const Latency got = latency_of(softmax(64, 512), spr);
  EXPECT_FALSE(got.serial);
  ASSERT_EQ(got.phases.size(), 1u);
  EXPECT_EQ(got.phases[0].tasks, 64);
  EXPECT_EQ(got.phases[0].waves, 32);
  EXPECT_EQ(got.call_ns, 50 + 250);
  EXPECT_EQ(got.spilled, 0);
  EXPECT_EQ(got.scratch_bytes, 512 * 4);
  const double vectors = 64 * 512 / 16.0, rounds = 64;
  const double lanes_meet = rounds * 3 * 4;  // 16 lanes in four steps
  const double enter = rounds * 6;           // the loops of a row
  // Loads and stores overlap with the arithmetic.
  // A load; a maximum.
  const double maximum = vectors * std::max(0.5, 1.5) + lanes_meet + enter;
  // A load and a store; a subtraction and the faster exponential. Then a load; an addition.
  const double sum =
      vectors * std::max(0.5 + 1, 0.5 + 4) + vectors * std::max(0.5, 0.5) + lanes_meet + enter;
  // A load and a store; a division.
  const double quotient = vectors * std::max(0.5 + 1, 10.0) + enter;
  // Each row's scratch is written and read in the first cache.
  const double scratch = 64 * 2 * 2048 / 340.0;
  EXPECT_NEAR(got.compute_ns, ((maximum + sum + quotient) / 2.9 + scratch) / 2, 1e-6);
  // 128 KiB in and as much out: more than the first caches hold, so both come from the second ones.
  EXPECT_EQ(got.bytes, 2 * 131072);
  EXPECT_NEAR(got.moved_ns, 2 * 131072 / (2 * 77.0), 1e-6);
  EXPECT_NEAR(got.ns, 300 + got.compute_ns + 0.05 * got.moved_ns, 1e-6);
}

// The same on a GPU, with a block of 256 threads per row and two elements per thread: 64 blocks are
// fewer than the multiprocessors, so that nothing hides how long the threads wait.
TEST(LatencyTest, HandComputedGpuSoftmax) {
  const target::Target sm_90 = target_of("sm_90");
  const Latency got = latency_of(softmax(64, 512), sm_90);
  ASSERT_EQ(got.phases.size(), 1u);
  EXPECT_EQ(got.phases[0].tasks, 64);
  EXPECT_EQ(got.phases[0].waves, 1);
  // Two hold a thread's part of the row, others the loads in flight.
  EXPECT_EQ(got.registers, 28);
  EXPECT_EQ(got.occupancy, 1);
  EXPECT_EQ(got.call_ns, 2500);
  const double warps = 8, rounds = 64, vectors = rounds * 2;
  const double lanes_meet = rounds * 3 * 8, enter = rounds * 6;
  // An access moves two elements; a value of the row is in a register, a quarter of a load.
  const double load = 0.5, own = 0.25 / 2, store = 0.5;
  const double maximum = vectors * (load + 0.25) + lanes_meet + enter;
  const double sum =
      vectors * (load + 0.25 + 2.5) + rounds * own + vectors * (own + 0.25) + lanes_meet + enter;
  const double quotient = vectors * (own + 8 + store) + rounds * own + enter;
  const double of_warp = (maximum + sum + quotient) * warps / (64 * warps);
  EXPECT_NEAR(got.compute_ns, of_warp * 16 / 1.98, 1e-6);
  EXPECT_NEAR(got.moved_ns, 2 * 131072 / 7000.0,
              1e-6);  // from the cache shared by all multiprocessors
  // One load from the second cache, then two from near memory; and eight warps that synchronise
  // twice.
  const double meets = 150 + 8 * 12;
  EXPECT_NEAR(got.ns, 2500 + (300 + meets) + (30 + meets) + 30, 1e-6);
}

// A block is 256 threads of n registers; 65,536 registers limit the number of resident blocks.
TEST(LatencyTest, RegistersCostOccupancyOnGpus) {
  const Latency got = latency_of(many_alive(20), target_of("sm_90"));
  ASSERT_GT(got.registers, 96);  // 20 values, and four elements each of 21 inputs
  ASSERT_LE(got.registers, 128);
  EXPECT_EQ(got.occupancy, 2 * 256 / 2048.0);  // 2 blocks of 128 registers
}

// The same work in lanes of 8: twice the vectors.
TEST(LatencyTest, NarrowLanesTakeLonger) {
  target::Target spr = target_of("spr"), avx2 = target_of("avx2");
  spr.cores = avx2.cores = 1;
  const double wide = latency_of(softmax(64, 512), spr).compute_ns * spr.clock_ghz;
  const double narrow = latency_of(softmax(64, 512), avx2).compute_ns * avx2.clock_ghz;
  EXPECT_GT(narrow, 1.5 * wide);
}

TEST(LatencyTest, MoreWorkTakesLonger) {
  for (const std::string name : {"spr", "icelake", "avx2", "portable", "sm_80", "sm_90"}) {
    const target::Target target = target_of(name);
    double before = 0;
    for (int64_t rows : {8, 64, 512, 4096}) {
      const Latency got = latency_of(softmax(rows, 768), target);
      EXPECT_GT(got.ns, before) << name << " " << rows;
      before = got.ns;
      const Latency wider = latency_of(softmax(rows, 1536), target);
      EXPECT_GE(wider.ns, got.ns) << name << " " << rows;
    }
  }
}

// Five rows on two cores take as long as six. (Fewer would be cut.)
TEST(LatencyTest, WavesLeaveCoresIdle) {
  target::Target spr = target_of("spr");
  const Latency six = latency_of(softmax(6, 100000), spr);
  const Latency five = latency_of(softmax(5, 100000), spr);
  EXPECT_EQ(six.phases[0].waves, 3);
  EXPECT_EQ(five.phases[0].waves, 3);
  EXPECT_NEAR(five.compute_ns, six.compute_ns, 0.1 * six.compute_ns);
}

// If more values are live than there are registers, some are spilled.
TEST(LatencyTest, FewRegistersSpill) {
  target::Target target = target_of("avx2");
  const Latency got = latency_of(many_alive(20), target);
  EXPECT_GE(got.registers, 1);
  target.vector_registers = 2;
  const Latency few = latency_of(many_alive(20), target);
  EXPECT_EQ(few.spilled, few.registers - 2);
  EXPECT_GE(few.compute_ns, got.compute_ns);
}

TEST(LatencyTest, ScratchCostsOccupancyOnGpus) {
  const target::Target sm_90 = target_of("sm_90");
  const std::unique_ptr<hlo::Module> module = parse(kSum + softmax(4096, 1024));
  stage::PlacedFusion placed = schedule::place(*module->entry(), sm_90);
  ASSERT_TRUE(placed.decision) << placed.decision.reason();
  placed.placement.scratch_bytes = 4096;
  const Latency small = latency(placed, sm_90);
  placed.placement.scratch_bytes = 200000;
  const Latency large = latency(placed, sm_90);
  ASSERT_EQ(small.occupancy, 0.5);  // its rows are held in 32 registers a lane
  EXPECT_LT(large.occupancy, 0.25);
  EXPECT_GE(large.ns, small.ns);
}

TEST(BodyCycles, WhatDoesNotChangeAlongTheLanesCountsOnce) {
  const target::Target spr = target_of("spr");
  auto cycles = [&](const std::string& body) {
    const std::unique_ptr<hlo::Module> module = parse(kSum + body);
    const stage::PlacedFusion placed = schedule::place(*module->entry(), spr);
    HEDDLE_CHECK(placed.graph.stages.size() == 1);
    const stage::Stage& stage = placed.graph.stages[0];
    return body_cycles(stage, {static_cast<int>(stage.out.size()) - 1, 1, 0, true}, spr);
  };
  const std::string head =
      "ENTRY e {\n  x = f32[64,1024] parameter(0)\n  r = f32[64] parameter(1)\n";
  const double by_row = cycles(head + R"(  q = f32[64] negate(r)
  b = f32[64,1024] broadcast(q), dimensions={0}
  ROOT y = f32[64,1024] power(x, b)
})");
  const double by_element = cycles(head + R"(  q = f32[64,1024] negate(x)
  b = f32[64,1024] broadcast(r), dimensions={0}
  ROOT y = f32[64,1024] power(q, b)
})");
  const double negate = cost::operator_cycles(hlo::Opcode::negate, false, spr);
  EXPECT_NEAR(by_element - by_row, negate * (64 * 64 - 64), 1e-6);
  // Cheap operators take no longer than the loads and the store beside them.
  EXPECT_EQ(cycles(head + "  ROOT y = f32[64,1024] negate(x)\n}"), 64 * 64 * (0.5 + 1));
}
}  // namespace
}  // namespace heddle::cost
