// Prefetches, and the cutting of long rows: tests of the generated kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/fusion_check.h"
#include "hlo/text.h"

namespace heddle::stitch {
namespace {

using compiler::FusionCheck;
using ::testing::HasSubstr;
using ::testing::Not;

// A machine whose caches are so small that a few rows do not fit.
FusionCheck run_small(const std::string& text, const std::vector<bool>& streamed = {},
                      const char* name = "icelake") {
  auto module = hlo::parse_module(text);
  EXPECT_TRUE(module.has_value()) << (module ? "" : module.error().message);
  target::Target target = *target::find_target(name);
  target.caches[0].bytes = 4096;
  target.caches[1].bytes = 16384;
  FusionCheck checked = compiler::check_fusion(**module, target, 7, 4096, streamed);
  EXPECT_EQ(checked.failure, "") << checked.text;
  return checked;
}

constexpr char kSoftmax[] = R"(HloModule m
maximum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
ENTRY e {
  x = f32[40,512] parameter(0)
  lowest = f32[] constant(-inf)
  zero = f32[] constant(0)
  top = f32[40] reduce(x, lowest), dimensions={1}, to_apply=maximum
  tops = f32[40,512] broadcast(top), dimensions={0}
  shifted = f32[40,512] subtract(x, tops)
  powers = f32[40,512] exponential(shifted)
  total = f32[40] reduce(powers, zero), dimensions={1}, to_apply=add
  totals = f32[40,512] broadcast(total), dimensions={0}
  ROOT y = f32[40,512] divide(powers, totals)
})";

// While the exponentials of a row are computed, the next row is prefetched.
TEST(Ahead, TheNextRowIsFetchedByALaterSweep) {
  const FusionCheck ran = run_small(kSoftmax);
  EXPECT_EQ(ran.report.prefetches, 40 * 512) << ran.text;
  EXPECT_THAT(ran.text, HasSubstr("prefetch in0[t0*512 + b_1*64 + u_3*16 + l_4 + 512] level 2"));
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// A row that is not a multiple of four vectors has a remainder sweep, which does less work and does
// not prefetch.
TEST(Ahead, TheRestOfARowDoesNotFetchAllOfTheNext) {
  const FusionCheck ran = run_small(replaced(kSoftmax, "512", "500"));
  EXPECT_EQ(ran.report.prefetches, 40 * 448) << ran.text;
  EXPECT_THAT(ran.text, HasSubstr("prefetch in0[t0*500 + b_1*64 + u_3*16 + l_5 + 500] level 2"));
}

TEST(Ahead, NothingIsFetchedThatStaysInTheCache) {
  auto module = hlo::parse_module(kSoftmax);
  ASSERT_TRUE(module.has_value());
  const FusionCheck ran =
      compiler::check_fusion(**module, *target::find_target("icelake"), 7, 4096);
  EXPECT_EQ(ran.failure, "");
  EXPECT_EQ(ran.report.prefetches, 0);
}

// Gathered rows are prefetched 8 KiB ahead, by the indices of a later task, at most the last one.
TEST(Ahead, LookedUpRowsAreFetchedByTheirIndex) {
  const FusionCheck ran = run_small(R"(HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
ENTRY e {
  table = f32[300,256] parameter(0)
  ids = s32[40] parameter(1)
  x = f32[40,256] gather(table, ids), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,256}
  zero = f32[] constant(0)
  total = f32[40] reduce(x, zero), dimensions={1}, to_apply=add
  totals = f32[40,256] broadcast(total), dimensions={0}
  ROOT y = f32[40,256] multiply(x, totals)
})");
  EXPECT_EQ(ran.report.prefetches, 40 * 256) << ran.text;
  EXPECT_THAT(ran.text, HasSubstr("min(t0 + 8, 39)"));
}

// Bags of gathered rows: lanes run along a row, not across indices, and rows of later steps are
// prefetched, at the end of a bag those of the next one.
TEST(Ahead, BagsOfLookedUpRowsAreFetchedStepsAhead) {
  const FusionCheck ran = run_small(R"(HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
ENTRY e {
  table = f32[300,64] parameter(0)
  bag = s32[40,50] parameter(1)
  x = f32[40,50,64] gather(table, bag), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,64}
  zero = f32[] constant(0)
  ROOT y = f32[40,64] reduce(x, zero), dimensions={1}, to_apply=add
})");
  EXPECT_EQ(ran.report.prefetches, 40 * 50 * 64) << ran.text;
  EXPECT_THAT(ran.text, HasSubstr("min(t0*50 + r + 32, 1999)"));
  EXPECT_THAT(ran.text, Not(HasSubstr("shuffle_xor")));
}

