// heddle.hpp with HEDDLE_EXPECTED: errors are values, and nothing is thrown.
#define HEDDLE_EXPECTED
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/heddle.hpp"
#include "small_onnx.h"

namespace cpp_expected_test {
namespace {

using ::testing::HasSubstr;

heddle::CompileOptions interpreted() {
  heddle::CompileOptions options;
  options.device = "interp";
  return options;
}

TEST(Expected, ValuesAreThere) {
  heddle::OpenOptions bounded;
  bounded.bounds["length"] = 8;
  const auto program =
      heddle::Program::parse("m.onnx", small_onnx::bounded_add(), bounded, interpreted());
  ASSERT_TRUE(program) << program.error().message();
  auto context = program->context();
  ASSERT_TRUE(context.has_value());
  const auto a = heddle::Tensor::of<float>({4, 1}, {1, 2, 3, 4});
  ASSERT_TRUE(a);
  const auto sums = context->run({{"a", *a}, {"b", *a}});
  ASSERT_TRUE(sums) << sums.error().message();
  const auto y = sums->at("y").span<const float>();
  ASSERT_TRUE(y);
  EXPECT_EQ((*y)[3], 8);
  const heddle::Result<void> again = context->run();
  EXPECT_TRUE(again);
}

TEST(Expected, ErrorsAreValues) {
  const auto none = heddle::Model::open("/no/such/model");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind(), heddle::ErrorKind::user);
  EXPECT_THAT(none.error().message(), HasSubstr("/no/such/model"));

  const auto huge = heddle::Tensor::zeros<float>({std::int64_t{1} << 58});
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().code(), heddle::ErrorCode::memory);

  const auto foo = heddle::Model::parse(
      "m.onnx", small_onnx::model({small_onnx::value("x", {"3"})},
                                  {small_onnx::node("Foo", {"x"}, "y")}, {"y"}));
  ASSERT_FALSE(foo);
  ASSERT_EQ(foo.error().unsupported().size(), 1u);
  EXPECT_EQ(foo.error().unsupported()[0].what, "Foo");
}

TEST(Expected, ErrorsOfAStepEndTheWhole) {
  const auto program =
      heddle::Program::parse("m.onnx", small_onnx::bounded_add(), {}, interpreted());
  ASSERT_TRUE(program);
  auto context = program->context();
  ASSERT_TRUE(context);
  const auto a = heddle::Tensor::zeros<float>({4, 1}), wrong = heddle::Tensor::zeros<float>({4, 9});
  const auto missing = context->run({{"a", *a}});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message(), HasSubstr("no value for input b"));
  const auto shape = context->run({{"a", *a}, {"b", *wrong}});
  ASSERT_FALSE(shape);
  EXPECT_EQ(shape.error().code(), heddle::ErrorCode::shape);
  const auto bound = context->bind_output("z", *a);
  ASSERT_FALSE(bound);
  const auto open = heddle::Program::open("/no/such/model");
  ASSERT_FALSE(open);
  const auto type = a->span<int>();
  ASSERT_FALSE(type);
}

}  // namespace
}  // namespace cpp_expected_test
