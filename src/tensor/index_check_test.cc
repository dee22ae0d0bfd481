#include "tensor/index_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace heddle::tensor {
namespace {

using ::testing::HasSubstr;

template <typename T>
std::string refusal(const IndexCheck& check, Type type, const std::vector<int64_t>& dims,
                    const std::vector<T>& values) {
  const Status status = check_indices(check, "ids", type, dims, values.data());
  return status ? "" : status.error().message;
}

const IndexCheck kTable{"node 'emb' (Gather)", {{-2000, 1999}}, 0, {}, {}};

TEST(IndexCheck, BothEndsAreInRange) {
  EXPECT_EQ(refusal<int64_t>(kTable, Type::s64, {2, 2}, {-2000, 1999, 0, -1}), "");
  EXPECT_EQ(refusal<int32_t>(kTable, Type::s32, {4}, {-2000, 1999, 0, -1}), "");
  EXPECT_EQ(refusal<int64_t>(kTable, Type::s64, {0}, {}), "");
}

TEST(IndexCheck, SaysWhichElementIsWhatAndWhatIsWanted) {
  EXPECT_EQ(refusal<int64_t>(kTable, Type::s64, {2, 4}, {0, 1, 2, 99999, 0, 0, 0, -77777}),
            "input 'ids' element [0,3] is 99999; node 'emb' (Gather) takes -2000 to 1999; give "
            "indices in that range");
  EXPECT_THAT(refusal<int64_t>(kTable, Type::s64, {}, {-2001}), HasSubstr("'ids' is -2001;"));
}

template <typename T>
void expect_ends(Type type) {
  for (const IndexRange range : {IndexRange{0, 0}, IndexRange{-5, 4}, IndexRange{0, 100}}) {
    const IndexCheck check{"n", {range}, 0, {}, {}};
    // 64 elements, to fill vectors; the deviating one takes every position.
    for (const int64_t value : {range.low - 1, range.low, range.high, range.high + 1,
                                static_cast<int64_t>(std::numeric_limits<T>::min()),
                                static_cast<int64_t>(std::numeric_limits<T>::max())}) {
      const T stored = static_cast<T>(value);
      // As u64, negative numbers are large.
      const bool inside = range.contains(static_cast<int64_t>(stored)) &&
                          (std::is_signed_v<T> || stored <= static_cast<T>(range.high));
      for (size_t at = 0; at < 64; ++at) {
        std::vector<T> values(64, T{0});
        values[at] = stored;
        EXPECT_EQ(refusal<T>(check, type, {64}, values) == "", inside) << value << " at " << at;
      }
    }
  }
}

TEST(IndexCheck, EveryIntegerTypeHasItsEnds) {
  expect_ends<int8_t>(Type::s8);
  expect_ends<int16_t>(Type::s16);
  expect_ends<int32_t>(Type::s32);
  expect_ends<int64_t>(Type::s64);
  expect_ends<uint8_t>(Type::u8);
  expect_ends<uint16_t>(Type::u16);
  expect_ends<uint32_t>(Type::u32);
  expect_ends<uint64_t>(Type::u64);
}

TEST(IndexCheck, MemoryMayLieAnywhere) {
  std::vector<char> memory(1 + 3 * sizeof(int64_t));
  const int64_t values[] = {1, 2, 2000};
  std::memcpy(memory.data() + 1, values, sizeof(values));
  const std::vector<int64_t> dims{3};
  EXPECT_THAT(check_indices(kTable, "ids", Type::s64, dims, memory.data() + 1).error().message,
              HasSubstr("element [2] is 2000"));
}

TEST(IndexCheck, EachComponentHasItsRange) {
  const IndexCheck check{"node 'nd' (GatherND)", {{-4, 3}, {-3, 2}}, 0, {}, {}};
  EXPECT_EQ(refusal<int64_t>(check, Type::s64, {2, 2}, {3, 2, -4, -3}), "");
  EXPECT_THAT(refusal<int64_t>(check, Type::s64, {2, 2}, {3, 2, 2, 3}),
              HasSubstr("element [1,1] is 3; node 'nd' (GatherND) takes -3 to 2"));
}

TEST(IndexCheck, OfABoxOnlyWhatIsInItIsLookedAt) {
  const std::vector<int64_t> dims{3, 4, 5};
  const std::vector<std::vector<int64_t>> boxes[] = {
      {{1, 0, 0}, {2, -1, -1}}, {{0, 1, 0}, {-1, 3, -1}},  {{0, 0, 4}, {-1, -1, -1}},
      {{1, 1, 1}, {3, 2, 4}},   {{0, 0, 0}, {-1, -1, -1}}, {{2, 3, 4}, {3, 4, 5}},
      {{0, 2, 0}, {2, 4, 5}}};
  for (const auto& box : boxes) {
    const IndexCheck check{"n", {{0, 7}}, 0, box[0], box[1]};
    for (int64_t i = 0; i < 60; ++i) {
      std::vector<int32_t> values(60, 7);
      values[static_cast<size_t>(i)] = 8;
      const int64_t at[] = {i / 20, i / 5 % 4, i % 5};
      bool inside = true;
      for (size_t d = 0; d < 3; ++d)
        inside = inside && at[d] >= box[0][d] && (box[1][d] < 0 || at[d] < box[1][d]);
      const std::string message = refusal<int32_t>(check, Type::s32, dims, values);
      const std::string place = fmt::format("element [{},{},{}] is 8", at[0], at[1], at[2]);
      if (inside)
        EXPECT_THAT(message, HasSubstr(place));
      else
        EXPECT_EQ(message, "") << i;
    }
  }
}

TEST(IndexCheck, TheLargestDifferenceTellsTheIndex) {
  const IndexCheck check{"node 'emb' (Gather)", {{-4, 3}}, -1, {}, {}};
  EXPECT_EQ(hidden_shape(check), Shape::scalar(Type::u64));
  EXPECT_EQ(hidden_outputs(std::vector<IndexCheck>{kTable, check, check}), 2);
  for (const int64_t index : {int64_t{-4}, int64_t{3}, int64_t{0}}) {
    const uint64_t worst = static_cast<uint64_t>(index) + 4;
    EXPECT_TRUE(check_computed(check, &worst)) << index;
  }
  for (const int64_t index : {int64_t{-5}, int64_t{4}, INT64_MAX, INT64_MIN}) {
    const uint64_t worst = static_cast<uint64_t>(index) + 4;
    const Status status = check_computed(check, &worst);
    ASSERT_FALSE(status) << index;
    EXPECT_EQ(status.error().kind, ErrorKind::user);
    EXPECT_THAT(status.error().message, HasSubstr("computes index " + std::to_string(index) +
                                                  "; node 'emb' (Gather) takes -4 to 3"));
  }
}

}  // namespace
}  // namespace heddle::tensor
