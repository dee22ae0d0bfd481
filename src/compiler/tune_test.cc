// Samples compute what the fusion computes, whatever the record.
#include "compiler/tune.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/check.h"
#include "hlo/text.h"
#include "schedule/place.h"
#include "schedule/tuning.h"
#include "schedule/winograd_tuning.h"

namespace heddle::compiler {
namespace {

constexpr const char* kNet = R"(HloModule net
ENTRY e {
  x = f32[64,96] parameter(0)
  w0 = f32[96,96] constant({...})
  w1 = f32[96,96] constant({...})
  w2 = f32[96,40] constant({...})
  b = f32[96] parameter(1)
  bias = f32[64,96] broadcast(b), dimensions={1}
  d0 = f32[64,96] dot(x, w0), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  a0 = f32[64,96] add(d0, bias)
  t0 = f32[64,96] tanh(a0)
  d1 = f32[64,96] dot(t0, w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  a1 = f32[64,96] add(d1, bias)
  ROOT d2 = f32[64,40] dot(a1, w2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)";

const Options kProductsAlone = {.fuse = Fuse::greedy};

TEST(Tune, TasksAreDistinctShapes) {
  auto module = hlo::parse_module(kNet);
  ASSERT_TRUE(module) << module.error().message;
  auto target = target::find_target("icelake");
  auto tasks = find_tune_tasks(std::move(*module), *target, kProductsAlone, 6);
  ASSERT_TRUE(tasks) << tasks.error().message;
  ASSERT_EQ(tasks->size(), 2u);
  EXPECT_EQ((*tasks)[0].key, "v4 dot 64x96x96 batch 1");  // the heaviest first
  EXPECT_EQ((*tasks)[0].uses, 2);
  EXPECT_EQ((*tasks)[0].flops, 2.0 * 64 * 96 * 96);
  EXPECT_EQ((*tasks)[1].key, "v4 dot 64x40x96 batch 1");
  for (const TuneTask& task : *tasks) {
    EXPECT_EQ(task.records.size(), 6u);
    EXPECT_GE(task.candidates, 20);  // tens of them, of which the best few are measured
  }
}

// Mixed precision by cost is measured as whole programs, and the record decides.
TEST(Tune, MixedPrecisionIsMeasuredAgainstF32) {
  auto module = hlo::parse_module(R"(HloModule net
ENTRY e {
  x = f32[256,512] parameter(0)
  w = f32[512,512] constant({...})
  ROOT d = f32[256,512] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)");
  ASSERT_TRUE(module) << module.error().message;
  auto target = target::find_target("zen5");
  Options options = kProductsAlone;
  options.amp = Amp::automatic;
  auto tasks = find_tune_tasks((*module)->clone(), *target, options, 2);
  ASSERT_TRUE(tasks) << tasks.error().message;
  const TuneTask& task = tasks->back();
  EXPECT_TRUE(task.whole);
  ASSERT_EQ(task.records, (std::vector<std::string>{"f32", "bf16"}));
  for (const std::string& record : task.records) {
    Report report;
    auto fused =
        fuse_only(task.sample->clone(), with_record(*target, task.key, record), options, &report);
    ASSERT_TRUE(fused) << fused.error().message;
    EXPECT_TRUE(report.mixed->run->measured);
    EXPECT_EQ(report.mixed->products, record == "f32" ? 0 : 1);
    const bool has_bf16 = hlo::to_string(**fused).find("bf16") != std::string::npos;
    EXPECT_EQ(has_bf16, record != "f32");
  }
  options.amp = Amp::off;
  EXPECT_FALSE(find_tune_tasks(std::move(*module), *target, options, 2)->back().whole);
}

// Rows of products that may be one kernel are measured both ways, and the record decides.
TEST(Tune, ChainsAreMeasuredAgainstTheirParts) {
  const std::string text = R"(HloModule net
ENTRY e {
  x = f32[8192,24] parameter(0)
  w0 = f32[24,40] constant({...})
  w1 = f32[40,16] constant({...})
  d0 = f32[8192,40] dot(x, w0), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t0 = f32[8192,40] tanh(d0)
  ROOT d1 = f32[8192,16] dot(t0, w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)";
  auto module = hlo::parse_module(text);
  ASSERT_TRUE(module) << module.error().message;
  auto target = target::find_target("icelake");
  auto tasks = find_tune_tasks(std::move(*module), *target, {}, 6);
  ASSERT_TRUE(tasks) << tasks.error().message;
  ASSERT_EQ(tasks->size(), 3u);
  const TuneTask& task = tasks->back();
  EXPECT_NE(task.key.find(" dot 8192x40x24 batch 1 then 16"), std::string::npos) << task.key;
  EXPECT_EQ(task.records, (std::vector<std::string>{"chain", "apart"}));
  for (const std::string& record : task.records) {
    auto fused = fuse_only(task.sample->clone(), with_record(*target, task.key, record), {});
    ASSERT_TRUE(fused) << fused.error().message;
    int with_dot = 0;
    for (const hlo::Instr* instr : (*fused)->entry()->instrs()) {
      if (!instr->is(hlo::Opcode::fusion)) continue;
      const auto members = instr->called()[0]->instrs();
      with_dot += std::any_of(members.begin(), members.end(), [](const hlo::Instr* member) {
        return member->is(hlo::Opcode::dot);
      });
    }
    EXPECT_EQ(with_dot, record == "chain" ? 1 : 2) << hlo::to_string(**fused);
  }
}

// So are a convolution and the pool after it.
TEST(Tune, PoolsAreMeasuredBehindTheirConvolution) {
  const std::string text = R"(HloModule net
most { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b) }
ENTRY e {
  x = f32[1,112,112,3] parameter(0)
  w = f32[3,3,3,64] constant({...})
  start = f32[] constant(-inf)
  c = f32[1,112,112,64] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  t = f32[1,112,112,64] tanh(c)
  ROOT p = f32[1,56,56,64] reduce-window(t, start), window={size=1x2x2x1 stride=1x2x2x1}, to_apply=most
}
)";
  auto module = hlo::parse_module(text);
  ASSERT_TRUE(module) << module.error().message;
  auto target = target::find_target("icelake");
  auto tasks = find_tune_tasks(std::move(*module), *target, {}, 6);
  ASSERT_TRUE(tasks) << tasks.error().message;
  ASSERT_EQ(tasks->size(), 2u);
  for (const TuneTask& task : *tasks) {
    if (task.key.find(" then pool") == std::string::npos) continue;
    EXPECT_NE(task.key.find(" then pool 2 2 to 56 56 64"), std::string::npos) << task.key;
    for (const std::string& record : task.records) {
      auto fused = fuse_only(task.sample->clone(), with_record(*target, task.key, record), {});
      ASSERT_TRUE(fused) << fused.error().message;
      int with_pool = 0, with_both = 0;
      for (const hlo::Instr* instr : (*fused)->entry()->instrs()) {
        if (!instr->is(hlo::Opcode::fusion)) continue;
        auto holds = [&](hlo::Opcode opcode) {
          const auto members = instr->called()[0]->instrs();
          return std::any_of(members.begin(), members.end(),
                             [&](const hlo::Instr* member) { return member->is(opcode); });
        };
        with_pool += holds(hlo::Opcode::reduce_window);
        with_both += holds(hlo::Opcode::reduce_window) && holds(hlo::Opcode::convolution);
      }
      EXPECT_EQ(with_pool, 1);
      EXPECT_EQ(with_both, record == "chain" ? 1 : 0) << hlo::to_string(**fused);
    }
  }
}

TEST(Tune, SamplesAreCompiledWithTheRecord) {
  auto module = hlo::parse_module(kNet);
  ASSERT_TRUE(module);
  auto target = target::find_target("icelake");
  auto tasks = find_tune_tasks(std::move(*module), *target, kProductsAlone, 6);
  ASSERT_TRUE(tasks);
  const TuneTask& task = tasks->front();
  for (const std::string& text : task.records) {
    const stage::Gemm record = *stage::parse_gemm(text);
    const target::Target tuned = with_record(*target, task.key, text);
    auto fused = fuse_only(task.sample->clone(), tuned, {});
    ASSERT_TRUE(fused) << fused.error().message;
    int with_dot = 0;
    for (const hlo::Instr* instr : (*fused)->entry()->instrs()) {
      if (!instr->is(hlo::Opcode::fusion)) continue;
      const hlo::Computation& called = *instr->called()[0];
      const stage::PlacedFusion placed = schedule::place(called, tuned);
      if (!stage::is_gemm(placed)) continue;
      ++with_dot;
      EXPECT_EQ(std::get<stage::Row>(placed.schedule.nodes[0]).gemm()->record, record);
    }
    EXPECT_EQ(with_dot, 1) << hlo::to_string(**fused);
  }
}

constexpr const char* kImage = R"(HloModule net
ENTRY e {
  x = f32[1,28,28,64] parameter(0)
  w = f32[3,3,64,64] constant({...})
  ROOT c = f32[1,28,28,64] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
}
)";

std::vector<TuneTask> image_tasks(Numerics numerics) {
  auto target = target::find_target("icelake");
  auto tasks = find_tune_tasks(*hlo::parse_module(kImage), *target, {.numerics = numerics}, 8);
  EXPECT_TRUE(tasks) << tasks.error().message;
  return std::move(*tasks);
}

TEST(Tune, WinogradIsATaskUnderRelaxedNumericsOnly) {
  EXPECT_EQ(image_tasks(Numerics::standard).size(), 1u);
  const std::vector<TuneTask> tasks = image_tasks(Numerics::relaxed);
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[1].key,
            "v1 winograd images 1 map 28x28 channels 64 features 64 window -1<28 -1<28");
  EXPECT_EQ(tasks[0].numerics, Numerics::standard);
  EXPECT_EQ(tasks[1].numerics, Numerics::relaxed);
  EXPECT_EQ(std::count(tasks[1].records.begin(), tasks[1].records.end(), "direct"), 1);
}

// The record of the algorithm decides which algorithm is compiled.
TEST(Tune, RecordsOfWinogradDecide) {
  const std::vector<TuneTask> tasks = image_tasks(Numerics::relaxed);
  ASSERT_EQ(tasks.size(), 2u);
  const TuneTask& task = tasks[1];
  auto target = target::find_target("icelake");
  EXPECT_EQ(task.records.size(), 8u);
  for (const std::string& record : task.records) {
    const target::Target tuned = with_record(*target, task.key, record);
    auto fused = fuse_only(task.sample->clone(), tuned, {.numerics = Numerics::relaxed});
    ASSERT_TRUE(fused) << fused.error().message;
    int found = 0;
    for (const hlo::Instr* instr : (*fused)->entry()->instrs()) {
      if (!instr->is(hlo::Opcode::fusion)) continue;
      const stage::PlacedFusion placed = schedule::place(*instr->called()[0], tuned);
      if (!stage::is_template(placed)) continue;
      const auto& row = std::get<stage::Row>(placed.schedule.nodes[0]);
      if (record == "direct") {
        found += row.gemm() != nullptr;
      } else {
        found += row.winograd() &&
                 to_string(row.winograd()->record) == record;  // not the filter's transform
      }
    }
    EXPECT_EQ(found, 1) << record << "\n" << hlo::to_string(**fused);
  }
}

}  // namespace
}  // namespace heddle::compiler
