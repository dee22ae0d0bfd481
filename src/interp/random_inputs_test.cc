#include "interp/random_inputs.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "interp/run_test_util.h"

namespace heddle::interp {
namespace {

using tensor::Literal;

TEST(RandomInputs, AreDeterministicAndSmall) {
  auto module = module_of(R"(ENTRY e {
    a = f32[100] parameter(0)
    b = (s8[50], u4[50]) parameter(1)
    ROOT r = (f32[100], (s8[50], u4[50])) tuple(a, b) })");
  auto x = random_arguments(*module, 7), y = random_arguments(*module, 7);
  ASSERT_EQ(x.size(), 2u);
  EXPECT_EQ(x, y);
  EXPECT_NE(x, random_arguments(*module, 8));
  for (float v : x[0].values<float>()) EXPECT_LE(std::fabs(v), 1);
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 50; ++i) {
    seen.insert(x[1].elements()[0].get_s64(i));
    EXPECT_LE(x[1].elements()[1].get_s64(i), 5);
  }
  EXPECT_GT(seen.size(), 5u);
  EXPECT_LE(*seen.rbegin(), 5);
  EXPECT_GE(*seen.begin(), -5);
}

std::vector<int64_t> integers(const Literal& x) {
  std::vector<int64_t> result;
  for (int64_t i = 0; i < x.elems(); ++i) result.push_back(x.get_s64(i));
  return result;
}

TEST(RandomInputs, IndicesStayInRange) {
  auto module = module_of(R"(
    body { s = (s32[40,2], f32[3,9]) parameter(0)
           i = s32[40,2] get-tuple-element(s), index=0
           x = f32[3,9] get-tuple-element(s), index=1
           g = f32[40,1,2] gather(x, i), offset_dims={1,2}, collapsed_slice_dims={},
             start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,2}
           ROOT t = (s32[40,2], f32[3,9]) tuple(i, x) }
    condition { s = (s32[40,2], f32[3,9]) parameter(0)
                ROOT r = pred[] constant(false) }
    ENTRY e { flat = s32[80] parameter(0)
              x = f32[3,9] parameter(1)
              i = s32[40,2] reshape(flat)
              t = (s32[40,2], f32[3,9]) tuple(i, x)
              ROOT w = (s32[40,2], f32[3,9]) while(t), condition=condition, body=body })");
  auto x = integers(random_arguments(*module, 1)[0]);
  int64_t rows = 0, columns = 0;
  for (size_t i = 0; i < x.size(); i += 2) {
    EXPECT_GE(std::min(x[i], x[i + 1]), 0);
    rows = std::max(rows, x[i]);
    columns = std::max(columns, x[i + 1]);
  }
  EXPECT_EQ(rows, 2);
  EXPECT_EQ(columns, 7);
}

TEST(RandomInputs, ClaimsOfTheOperatorHold) {
  auto module = module_of(R"(
    add { a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT r = f32[] add(a, b) }
    ENTRY e { i = s32[30] parameter(0)
              x = f32[64] parameter(1)
              u = f32[30] parameter(2)
              j = s32[20] parameter(3)
              s = f32[64] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0},
                scatter_dims_to_operand_dims={0}, index_vector_dim=1, unique_indices=true,
                to_apply=add
              ROOT g = f32[20] gather(s, j), offset_dims={}, collapsed_slice_dims={0},
                start_index_map={0}, index_vector_dim=1, slice_sizes={1},
                indices_are_sorted=true })");
  auto arguments = random_arguments(*module, 3);
  auto unique = integers(arguments[0]), sorted = integers(arguments[3]);
  EXPECT_EQ(std::set<int64_t>(unique.begin(), unique.end()).size(), unique.size());
  EXPECT_TRUE(std::is_sorted(sorted.begin(), sorted.end()));
  EXPECT_GT(sorted.back(), sorted.front());
  EXPECT_LT(sorted.back(), 64);
}

TEST(RandomInputs, StartsNeutralsAndDivisors) {
  auto module = module_of(R"(
    max { a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT r = f32[] maximum(b, a) }
    ENTRY e { x = f32[8] parameter(0)
              start = s64[] parameter(1)
              init = f32[] parameter(2)
              d = u8[500] parameter(3)
              n = u8[500] parameter(4)
              v = f32[9] parameter(5)
              eps = f32[] constant(0.01)
              epss = f32[9] broadcast(eps), dimensions={}
              plus = f32[9] add(v, epss)
              root = f32[9] rsqrt(plus)
              q = u8[500] divide(n, d)
              s = f32[2] dynamic-slice(x, start), dynamic_slice_sizes={2}
              m = f32[] reduce(s, init), dimensions={0}, to_apply=max
              ROOT t = (f32[], u8[500], f32[9]) tuple(m, q, root) })");
  auto arguments = random_arguments(*module, 3);
  EXPECT_GE(arguments[1].get_s64(0), 0);
  EXPECT_LE(arguments[1].get_s64(0), 6);
  EXPECT_EQ(arguments[2].get_f64(0), -INFINITY);
  for (int64_t d : integers(arguments[3])) EXPECT_NE(d, 0);
  for (float v : arguments[5].values<float>()) EXPECT_GT(v, 0);
  EXPECT_TRUE(evaluate(*module, arguments));
}

TEST(RandomInputs, MatricesToFactorAreDefinite) {
  auto module = module_of(R"(ENTRY e {
    a = f32[3,6,6] parameter(0)
    ROOT c = f32[3,6,6] cholesky(a), lower=true })");
  auto arguments = random_arguments(*module, 5);
  auto result = evaluate(*module, arguments);
  ASSERT_TRUE(result);
  for (float v : result->values<float>()) EXPECT_TRUE(std::isfinite(v));
}

}  // namespace
}  // namespace heddle::interp
