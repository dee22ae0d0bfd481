// Tiles at the edges of windows, and the records and schedules of convolutions.
#include "stage/gemm_axis.h"

#include <gtest/gtest.h>

#include "hlo/text.h"
#include "schedule/place.h"

namespace heddle::schedule {
namespace {

Window window(int64_t stride, int64_t dilation, int64_t pad, int64_t span) {
  return {0, 1, stride, dilation, -pad, span};
}

// Every row of every window element that is inside is in exactly one segment of one tile.
void expect_exact(int64_t extent, int64_t tile, int64_t block, const Window& w, int64_t k_extent) {
  std::vector<int64_t> rows(static_cast<size_t>(extent), 0);
  std::vector<int64_t> times(static_cast<size_t>(extent * k_extent), 0);
  for (const stage::AxisPart& part : stage::plan_axis(extent, tile, block, &w, k_extent)) {
    for (int64_t b = 0; b < part.blocks; ++b) {
      for (const stage::Run& run : part.runs) {
        EXPECT_LE(run.rows, tile);
        for (int64_t i = 0; i < run.count; ++i) {
          const int64_t start = b * part.step + run.start + i * run.rows;
          for (int64_t r = 0; r < run.rows; ++r) ++rows[static_cast<size_t>(start + r)];
          for (const stage::Segment& s : run.segments)
            for (int64_t k = s.k_low; k < s.k_high; ++k)
              for (int64_t r = s.row_low; r < s.row_high; ++r)
                ++times[static_cast<size_t>((start + r) * k_extent + k)];
        }
      }
    }
  }
  for (int64_t x = 0; x < extent; ++x) {
    EXPECT_EQ(rows[static_cast<size_t>(x)], 1) << x;
    for (int64_t k = 0; k < k_extent; ++k) {
      const int64_t at = w.stride * x + w.dilation * k + w.offset;
      EXPECT_EQ(times[static_cast<size_t>(x * k_extent + k)], at >= 0 && at < w.span)
          << "row " << x << " element " << k;
    }
  }
}

TEST(GemmAxisTest, SegmentsAreWhatIsInside) {
  for (int64_t extent : {1, 2, 7, 14, 31, 56})
    for (int64_t tile : {1, 4, 14})
      for (int64_t k : {1, 3, 5})
        for (int64_t pad : {-1, 0, 1, 2, 9})
          for (int64_t stride : {1, 2})
            for (int64_t dilation : {-1, 1, 2}) {
              const int64_t offset = dilation < 0 ? pad - (k - 1) : pad;
              expect_exact(extent, tile, extent, window(stride, dilation, offset, extent * stride),
                           k);
              expect_exact(extent, tile, 16, window(stride, dilation, offset, extent * stride), k);
            }
}

TEST(GemmAxisTest, TilesInsideAreOneRun) {
  const Window w = window(1, 1, 1, 56);
  std::vector<stage::AxisPart> parts = stage::plan_axis(56, 14, 56, &w, 3);
  ASSERT_EQ(parts.size(), 1u);
  ASSERT_EQ(parts[0].runs.size(), 3u);
  EXPECT_EQ(parts[0].runs[0].segments, (std::vector<stage::Segment>{{0, 1, 1, 14}, {1, 3, 0, 14}}));
  EXPECT_EQ(parts[0].runs[1], (stage::Run{14, 2, 14, {{0, 3, 0, 14}}}));
  EXPECT_EQ(parts[0].runs[2].segments, (std::vector<stage::Segment>{{0, 2, 0, 14}, {2, 3, 0, 13}}));
  EXPECT_EQ(stage::count_segments(parts), 5);
}

std::string schedule_of(int64_t size, int64_t features) {
  std::string text = fmt::format(
      "HloModule m\nENTRY e {{\n  x = f32[1,{0},{0},{1}] parameter(0)\n"
      "  w = f32[3,3,{1},{1}] parameter(1)\n"
      "  ROOT c = f32[1,{0},{0},{1}] convolution(x, w), window={{size=3x3 pad=1_1x1_1}}, "
      "dim_labels=b01f_01io->b01f\n}}",
      size, features);
  auto module = hlo::parse_module(text);
  EXPECT_TRUE(module.has_value()) << (module ? "" : module.error().message);
  PlacedFusion placed = place(*(*module)->entry(), *target::find_target("icelake"));
  EXPECT_TRUE(is_gemm(placed));
  std::string printed = to_string(placed.schedule, placed.graph);
  auto parsed = parse_schedule(printed, placed.graph);
  EXPECT_TRUE(parsed.has_value()) << (parsed ? "" : parsed.error().message);
  if (parsed) {
    EXPECT_EQ(to_string(*parsed, placed.graph), printed);
    EXPECT_EQ(std::get<Row>(parsed->nodes[0]).gemm()->record,
              std::get<Row>(placed.schedule.nodes[0]).gemm()->record);
  }
  const size_t begin = printed.find("gemm ");
  return printed.substr(begin, printed.find(';') - begin);
}

TEST(GemmAxisTest, LinesAreJoinedWhereTheyAreShort) {
  EXPECT_EQ(schedule_of(56, 64), "gemm 14x2 lanes 16 kc 576 ku 4 prefetch 0 rows 56 lines 1 of 7");
  EXPECT_EQ(schedule_of(7, 512),
            "gemm 7x2 lanes 16 kc 4608 ku 4 prefetch 0 rows 7 lines 2 of 7 copy_b");
}

}  // namespace
}  // namespace heddle::schedule
