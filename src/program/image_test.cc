#include "program/image.h"

#include <gtest/gtest.h>

#include <random>

#include "program/program.h"

namespace heddle::program {
namespace {

using tensor::Literal;
using tensor::Shape;
using tensor::Type;

Literal numbers(int64_t n, float first) {
  std::vector<float> values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>(i)] = first + static_cast<float>(i);
  return Literal::from<float>(Shape::array(Type::f32, {n}), values);
}

// A program with three constants: an array of the model, a part of another, and a separate one.
struct Example {
  std::vector<Literal> weights = {numbers(100, 0), numbers(64, 1000)};
  Program program;

  Example() {
    program.name = "example";
    program.object = {1, 2, 3};
    const Shape part = Shape::array(Type::f32, {16});
    const auto* second = static_cast<const float*>(weights[1].data());
    add(weights[0]);
    add(Literal::view(part, second + 32, std::make_shared<Literal>(weights[1])));
    program.buffers.push_back({"between", BufferKind::temporary, 64});
    program.constants.emplace_back();
    add(numbers(5, 7));
  }
  void add(const Literal& value) {
    program.buffers.push_back({"constant", BufferKind::constant, value.bytes()});
    program.constants.push_back(value);
  }
};

TEST(image, SharesTheModelsWeights) {
  Example e;
  const auto bytes = to_image(e.program, e.weights, 1000);
  ASSERT_TRUE(bytes);
  EXPECT_LT(bytes->size(), 1500u);
  // The model is read again: equal weights at other addresses.
  const std::vector<Literal> again = {numbers(100, 0), numbers(64, 1000)};
  auto read = from_image(*bytes, again);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->name, "example");
  EXPECT_EQ(read->object, e.program.object);
  for (const size_t i : {0, 1, 3}) EXPECT_EQ(read->constants[i], e.program.constants[i]) << i;
  EXPECT_EQ(read->constants[0].data(), again[0].data());
  EXPECT_EQ(read->constants[1].data(), static_cast<const float*>(again[1].data()) + 32);
}

TEST(image, TooMuchOfItsOwnIsNone) {
  Example e;
  EXPECT_TRUE(to_image(e.program, e.weights, 20));
  EXPECT_FALSE(to_image(e.program, e.weights, 19));
  EXPECT_FALSE(to_image(e.program, {}, 500));  // then all constants are stored
  EXPECT_TRUE(to_image(e.program, {}, 1000));
}

TEST(image, OtherBytesAreAnError) {
  Example e;
  const auto good = to_image(e.program, e.weights, 1000);
  EXPECT_FALSE(from_image(*good, {}));  // of a model with fewer weights
  EXPECT_FALSE(from_image(*good, std::vector<Literal>{numbers(99, 0), numbers(64, 1000)}));
  for (size_t size = 0; size + 64 <= good->size(); ++size)  // the last constant is padded
    EXPECT_FALSE(from_image(std::span(*good).first(size), e.weights)) << size;
  std::mt19937_64 random(5);
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint8_t> bad = *good;
    bad[random() % bad.size()] ^= static_cast<uint8_t>(1 + random() % 255);
    (void)from_image(bad, e.weights);  // must not crash; the cache checks a checksum before
  }
}

}  // namespace
}  // namespace heddle::program
