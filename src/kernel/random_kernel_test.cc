#include "kernel/random_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/interp.h"
#include "kernel/interp_exec.h"
#include "kernel/text.h"
#include "kernel/verify.h"

namespace heddle::kernel {
namespace {

using ::testing::IsEmpty;

constexpr uint64_t kSeeds = 200;

std::vector<HostBuffer> results(const Kernel& kernel, const RandomKernel& random, uint64_t order,
                                InterpReport* report = nullptr) {
  std::vector<HostBuffer> memory = random.memory;
  InterpReport got = interpret(kernel, pointers(memory), random.dims, order);
  EXPECT_THAT(got.faults, IsEmpty()) << to_string(kernel);
  if (report != nullptr) *report = std::move(got);
  return memory;
}

TEST(RandomKernel, IsValidFaultlessAndPrintable) {
  std::vector<int64_t> evaluations(kOpCount);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    RandomKernel random = random_kernel(seed);
    Status status = verify(random.kernel);
    ASSERT_TRUE(status) << status.error().message << "\n" << to_string(random.kernel);
    std::string text = to_string(random.kernel);
    auto again = parse_kernel(text);
    ASSERT_TRUE(again) << again.error().message << "\n" << text;
    ASSERT_EQ(to_string(*again), text);
    ASSERT_EQ(to_string(random_kernel(seed).kernel), text);
    InterpReport report;
    std::vector<HostBuffer> want = results(random.kernel, random, 0, &report);
    // What was parsed computes the same, and the order of the tasks does not matter.
    EXPECT_EQ(difference(random, results(*again, random, seed + 1), want), "");
    for (size_t i = 0; i < kOpCount; ++i) evaluations[i] += report.op_counts[i];
    if (HasFailure()) return;
  }
  for (size_t i = 0; i < kOpCount; ++i) {
    Op op = static_cast<Op>(i);
    if (op == Op::constant || op == Op::var || op == Op::dim) continue;
    if (op == Op::dot) continue;  // not every processor's; emit/llvm/dot_test.cc
    EXPECT_GT(evaluations[i], 0) << op_text(op);
  }
}

// All statements and buffers that an emitter must handle occur.
TEST(RandomKernel, CoversTheLanguage) {
  std::string all;
  for (uint64_t seed = 0; seed < 60; ++seed) all += to_string(random_kernel(seed).kernel);
  for (const char* wanted :
       {"serial",  "unrolled", "vector",    "unroll ",  "let ",       "if ",          "else",
        "barrier", "prefetch", "streaming", "load_if(", "lane(",      "shuffle_xor(", " if ",
        "inout",   "lanes 4",  "lanes 16",  "reg\n",    "scratch at", "dims ",        "aligned",
        "grid (p", "bf16",     "f16",       "s8[",      "u64[",       "f64[",         "pred["}) {
    EXPECT_NE(all.find(wanted), std::string::npos) << wanted;
  }
}

TEST(RandomKernel, OptionsHold) {
  RandomKernelOptions options;
  options.lanes = {8};
  options.storage_types = {};
  options.f64 = options.narrow_integers = options.functions = options.run_time_dims =
      options.float_rem = false;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    RandomKernel random = random_kernel(seed, options);
    ASSERT_TRUE(verify(random.kernel)) << verify(random.kernel).error().message;
    EXPECT_TRUE(random.dims.empty());
    for (const Buffer& buffer : random.kernel.buffers) {
      EXPECT_TRUE(buffer.lanes == 0 || buffer.lanes == 8);
      EXPECT_TRUE(buffer.type != Type::f64 && buffer.type != Type::bf16 && buffer.type != Type::s8);
    }
    for (double ulp : random.max_ulp) EXPECT_EQ(ulp, 0);
    InterpReport report;
    results(random.kernel, random, 0, &report);
    EXPECT_EQ(report.op_counts[static_cast<size_t>(Op::exp)], 0);
  }
}

TEST(RandomKernel, DifferencesAreSeen) {
  RandomKernel random = random_kernel(3);
  std::vector<HostBuffer> memory = random.memory;
  EXPECT_EQ(difference(random, memory, random.memory), "");
  static_cast<char*>(memory[1].data())[4] ^= 1;
  EXPECT_NE(difference(random, memory, random.memory), "");
}

}  // namespace
}  // namespace heddle::kernel
