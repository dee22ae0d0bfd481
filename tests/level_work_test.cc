// Compilation is quickest at O0 and slowest at O2, on convolutional networks and a transformer.
// Counted, not timed: the bytes that a compilation on one thread asks `operator new` for,
// LLVM's among them, are the same in every run and grow with the work.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "compiler/compiler.h"
#include "import/onnx.h"
#include "plan/plan.h"
#include "target/target.h"

namespace {
std::atomic<int64_t> asked_bytes{0};
}

// Not inlined: the compiler would see free() of what it takes for another operator's memory.
[[gnu::noinline]] void* operator new(size_t bytes) {
  asked_bytes += static_cast<int64_t>(bytes);
  if (void* block = std::malloc(bytes > 0 ? bytes : 1)) return block;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, size_t) noexcept { std::free(block); }

namespace heddle {
namespace {

class LevelWork : public ::testing::TestWithParam<const char*> {};

TEST_P(LevelWork, GrowsWithTheLevel) {
  auto imported = import::import_onnx(
      std::string(HEDDLE_SOURCE_DIR) + "/tests/testdata/onnx/" + GetParam() + "/model.onnx", {});
  ASSERT_TRUE(imported) << imported.error().message;
  const target::Target target = *target::find_target("icelake");
  const plan::Names names{imported->input_names, {}, imported->output_names};
  int64_t below = 0;
  compiler::Options options;
  // What is loaded and remembered by the first compilation of a process is no level's.
  ASSERT_TRUE(compiler::compile(imported->module->clone(), names, target, options));
  for (compiler::Level level : {compiler::Level::O0, compiler::Level::O1, compiler::Level::O2}) {
    options.level = level;
    const int64_t before = asked_bytes;
    auto program = compiler::compile(imported->module->clone(), names, target, options);
    ASSERT_TRUE(program) << program.error().message;
    const int64_t asked = asked_bytes - before;
    std::printf("%s O%d: %.1f MB\n", GetParam(), static_cast<int>(level),
                static_cast<double>(asked) / 1e6);
    EXPECT_LT(below, asked) << "O" << static_cast<int>(level);
    below = asked;
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, LevelWork,
                         ::testing::Values("mobilenet", "squeezenet", "resnet18", "minilm"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace heddle