// Softmax's quotient is a product with one reciprocal a row.
TEST(Ahead, QuotientsByTheSumOfExponentialsAreProducts) {
  const FusionCheck ran = run_small(kSoftmax);
  EXPECT_THAT(ran.text, HasSubstr("(1:f32 / "));
  EXPECT_THAT(ran.text, Not(HasSubstr("] / ")));
}

constexpr char kChannelNorm[] = R"(HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
ENTRY e {
  x = f32[6,40,5,7] parameter(0)
  zero = f32[] constant(0)
  total = f32[40] reduce(x, zero), dimensions={0,2,3}, to_apply=add
  share = f32[] constant(0.00476)
  shares = f32[40] broadcast(share), dimensions={}
  mean = f32[40] multiply(total, shares)
  means = f32[6,40,5,7] broadcast(mean), dimensions={1}
  centered = f32[6,40,5,7] subtract(x, means)
  squares = f32[6,40,5,7] multiply(centered, centered)
  square_total = f32[40] reduce(squares, zero), dimensions={0,2,3}, to_apply=add
  square_totals = f32[6,40,5,7] broadcast(square_total), dimensions={1}
  ROOT y = f32[6,40,5,7] multiply(centered, square_totals)
})";

// Pieces of a channel are a loop of one sweep, not rows of the task: the next channel is prefetched
// while this one is stored.
TEST(Ahead, PiecesWithARestAreNoRows) {
  const FusionCheck ran =
      run_small(replaced(replaced(kChannelNorm, "6,40,5,7", "6,40,5,20"), "6,40,5,7", "6,40,5,20"));
  EXPECT_EQ(ran.report.prefetches, 40 * 6 * 100) << ran.text;
  EXPECT_THAT(ran.text, HasSubstr(" + 100] level 2"));
}

// The lines of an image are contiguous: lanes run over all of them.
TEST(Ahead, LinesOfAnImageAreOneRow) {
  const FusionCheck ran = run_small(kChannelNorm);
  for (const stage::Stage& stage : ran.placed.graph.stages) {
    const std::vector<int64_t> extents = stage.extents();
    EXPECT_TRUE(extents.empty() || extents.back() != 7) << ran.text;
  }
}

// `centered` of a channel is as large as its input: if it does not fit the first-level cache, it is
// computed twice.
TEST(Ahead, CheapValuesOfLongRowsAreNotHeld) {
  auto module = hlo::parse_module(kChannelNorm);
  ASSERT_TRUE(module.has_value());
  target::Target target = *target::find_target("icelake");
  const FusionCheck held = compiler::check_fusion(**module, target, 7, 4096);
  EXPECT_EQ(held.kernel.scratch_bytes, 6 * 35 * 4 + 56);
  target.caches[0].bytes = 1024;
  const FusionCheck again = compiler::check_fusion(**module, target, 7, 4096);
  EXPECT_EQ(again.failure, "");
  EXPECT_EQ(again.kernel.scratch_bytes, 0) << again.text;
}

