// For tests: compiled kernels in this process, and the targets that this machine can run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "emit/llvm/compile.h"
#include "kernel/kernel.h"

namespace heddle::emit {

using PhaseFunction = void (*)(void* const* buffers, const int64_t* dims, int64_t begin,
                               int64_t end, void* scratch);

// Linked by LLVM's own linker; the code lives as long as the object.
class TestCode {
 public:
  static Result<std::unique_ptr<TestCode>> make(const kernel::Kernel& kernel,
                                                const target::Target& target);
  ~TestCode();
  // Runs all phases, the tasks in `parts` pieces.
  void run(const std::vector<void*>& memory, const std::vector<int64_t>& dims, int parts = 1) const;
  PhaseFunction phase(size_t index) const { return phases_[index]; }

 private:
  TestCode();
  struct Jit;
  std::unique_ptr<Jit> jit_;
  const kernel::Kernel* kernel_ = nullptr;
  std::vector<PhaseFunction> phases_;
};

// 32-bit words filled with small numbers of a type.
std::vector<uint32_t> test_words(tensor::Type type, size_t words, uint32_t seed);

// The targets of "portable", "avx2", "icelake", "spr" that this machine can run.
std::vector<target::Target> runnable_targets();
// Says on stdout which ones were left out.
void report_missing_targets();

}  // namespace heddle::emit
