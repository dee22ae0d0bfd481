#include "emit/llvm/test_code.h"

#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace heddle::emit {

struct TestCode::Jit {
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

TestCode::TestCode() : jit_(std::make_unique<Jit>()) {}
TestCode::~TestCode() = default;

Result<std::unique_ptr<TestCode>> TestCode::make(const kernel::Kernel& kernel,
                                                 const target::Target& target) {
  HEDDLE_ASSIGN_OR_RETURN(Compiled compiled, compile({&kernel}, target));
  std::unique_ptr<TestCode> code(new TestCode);
  code->kernel_ = &kernel;
  auto failed = [](llvm::Error error) {
    return machine_error("{}", llvm::toString(std::move(error)));
  };
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit) return failed(jit.takeError());
  code->jit_->jit = std::move(*jit);
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(compiled.object);
  if (auto error = code->jit_->jit->addObjectFile(std::move(buffer))) {
    return failed(std::move(error));
  }
  for (size_t i = 0; i < kernel.phases.size(); ++i) {
    auto address = code->jit_->jit->lookup(fmt::format("{}_p{}", kernel.name, i));
    if (!address) return failed(address.takeError());
    code->phases_.push_back(address->toPtr<PhaseFunction>());
  }
  return code;
}

void TestCode::run(const std::vector<void*>& memory, const std::vector<int64_t>& dims,
                   int parts) const {
  size_t bytes = static_cast<size_t>(std::max<int64_t>(kernel_->scratch_bytes, 1));
  void* scratch = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  for (size_t i = 0; i < phases_.size(); ++i) {
    int64_t tasks = kernel::task_count(*kernel_, kernel_->phases[i], dims);
    for (int part = 0; part < parts; ++part) {
      std::fill_n(static_cast<unsigned char*>(scratch), bytes, 0xa5);
      phases_[i](memory.data(), dims.data(), tasks * part / parts, tasks * (part + 1) / parts,
                 scratch);
    }
  }
  std::free(scratch);
}

namespace {

constexpr const char* kNames[] = {"portable", "avx2", "icelake", "spr"};

bool runs_here(const target::Target& target) {
  target::Target host = target::host_target();
  return std::all_of(target.features.begin(), target.features.end(),
                     [&](const std::string& feature) { return host.has(feature); });
}

}  // namespace

std::vector<uint32_t> test_words(tensor::Type type, size_t words, uint32_t seed) {
  std::vector<uint32_t> result(words);
  const int bits = tensor::type_bits(type);
  for (size_t i = 0; i < words * static_cast<size_t>(32 / bits); ++i) {
    seed = seed * 1664525 + 1013904223;
    uint64_t element = seed >> 24;
    if (tensor::is_float(type))
      element = tensor::float_to_bits(type, (static_cast<double>(element) - 128) / 64);
    const size_t at = i * static_cast<size_t>(bits);
    result[at / 32] |= static_cast<uint32_t>(element & ((uint64_t{1} << bits) - 1)) << (at % 32);
  }
  return result;
}

std::vector<target::Target> runnable_targets() {
  std::vector<target::Target> result;
  for (const char* name : kNames) {
    target::Target target = *target::find_target(name);
    if (runs_here(target)) result.push_back(target);
  }
  return result;
}

void report_missing_targets() {
  for (const char* name : kNames) {
    if (!runs_here(*target::find_target(name))) std::printf("[ SKIPPED  ] target %s\n", name);
  }
}

}  // namespace heddle::emit
