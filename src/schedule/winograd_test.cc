// The algebra of Winograd's algorithm, and what its family takes and refuses.
#include "schedule/winograd.h"

#include <gtest/gtest.h>

#include "cost/winograd_time.h"
#include "hlo/text.h"
#include "schedule/place.h"

namespace heddle::schedule {
namespace {

// Aᵀ[(G g) ∘ (Bᵀ d)] is the convolution of d with g, in one dimension: then it is in two.
TEST(WinogradTest, MatricesConvolve) {
  for (int m : {2, 4}) {
    const WinogradMatrices& matrices = winograd_matrices(m);
    const int points = m + 2;
    ASSERT_EQ(matrices.points, points);
    auto at = [](const std::vector<double>& matrix, int columns, int i, int j) {
      return matrix.at(static_cast<size_t>(i * columns + j));
    };
    for (int tap = 0; tap < 3; ++tap) {
      for (int from = 0; from < points; ++from) {
        for (int to = 0; to < m; ++to) {
          double sum = 0;
          for (int p = 0; p < points; ++p)
            sum += at(matrices.output, points, to, p) * at(matrices.filter, 3, p, tap) *
                   at(matrices.input, points, p, from);
          EXPECT_NEAR(sum, from == to + tap ? 1 : 0, 1e-15) << m << " " << tap << " " << from;
        }
      }
    }
  }
}

TEST(WinogradTest, LargerTilesLoseMoreDigits) {
  EXPECT_NEAR(winograd_amplification(2), 5.0 / 3, 1e-12);
  EXPECT_NEAR(winograd_amplification(4), 31.4, 0.1);
  EXPECT_LT(winograd_error(2, 4096), kWinogradErrorLimit);
  EXPECT_LT(winograd_error(4, 512), kWinogradErrorLimit);
  EXPECT_GT(winograd_error(4, 2048), kWinogradErrorLimit);
}

// The convolution of a module as the family sees it.
Decision match(const std::string& input, const std::string& kernel, const std::string& output,
               const std::string& rest, WinogradShape* shape, const char* target = "icelake") {
  auto module = hlo::parse_module(fmt::format(R"(HloModule m
ENTRY e {{
  x = f32[{}] parameter(0)
  w = f32[{}] parameter(1)
  ROOT c = f32[{}] convolution(x, w), {}
}})",
                                              input, kernel, output, rest));
  EXPECT_TRUE(module.has_value()) << (module ? "" : module.error().message);
  const PlacedFusion placed = place(*(*module)->entry(), *target::find_target(target));
  if (!is_gemm(placed)) return Decision::no("no-gemm", "{}", placed.decision.reason());
  const Row& row = std::get<Row>(placed.schedule.nodes[0]);
  const GemmShapeOrNot roles = match_gemm(placed.graph, row.joined[0]);
  return match_winograd(roles.shape, placed.graph.stage(row.joined[0]),
                        *target::find_target(target), shape);
}

constexpr const char* kSame = "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f";

TEST(WinogradTest, TakesPlainConvolutions) {
  WinogradShape shape;
  ASSERT_TRUE(match("2,20,30,64", "3,3,64,96", "2,20,30,96", kSame, &shape));
  EXPECT_EQ(shape.images, 2);
  EXPECT_EQ(shape.height, 20);
  EXPECT_EQ(shape.width, 30);
  EXPECT_EQ(shape.channels, 64);
  EXPECT_EQ(shape.features, 96);
  EXPECT_EQ(shape.y_offset, -1);
  EXPECT_EQ(shape.y_span, 20);
  ASSERT_TRUE(match("1,20,30,64", "3,3,64,64", "1,18,28,64",
                    "window={size=3x3}, dim_labels=b01f_01io->b01f", &shape));
  EXPECT_EQ(shape.x_offset, 0);
  EXPECT_EQ(shape.x_span, 30);
}

TEST(WinogradTest, RefusesWithACode) {
  auto code = [](const char* input, const char* kernel, const char* output, const char* rest) {
    WinogradShape shape;
    Decision decision = match(input, kernel, output, rest, &shape);
    return decision ? std::string("yes") : std::string(decision.code());
  };
  EXPECT_EQ(code("1,20,30,64", "5,5,64,64", "1,20,30,64",
                 "window={size=5x5 pad=2_2x2_2}, dim_labels=b01f_01io->b01f"),
            "winograd-window");
  EXPECT_EQ(code("1,20,30,64", "3,3,64,64", "1,10,15,64",
                 "window={size=3x3 stride=2x2 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"),
            "winograd-window");
  EXPECT_EQ(code("1,20,30,64", "3,3,64,64", "1,20,30,64",
                 "window={size=3x3 pad=2_2x2_2 rhs_dilate=2x2}, dim_labels=b01f_01io->b01f"),
            "winograd-window");
  EXPECT_EQ(
      code("1,20,30,128", "3,3,64,128", "1,20,30,128",
           "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=2"),
      "winograd-window");
  EXPECT_EQ(code("1,64,20,30", "64,64,3,3", "1,64,20,30",
                 "window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01"),
            "winograd-layout");
  EXPECT_EQ(code("1,20,30,60", "3,3,60,64", "1,20,30,64", kSame), "winograd-lanes");
  EXPECT_EQ(code("1,20,30,32", "3,3,32,64", "1,20,30,64", kSame), "winograd-small");
  EXPECT_EQ(code("1,13,30,64", "3,3,64,64", "1,13,30,64", kSame), "winograd-small");
}

TEST(WinogradTest, PrefersWhatIsPredictedToBeFaster) {
  const auto target = target::find_target("spr");
  WinogradShape shape;
  Winograd winograd;
  ASSERT_TRUE(match("1,56,56,256", "3,3,256,256", "1,56,56,256", kSame, &shape, "spr"));
  ASSERT_TRUE(prefer_winograd(shape, *target, &winograd));
  EXPECT_EQ(winograd.m, 4);
  EXPECT_LT(2 * cost::winograd_cycles(winograd, shape, *target),
            cost::direct_cycles(shape, *target));
  EXPECT_EQ(shape.features % winograd.columns, 0);
  // Sums over more channels lose too many digits for tiles of 4x4.
  shape.channels = 4096;
  const Decision preferred = prefer_winograd(shape, *target, &winograd);
  EXPECT_TRUE(!preferred || winograd.m == 2);
}

}  // namespace
}  // namespace heddle::schedule
