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

int64_t number_from(const char* variable, int64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atoll(text) : otherwise;
}

// Every seed runs for one target, in turn. HEDDLE_SEEDS=n runs n seeds from HEDDLE_FIRST_SEED on
// all.
TEST(Random, AgreesWithTheInterpreter) {
  std::vector<target::Target> targets = runnable_targets();
  report_missing_targets();
  bool all = std::getenv("HEDDLE_SEEDS") != nullptr;
  int64_t first = number_from("HEDDLE_FIRST_SEED", 0), count = number_from("HEDDLE_SEEDS", 200);
  kernel::RandomKernelOptions options;
  options.storage_types = {tensor::Type::f16,    tensor::Type::bf16,       tensor::Type::f8e4m3fn,
                           tensor::Type::f8e5m2, tensor::Type::f8e4m3fnuz, tensor::Type::f8e8m0fnu};
  for (int64_t seed = first; seed < first + count; ++seed) {
    kernel::RandomKernel random = kernel::random_kernel(static_cast<uint64_t>(seed), options);
    std::vector<kernel::HostBuffer> want = random.memory;
    kernel::InterpReport report =
        kernel::interpret(random.kernel, kernel::pointers(want), random.dims);
    ASSERT_TRUE(report.faults.empty()) << "seed " << seed << ": " << report.faults[0];
    for (size_t i = 0; i < targets.size(); ++i) {
      if (!all && static_cast<size_t>(seed) % targets.size() != i) continue;
      auto code = TestCode::make(random.kernel, targets[i]);
      ASSERT_TRUE(code.has_value()) << "seed " << seed << ": " << code.error().message;
      std::vector<kernel::HostBuffer> got = random.memory;
      (*code)->run(kernel::pointers(got), random.dims, static_cast<int>(seed % 3) + 1);
      std::string difference = kernel::difference(random, got, want);
      EXPECT_EQ(difference, "") << "seed " << seed << ", target " << targets[i].name << "\n"
                                << (all ? kernel::to_string(random.kernel) : "");
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace heddle::emit
