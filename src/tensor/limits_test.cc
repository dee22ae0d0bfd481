#include "tensor/limits.h"

#include <gtest/gtest.h>

#include <new>

#include "tensor/literal.h"

namespace heddle::tensor {
namespace {

TEST(Limits, MemoryIsWhatTheMachineHas) {
  EXPECT_GT(memory_limit_bytes(), int64_t{64} << 20);
  EXPECT_TRUE(check_memory("a value", 1 << 20));
  if (memory_limit_bytes() == INT64_MAX) GTEST_SKIP() << "nothing tells how much memory there is";
  const Status refused = check_memory("f32[9]", memory_limit_bytes() + 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::memory);
  EXPECT_TRUE(refused.error().message.starts_with("f32[9] needs ")) << refused.error().message;
}

TEST(Limits, ValuesBeyondItAreRefusedAndNeverTaken) {
  for (const int64_t extent : {int64_t{1} << 46, int64_t{1} << 60, INT64_MAX}) {
    const Shape shape = Shape::array(Type::u8, {extent});
    const Result<Literal> made = Literal::make(shape);
    ASSERT_FALSE(made) << extent;
    EXPECT_EQ(made.error().kind, ErrorKind::memory);
    EXPECT_THROW(Literal{shape}, std::bad_alloc);
  }
}

}  // namespace
}  // namespace heddle::tensor
