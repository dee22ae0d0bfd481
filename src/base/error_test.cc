#include "base/error.h"

#include <gtest/gtest.h>

#include <memory>

namespace heddle {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return user_error("{} is odd; give an even number", n);
  return n / 2;
}

Status even(int n) {
  HEDDLE_RETURN_IF_ERROR(half(n));
  return {};
}

Result<int> quarter(int n) {
  HEDDLE_ASSIGN_OR_RETURN(int first, half(n));
  HEDDLE_ASSIGN_OR_RETURN(first, half(first));
  return first;
}

Result<std::unique_ptr<int>> boxed(int n) {
  HEDDLE_ASSIGN_OR_RETURN(int value, half(n));
  return std::make_unique<int>(value);
}

TEST(error, KindsAndMessages) {
  tl::unexpected<Error> user = user_error("axis {} of rank {}", 4, 2);
  EXPECT_EQ(user.value().kind, ErrorKind::user);
  EXPECT_EQ(user.value().message, "axis 4 of rank 2");
  EXPECT_EQ(machine_error("no {}", "memory").value().kind, ErrorKind::machine);
}

TEST(error, WhereIsPutInFront) {
  Error inner{ErrorKind::machine, "no memory"};
  Error outer = error_in("model.onnx", error_in("node 'a'", inner).value()).value();
  EXPECT_EQ(outer.message, "model.onnx: node 'a': no memory");
  EXPECT_EQ(outer.kind, ErrorKind::machine);
}

TEST(error, MacrosReturnTheFirstError) {
  EXPECT_TRUE(even(2));
  EXPECT_EQ(even(3).error().message, "3 is odd; give an even number");
  EXPECT_EQ(quarter(12).value(), 3);
  EXPECT_EQ(quarter(6).error().message, "3 is odd; give an even number");
}

TEST(error, MacrosMoveTheValue) {
  auto take = [](int n) -> Result<int> {
    HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<int> box, boxed(n));
    return *box + 1;
  };
  EXPECT_EQ(take(8).value(), 5);
  EXPECT_EQ(take(7).error().kind, ErrorKind::user);
}

}  // namespace
}  // namespace heddle
