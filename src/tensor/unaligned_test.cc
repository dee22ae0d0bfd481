#include "tensor/unaligned.h"

#include <gtest/gtest.h>

#include <cstring>

namespace heddle::tensor {
namespace {

// `count` floats 0, 1, … that begin one byte after an aligned address.
Literal odd_view(int64_t count) {
  auto bytes = std::make_shared<std::vector<char>>(static_cast<size_t>(count) * 4 + 8);
  char* at = bytes->data();
  while (reinterpret_cast<uintptr_t>(at) % 4 != 1) ++at;
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(i);
    std::memcpy(at + i * 4, &value, 4);
  }
  return Literal::view(Shape::array(Type::f32, {count}), at, bytes);
}

TEST(unaligned, LargeViewsStayWhereTheyLie) {
  constexpr int64_t kCount = kLeastUnalignedBytes / 4;
  const Literal large = odd_view(kCount);
  EXPECT_FALSE(is_element_aligned(large));
  EXPECT_EQ(large.get_f64(kCount - 1), kCount - 1);
  EXPECT_TRUE(is_element_aligned(odd_view(kCount - 1)));
  const Literal aligned = element_aligned(large);
  EXPECT_TRUE(is_element_aligned(aligned));
  EXPECT_EQ(aligned, large);
  EXPECT_EQ(aligned.values<float>()[7], 7);
  EXPECT_EQ(element_aligned(aligned).data(), aligned.data());  // no second copy
  Literal written = large;
  written.set_f64(0, 5);
  EXPECT_TRUE(is_element_aligned(written));
  EXPECT_EQ(large.get_f64(0), 0);
}

TEST(unaligned, TuplesAreAlignedElementByElement) {
  const Literal tuple =
      Literal::tuple({odd_view(kLeastUnalignedBytes), Literal(Shape::array(Type::f32, {2}))});
  EXPECT_FALSE(is_element_aligned(tuple));
  EXPECT_TRUE(is_element_aligned(element_aligned(tuple)));
  EXPECT_EQ(element_aligned(tuple), tuple);
}

}  // namespace
}  // namespace heddle::tensor
