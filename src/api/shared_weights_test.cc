#include "api/shared_weights.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/parallel.h"
#include "runtime/cpu_device.h"

namespace heddle::api {
namespace {

using program::BufferKind;
using program::Program;
using tensor::Literal;
using tensor::Shape;
using tensor::Type;

constexpr int64_t kBytes = 4096;

struct Packed {
  Program program;
  Literal block;
};

// A program whose constants are pieces of a block, filled with these numbers, and one constant
// elsewhere.
Packed packed(const std::vector<char>& fills) {
  Packed result;
  const Shape piece = Shape::array(Type::u8, {kBytes});
  const auto count = static_cast<int64_t>(fills.size());
  result.block = Literal(Shape::array(Type::u8, {kBytes * count}));
  auto* data = static_cast<char*>(result.block.mutable_data());
  const auto owner = std::make_shared<const Literal>(result.block);
  for (size_t i = 0; i < fills.size(); ++i)
    std::memset(data + static_cast<int64_t>(i) * kBytes, fills[i], kBytes);
  for (size_t i = 0; i < fills.size(); ++i) {
    const int64_t at = static_cast<int64_t>(i) * kBytes;
    result.program.buffers.push_back({"w", BufferKind::constant, kBytes, at});
    result.program.constants.push_back(
        Literal::view(piece, static_cast<const char*>(owner->data()) + at, owner));
  }
  result.program.buffers.push_back({"own", BufferKind::constant, kBytes, kBytes * count});
  result.program.constants.emplace_back(piece);
  return result;
}

TEST(SharedWeights, WhatIsAlikeIsThereOnce) {
  Workers workers(1);
  const runtime::CpuDevice cpu(workers);
  SharedWeights weights;
  Packed a = packed({1, 2, 3}), b = packed({3, 4, 1}), c = packed({4, 4, 5});
  const void* own = b.program.constants[3].data();
  ASSERT_TRUE(weights.share(a.program, a.block, cpu.device(), 1));
  EXPECT_EQ(a.program.constants[0].data(), a.block.data());  // nothing was known: it stays
  const std::vector<Literal> before = b.program.constants;
  ASSERT_TRUE(weights.share(b.program, b.block, cpu.device(), 2));
  EXPECT_EQ(b.program.constants, before);
  EXPECT_EQ(b.program.constants[0].data(), a.program.constants[2].data());
  EXPECT_EQ(b.program.constants[2].data(), a.program.constants[0].data());
  EXPECT_EQ(b.program.constants[3].data(), own);
  const auto* moved = static_cast<const char*>(b.program.constants[1].data());
  const auto* block = static_cast<const char*>(b.block.data());
  EXPECT_TRUE(moved < block || moved >= block + b.block.bytes());  // so that its block can be freed
  EXPECT_EQ(reinterpret_cast<uintptr_t>(moved) % 64, 0u);
  ASSERT_TRUE(weights.share(c.program, c.block, cpu.device(), 1));
  EXPECT_EQ(c.program.constants[0].data(), moved);
  EXPECT_EQ(c.program.constants[1].data(), moved);
}

}  // namespace
}  // namespace heddle::api