// Rows of 375 elements begin anywhere in a cache line: after a partial vector, whole lines are
// stored past the caches.
TEST(Ahead, StreamedRowsStartAtLines) {
  const std::string text = R"(HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
ENTRY e {
  x = f32[40,375] parameter(0)
  zero = f32[] constant(0)
  total = f32[40] reduce(x, zero), dimensions={1}, to_apply=add
  totals = f32[40,375] broadcast(total), dimensions={0}
  ROOT y = f32[40,375] multiply(x, totals)
})";
  EXPECT_THAT(run_small(text).text, Not(HasSubstr("floor_div(")));
  for (const char* target : {"icelake", "avx2"}) {
    const FusionCheck ran = run_small(text, {true}, target);
    EXPECT_THAT(ran.text, HasSubstr("floor_div(t0*375 + 15, 16)*16 - t0*375 lanes")) << ran.text;
    EXPECT_THAT(ran.text, HasSubstr("streaming"));
  }
  // Not for rows of whole lines, nor for rows that a sweep has just written to scratch.
  EXPECT_THAT(run_small(replaced(text, "375", "384"), {true}).text, Not(HasSubstr("floor_div(")));
  EXPECT_THAT(run_small(replaced(kSoftmax, "512", "375"), {true}).text,
              Not(HasSubstr("floor_div(")));
}

// The quotients of a row are stored past the caches along with the exponentials of the next row.
TEST(Ahead, LongRowsAreStoredBehind) {
  auto wide = [](const char* width) { return replaced(kSoftmax, "512", width); };
  for (const char* target : {"icelake", "avx2"}) {
    for (const char* width : {"768", "1000"}) {
      const FusionCheck ran = run_small(wide(width), {true}, target);
      EXPECT_THAT(ran.text, HasSubstr("if r > 0 {")) << ran.text;
      EXPECT_THAT(ran.text, HasSubstr("row_before[0] = "));
    }
  }
  // Not for results that stay in the caches, short rows, too few rows for all cores, or rows that
  // begin with more arithmetic than the sweep that fills the scratch.
  EXPECT_THAT(run_small(wide("768")).text, Not(HasSubstr("row_before")));
  EXPECT_THAT(run_small(kSoftmax, {true}).text, Not(HasSubstr("row_before")));
  EXPECT_THAT(run_small(replaced(wide("768"), "40", "14"), {true}).text,
              Not(HasSubstr("row_before")));
  const std::string busy =
      replaced(replaced(wide("768"), "x = f32[40,768] parameter(0)",
                        "p = f32[40,768] parameter(0) e = f32[40,768] exponential(p) "
                        "x = f32[40,768] tanh(e)"),
               "powers = f32[40,768] exponential(shifted)",
               "powers = f32[40,768] multiply(shifted, shifted)");
  EXPECT_THAT(run_small(busy, {true}).text, Not(HasSubstr("row_before")));
}

// A sum that is an output and the input of a norm: it is stored past the caches, and the norm reads
// a copy in scratch.
TEST(Ahead, StreamedValuesAreReadFromScratch) {
  const std::string text = R"(HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
ENTRY e {
  x = f32[40,256] parameter(0)
  y = f32[40,256] parameter(1)
  h = f32[40,256] add(x, y)
  zero = f32[] constant(0)
  squares = f32[40,256] multiply(h, h)
  total = f32[40] reduce(squares, zero), dimensions={1}, to_apply=add
  totals = f32[40,256] broadcast(total), dimensions={0}
  z = f32[40,256] divide(h, totals)
  ROOT all = (f32[40,256], f32[40,256]) tuple(z, h)
})";
  EXPECT_EQ(run_small(text).kernel.scratch_bytes, 0);
  const FusionCheck ran = run_small(text, {true, true});
  EXPECT_EQ(ran.kernel.scratch_bytes, 1024) << ran.text;
  EXPECT_THAT(ran.text, Not(HasSubstr("= out1[")));
}

}  // namespace
}  // namespace heddle::stitch
