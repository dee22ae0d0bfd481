// Interleaved vectors: the same bits as one vector after the other.
#include "emit/llvm/interleave.h"

#include <gtest/gtest.h>

#include <cstring>

#include "emit/llvm/test_code.h"
#include "kernel/text.h"

namespace heddle::emit {
namespace {

struct Memory {
  std::vector<float> x, y;
  Memory() : x(400), y(400) {
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(static_cast<int>(i * 37 % 201) - 100) / 8;
      y[i] = static_cast<float>(i % 13) / 4;
    }
  }
};

kernel::Kernel parsed(const std::string& body) {
  auto kernel = kernel::parse_kernel(
      "heddle.kernel 1\nkernel k { buffer x: f32[400] global in buffer y: f32[400] global inout "
      "buffer acc: f32[4] reg lanes 16 phase { group { " +
      body + " } } }\n");
  EXPECT_TRUE(kernel.has_value()) << (kernel ? "" : kernel.error().message);
  return std::move(*kernel);
}

std::vector<float> run(const std::string& body, const target::Target& target) {
  const kernel::Kernel kernel = parsed(body);
  auto code = TestCode::make(kernel, target);
  EXPECT_TRUE(code.has_value()) << (code ? "" : code.error().message);
  Memory memory;
  (*code)->run({memory.x.data(), memory.y.data()}, {});
  return memory.y;
}

void expect_equal(const std::string& one, const std::string& other) {
  for (const target::Target& target : runnable_targets()) {
    const std::vector<float> a = run(one, target), b = run(other, target);
    EXPECT_NE(a, Memory().y);
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0) << target.name << "\n"
                                                                            << one;
  }
}

// Twelve loops of 60 functions: eight interleaved vectors would be too much code, one is not.
TEST(Interleave, LongPhasesHaveFewerSideBySide) {
  const auto loop = [](int functions, int part) {
    std::string value = fmt::format("x[i{}]", part);
    for (int f = 0; f < functions; ++f) value = "exp(" + value + ")";
    return fmt::format("vector i{} 400 lanes 16 {{ y[i{}] = {} }} ", part, part, value);
  };
  std::string body;
  for (int part = 0; part < 12; ++part) body += loop(60, part);
  expect_equal(body, loop(60, 0));
}

TEST(Interleave, ManyVectorsGiveTheBitsOfOne) {
  auto value = [](const std::string& at) { return fmt::format("exp(x[{0}])*tanh(x[{0}])", at); };
  for (int vectors : {1, 2, 3, 4, 5, 7, 8, 19, 22}) {
    for (int tail : {0, 5}) {
      const int whole = vectors * 16;
      std::string apart =
          fmt::format("serial r {} {{ vector i 16 lanes 16 {{ y[r*16 + i] = {} }} }}", vectors,
                      value("r*16 + i"));
      if (tail > 0)
        apart += fmt::format(" vector j {} lanes 16 {{ y[{} + j] = {} }}", tail, whole,
                             value(fmt::format("{} + j", whole)));
      expect_equal(fmt::format("vector i {} lanes 16 {{ y[i] = {} }}", whole + tail, value("i")),
                   apart);
    }
  }
}

TEST(Interleave, WhatReadsItsOwnResultsIsLeftAlone) {
  const std::string behind = "vector i 96 lanes 16 { y[i + 16] = tanh(y[i])*x[i] }";
  const kernel::Kernel kernel = parsed(behind);
  EXPECT_FALSE(reads_nothing_stored(kernel, kernel.phases[0].groups[0].body[0].body));
  expect_equal(behind,
               "serial r 6 { vector i 16 lanes 16 { y[r*16 + i + 16] = "
               "tanh(y[r*16 + i])*x[r*16 + i] } }");
}

TEST(Interleave, WhatIsReadWhereItIsStoredIsNot) {
  const std::string same = "vector i 144 lanes 16 { y[i] = tanh(y[i])*x[i] }";
  const kernel::Kernel kernel = parsed(same);
  EXPECT_TRUE(reads_nothing_stored(kernel, kernel.phases[0].groups[0].body[0].body));
  expect_equal(same,
               "serial r 9 { vector i 16 lanes 16 { y[r*16 + i] = tanh(y[r*16 + i])*x[r*16 + i] } "
               "}");
}

TEST(Interleave, AccumulatorsStayApart) {
  expect_equal(
      "unrolled u 4 { vector l 16 lanes 16 { acc[u] = exp(x[u*16 + l]) } } "
      "unrolled v 4 { vector m 16 lanes 16 { acc[v] = acc[v] + logistic(x[v*16 + m + 64]) } } "
      "unrolled w 4 { vector o 16 lanes 16 { y[w*16 + o] = acc[w] } }",
      "vector l 16 lanes 16 { acc[0] = exp(x[l]) acc[1] = exp(x[l + 16]) acc[2] = exp(x[l + 32]) "
      "acc[3] = exp(x[l + 48]) } "
      "vector m 16 lanes 16 { acc[0] = acc[0] + logistic(x[m + 64]) "
      "acc[1] = acc[1] + logistic(x[m + 80]) acc[2] = acc[2] + logistic(x[m + 96]) "
      "acc[3] = acc[3] + logistic(x[m + 112]) } "
      "vector o 16 lanes 16 { y[o] = acc[0] y[o + 16] = acc[1] y[o + 32] = acc[2] "
      "y[o + 48] = acc[3] }");
  // One accumulator for all copies: in order.
  expect_equal(
      "vector k 16 lanes 16 { acc[0] = x[k] } "
      "unrolled u 4 { vector l 16 lanes 16 { acc[0] = exp(x[u*16 + l]) - acc[0]*0.5:f32 } } "
      "vector o 16 lanes 16 { y[o] = acc[0] }",
      "vector k 16 lanes 16 { acc[0] = x[k] } "
      "serial u 4 { vector l 16 lanes 16 { acc[0] = exp(x[u*16 + l]) - acc[0]*0.5:f32 } } "
      "vector o 16 lanes 16 { y[o] = acc[0] }");
}

TEST(Interleave, FetchesStandBetweenTheOthers) {
  for (int vectors : {9, 19}) {
    expect_equal(fmt::format("vector i {} lanes 16 {{ prefetch x[i + 64] level 1 "
                             "prefetch y[i + 64] level 2 y[i] = exp(x[i])*logistic(x[i]) }}",
                             vectors * 16),
                 fmt::format("serial r {} {{ vector i 16 lanes 16 {{ y[r*16 + i] = "
                             "exp(x[r*16 + i])*logistic(x[r*16 + i]) }} }}",
                             vectors));
    expect_equal(fmt::format("unrolled u {} {{ vector i 16 lanes 16 {{ prefetch x[u*16 + i + 64] "
                             "level 1 y[u*16 + i] = exp(x[u*16 + i]) }} }}",
                             vectors),
                 fmt::format("serial u {} {{ vector i 16 lanes 16 {{ y[u*16 + i] = "
                             "exp(x[u*16 + i]) }} }}",
                             vectors));
  }
}

}  // namespace
}  // namespace heddle::emit
