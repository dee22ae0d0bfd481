// Emitted code against the kernel interpreter on random kernels.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "emit/llvm/test_code.h"
#include "kernel/interp.h"
#include "kernel/random_kernel.h"
#include "kernel/text.h"

namespace heddle::emit {
namespace {

using tensor::Type;

int64_t number_from(const char* variable, int64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atoll(text) : otherwise;
}

// Some small kernels, each for one target in turn. HEDDLE_THOROUGH: 200 large ones for all
// targets; HEDDLE_FIRST_SEED and HEDDLE_SEEDS choose others.
TEST(Random, AgreesWithTheInterpreter) {
  std::vector<target::Target> targets = runnable_targets();
  report_missing_targets();
  bool thorough = std::getenv("HEDDLE_THOROUGH") != nullptr;
  int64_t first = number_from("HEDDLE_FIRST_SEED", 0);
  int64_t count = number_from("HEDDLE_SEEDS", thorough ? 200 : 45);
  kernel::RandomKernelOptions options;
  options.storage_types = {Type::f16,    Type::bf16,       Type::f8e4m3fn,
                           Type::f8e5m2, Type::f8e4m3fnuz, Type::f8e8m0fnu};
  options.sections = thorough ? 6 : 1;
  options.function_ulp = 1e5;  // the _fast forms; math_test has the bounds
  int failures = 0;
  for (int64_t seed = first; seed < first + count && failures < 3; ++seed) {
    kernel::RandomKernel random = kernel::random_kernel(static_cast<uint64_t>(seed), options);
    std::vector<kernel::HostBuffer> want = random.memory;
    kernel::InterpReport report =
        kernel::interpret(random.kernel, kernel::pointers(want), random.dims);
    ASSERT_TRUE(report.faults.empty()) << "seed " << seed << ": " << report.faults[0];
    for (size_t i = 0; i < targets.size(); ++i) {
      if (!thorough && static_cast<size_t>(seed) % targets.size() != i) continue;
      auto code = TestCode::make(random.kernel, targets[i]);
      ASSERT_TRUE(code.has_value()) << "seed " << seed << ": " << code.error().message;
      std::vector<kernel::HostBuffer> got = random.memory;
      (*code)->run(kernel::pointers(got), random.dims, static_cast<int>(seed % 3) + 1);
      std::string difference = kernel::difference(random, got, want);
      EXPECT_EQ(difference, "") << "seed " << seed << ", target " << targets[i].name << "\n"
                                << kernel::to_string(random.kernel);
      failures += !difference.empty();
    }
  }
}

}  // namespace
}  // namespace heddle::emit
