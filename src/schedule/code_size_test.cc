#include "cost/code_size.h"

#include <gtest/gtest.h>

#include "hlo/text.h"
#include "schedule/place.h"

namespace heddle::schedule {
namespace {

// A product with a bias and a tanh, for a processor with vectors of 16.
struct Example {
  std::unique_ptr<hlo::Module> module;
  stage::PlacedFusion placed;
  const stage::Row& row() const { return std::get<stage::Row>(placed.schedule.nodes[0]); }
};

Example example() {
  Example made;
  auto module = hlo::parse_module(R"(HloModule m
ENTRY e {
  a = f32[128,256] parameter(0)
  packed = f32[8,256,32] parameter(1)
  bias = f32[256] parameter(2)
  t = f32[256,8,32] transpose(packed), dimensions={1,0,2}
  b = f32[256,256] reshape(t)
  d = f32[128,256] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  bb = f32[128,256] broadcast(bias), dimensions={1}
  s = f32[128,256] add(d, bb)
  ROOT r = f32[128,256] tanh(s)
})");
  EXPECT_TRUE(module) << (module ? "" : module.error().message);
  made.module = std::move(*module);
  made.placed = place(*made.module->entry(), *target::find_target("icelake"));
  EXPECT_TRUE(made.placed.decision) << made.placed.decision.reason();
  return made;
}

// The epilogue of the product is unrolled for each register of a tile.
TEST(CodeSize, GrowsWithTheTile) {
  const Example e = example();
  stage::Gemm tile = e.row().gemm()->record;
  tile.mr = tile.nv = 1;
  const int64_t one = cost::code_of_tile(e.placed.graph, e.row().joined, tile);
  EXPECT_GT(one, 32) << "a tanh alone takes as much";
  tile.mr = 6;
  tile.nv = 2;
  EXPECT_EQ(cost::code_of_tile(e.placed.graph, e.row().joined, tile), 12 * one);
  EXPECT_EQ(cost::code_of_tile(e.placed.graph, {e.row().joined[0]}, tile), 0) << "only the product";
}

TEST(CodeSize, TooMuchIsRefused) {
  const Example e = example();
  stage::Gemm tile = e.row().gemm()->record;
  EXPECT_TRUE(cost::fits_in_code(e.placed.graph, e.row().joined, tile));
  tile.mr = 1000;
  const Decision no = cost::fits_in_code(e.placed.graph, e.row().joined, tile);
  EXPECT_FALSE(no);
  EXPECT_EQ(no.code(), "gemm-epilogue");
}

}  // namespace
}  // namespace heddle::schedule
