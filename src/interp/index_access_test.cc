// The links of hlo/index_map.h against the operators' results: each element of a result is the
// element of the operand that the expressions name.
#include "hlo/index_access.h"

#include <algorithm>
#include <optional>

#include "interp/run_test_util.h"

namespace heddle::interp {
namespace {

using index::Expr;

// The points of a domain, in row-major order.
std::vector<hlo::Ints> points(const hlo::Ints& box) {
  std::vector<hlo::Ints> all{{}};
  for (int64_t extent : box) {
    std::vector<hlo::Ints> longer;
    for (const hlo::Ints& point : all)
      for (int64_t i = 0; i < extent; ++i) {
        longer.push_back(point);
        longer.back().push_back(i);
      }
    all = std::move(longer);
  }
  return all;
}

int64_t element(const tensor::Literal& literal, const hlo::Ints& at) {
  int64_t linear = 0;
  for (size_t d = 0; d < at.size(); ++d)
    linear = linear * literal.shape().dim(static_cast<int64_t>(d)) + at[d];
  return literal.get_s64(linear);
}

void expect_as_named(const std::string& body) {
  const auto module = module_of(body);
  ASSERT_TRUE(module);
  const hlo::Instr& x = *module->entry()->root();
  const auto result = evaluate_text(body);
  ASSERT_TRUE(result);
  const hlo::Ints box = x.shape().extents();
  const std::vector<Expr> digits = index::identity(box).results;
  // Positions of the examples are constants.
  const auto position = [&](const hlo::DimLink& link, const hlo::Ints& at) {
    const auto k = static_cast<size_t>(link.other);
    const tensor::Literal& positions = x.operand(k)->literal();
    hlo::Ints where(static_cast<size_t>(positions.shape().rank()), link.other_dim);
    for (const hlo::DimLink& of : hlo::index_map(x, k).links)
      if (of.kind == hlo::DimKind::same)
        where[static_cast<size_t>(of.from)] = at[static_cast<size_t>(of.to)];
    return std::clamp<int64_t>(element(positions, where), 0, link.limit);
  };
  for (const hlo::Ints& at : points(box)) {
    std::optional<int64_t> wanted;
    for (size_t k : hlo::layers(x)) {
      const hlo::Access access = hlo::access(
          x, k, digits, box, [&](const hlo::DimLink& link) { return Expr(position(link, at)); });
      bool is_inside = !access.is_nowhere;
      for (const index::Guard& guard : access.inside) {
        const int64_t value = evaluate(guard.value, at);
        is_inside &= guard.low <= value && value < guard.high;
      }
      if (!is_inside) continue;
      hlo::Ints from;
      for (const Expr& coordinate : access.at) from.push_back(evaluate(coordinate, at));
      wanted = element(x.operand(k)->literal(), from);
    }
    ASSERT_TRUE(wanted) << body;
    EXPECT_EQ(element(*result, at), *wanted) << body;
  }
}

TEST(IndexAccess, NamesTheElementsThatOperatorsMove) {
  const std::string a = "a = s32[2,3] constant({{1,2,3},{4,5,6}}) ";
  const std::string b = "b = s32[2,2] constant({{7,8},{9,10}}) z = s32[] constant(-1) ";
  const std::string l = "l = s32[7] constant({0,1,2,3,4,5,6}) i = s32[] constant(9) ";
  for (const std::string& body :
       {a + "ROOT x = s32[3,4,2] broadcast(a), dimensions={2,0}",
        a + "ROOT x = s32[3,2] transpose(a), dimensions={1,0}",
        a + "ROOT x = s32[3,1,2] reshape(a)", a + "ROOT x = s32[2,3] copy(a)",
        a + "ROOT x = s32[2,3] reverse(a), dimensions={1}",
        a + "ROOT x = s32[1,2] slice(a), slice={[1:2], [0:3:2]}",
        a + b + "ROOT x = s32[2,7] concatenate(a, b, b), dimensions={1}",
        a + b + "ROOT x = s32[6,4] pad(a, z), padding=1_2_1x-1_2",
        l + "ROOT x = s32[3] dynamic-slice(l, i), dynamic_slice_sizes={3}",
        l + a + b + "o = s32[] constant(1) ROOT x = s32[2,3] dynamic-update-slice(a, b, o, o)",
        a + "p = s32[3,2] constant({{0,1},{1,5},{0,0}}) ROOT x = s32[3,2] gather(a, p), "
            "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0,1}, "
            "index_vector_dim=1, slice_sizes={1,2}",
        a + "p = s32[2,4] constant({{0,1,2,9},{2,1,1,0}}) ROOT x = s32[2,4] gather(a, p), "
            "offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, "
            "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, "
            "slice_sizes={1,1}"})
    expect_as_named(body);
}

}  // namespace
}  // namespace heddle::interp
