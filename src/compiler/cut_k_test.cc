// Products whose K is split into blocks: sums of several panels stay in scratch between blocks.
#include <gtest/gtest.h>

#include <cstring>

#include "compiler/fusion_check.h"
#include "fuse/fuse.h"
#include "hlo/text.h"
#include "schedule/tuning.h"

namespace heddle::stitch {
namespace {

struct Case {
  const char* target;
  const char* record;
  int64_t m, n, k;
};

std::string rising(int64_t count, double by) {
  std::string values;
  for (int64_t i = 0; i < count; ++i)
    values += fmt::format("{}{}", i ? ", " : "", by * static_cast<double>(i));
  return values;
}

// The kernel under the case's record, with a bias and a maximum as epilogue.
compiler::FusionCheck check(const Case& c) {
  target::Target target = *target::find_target(c.target);
  target.records = std::make_shared<std::map<std::string, std::string>>(
      std::map<std::string, std::string>{{schedule::gemm_key(c.m, c.n, c.k), c.record}});
  const std::string text = fmt::format(R"(HloModule m
ENTRY e {{
  x = f32[{0},{2}] parameter(0)
  p = f32[{2}] constant({{{3}}})
  i = f32[{2},{1}] broadcast(p), dimensions={{0}}
  q = f32[{1}] constant({{{4}}})
  j = f32[{2},{1}] broadcast(q), dimensions={{1}}
  s = f32[{2},{1}] add(i, j)
  w = f32[{2},{1}] cosine(s)
  d = f32[{0},{1}] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  b = f32[{1}] parameter(1)
  bias = f32[{0},{1}] broadcast(b), dimensions={{1}}
  ROOT y = f32[{0},{1}] maximum(d, bias)
}})",
                                       c.m, c.n, c.k, rising(c.k, 1.3), rising(c.n, 2.7));
  auto module = hlo::parse_module(text);
  EXPECT_TRUE(module.has_value()) << (module ? "" : module.error().message);
  EXPECT_TRUE(fuse::pack_weights(module->get(), target).has_value());
  EXPECT_TRUE(fuse::fuse(module->get(), target, fuse::Mode::greedy).has_value());
  for (const hlo::Instr* instr : (*module)->entry()->instrs()) {
    if (!instr->is(hlo::Opcode::fusion)) continue;
    hlo::Module alone("fusion");
    alone.set_entry(alone.clone_computation(*instr->called()[0]));
    compiler::FusionCheck checked = compiler::check_fusion(alone, target, 3, c.k);
    if (!stage::is_gemm(checked.placed)) continue;
    EXPECT_EQ(checked.failure, "") << checked.text;
    return checked;
  }
  ADD_FAILURE() << "no product";
  return {};
}

TEST(CutKTest, SumsWaitInScratch) {
  for (const Case& c :
       {Case{"icelake", "gemm 7x2 lanes 16 kc 16 ku 4 prefetch 1 rows 10 panels 3", 23, 150, 50},
        Case{"icelake", "gemm 7x2 lanes 16 kc 32 ku 4 prefetch 0 rows 23 panels 2", 23, 128, 64},
        Case{"icelake", "gemm 8x3 lanes 16 kc 48 ku 4 prefetch 2 rows 9 panels 1", 17, 70, 77},
        Case{"avx2", "gemm 4x2 lanes 8 kc 16 ku 4 prefetch 1 rows 8 panels 4", 23, 150, 50}}) {
    compiler::FusionCheck checked = check(c);
    ASSERT_TRUE(stage::is_gemm(checked.placed));
    const stage::Gemm& gemm = std::get<stage::Row>(checked.placed.schedule.nodes[0]).gemm()->record;
    EXPECT_EQ(stage::to_string(gemm), c.record);
    EXPECT_NE(checked.text.find("sums"), std::string::npos) << checked.text;
  }
}

TEST(CutKTest, OnlyWherePanelsArePackedAndKIsLonger) {
  for (const Case& c :
       {Case{"icelake", "gemm 7x2 lanes 16 kc 50 ku 4 prefetch 0 rows 10 panels 3", 23, 64, 50},
        Case{"icelake", "gemm 7x2 lanes 16 kc 0 ku 4 prefetch 0 rows 10 panels 3", 23, 64, 50}}) {
    compiler::FusionCheck checked = check(c);
    EXPECT_EQ(checked.text.find("sums"), std::string::npos) << checked.text;
  }
}

// Convolutions whose panel does not fit the second-level cache: cut at the window's lines. A small
// cache makes small ones do.
TEST(CutKTest, WindowsAreCutByTheirLines) {
  struct Conv {
    const char *target, *input, *kernel, *output, *window;
    int64_t columns;
  };
  for (const Conv& c :
       {Conv{"icelake", "1,9,17,12", "3,3,12,100", "1,9,17,100", "size=3x3 pad=1_1x1_1", 17},
        Conv{"icelake", "2,11,20,8", "3,3,8,101", "2,11,20,101",
             "size=3x3 pad=4_4x4_4 rhs_dilate=4x4", 20},
        Conv{"icelake", "1,14,19,8", "5,2,8,100", "1,6,17,100",
             "size=5x2 stride=2x1 pad=2_0x0_-1 rhs_reversal=1x0", 17},
        Conv{"avx2", "1,9,17,12", "3,3,12,40", "1,9,17,40", "size=3x3 pad=1_1x1_1", 17}}) {
    target::Target target = *target::find_target(c.target);
    target.caches[1].bytes = 8 << 10;
    int64_t elems = 1;
    for (const char* at = c.kernel; at;
         at = std::strchr(at, ',') ? std::strchr(at, ',') + 1 : nullptr)
      elems *= std::atoll(at);
    const std::string text =
        fmt::format(R"(HloModule m
ENTRY e {{
  x = f32[{0}] parameter(0)
  f = f32[{1}] constant({{{5}}})
  s = f32[{1}] cosine(f)
  w = f32[{2}] reshape(s)
  c = f32[{3}] convolution(x, w), window={{{4}}}, dim_labels=b01f_01io->b01f
  ROOT y = f32[{3}] tanh(c)
}})",
                    c.input, elems, c.kernel, c.output, c.window, rising(elems, 1));
    auto module = hlo::parse_module(text);
    ASSERT_TRUE(module.has_value()) << module.error().message;
    ASSERT_TRUE(fuse::pack_weights(module->get(), target).has_value());
    ASSERT_TRUE(fuse::fuse(module->get(), target, fuse::Mode::greedy).has_value());
    int cut = 0;
    for (const hlo::Instr* instr : (*module)->entry()->instrs()) {
      if (!instr->is(hlo::Opcode::fusion)) continue;
      hlo::Module alone("fusion");
      alone.set_entry(alone.clone_computation(*instr->called()[0]));
      compiler::FusionCheck checked = compiler::check_fusion(alone, target, 3, 256);
      EXPECT_EQ(checked.failure, "") << checked.text;
      if (!stage::is_gemm(checked.placed)) continue;
      const stage::Gemm& record =
          std::get<stage::Row>(checked.placed.schedule.nodes[0]).gemm()->record;
      if (record.panels == 0) continue;
      ++cut;
      // Sums stand by rows, whatever tiles they are in, so that loops over rows can be trimmed.
      for (const kernel::Buffer& buffer : checked.kernel.buffers)
        if (buffer.name == "sums") {
          EXPECT_EQ(buffer.extents[0] % (c.columns * record.nv * record.lanes), 0) << c.window;
        }
    }
    EXPECT_EQ(cut, 1) << text;
  }
}

}  // namespace
}  // namespace heddle::stitch
