// Prepared weights in the compile cache: a second start maps them, and a damaged entry is a miss.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "api/session.h"
#include "cache/object_cache.h"
#include "import/onnx_test_util.h"
#include "program/program.h"

namespace heddle::api {
namespace {

namespace fs = std::filesystem;
using import::testing::kFloat;
using import::testing::node;
using import::testing::value;

constexpr int64_t kDepth = 1024, kColumns = 1100;  // 4.3 MiB of weights

class OnceKeeper : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/heddle_once_keeper_" + std::to_string(getpid());
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // x [8, depth] times weights that depend on `factor`.
  static std::string product(int factor) {
    std::vector<float> w(static_cast<size_t>(kDepth * kColumns));
    for (size_t i = 0; i < w.size(); ++i)
      w[i] = static_cast<float>((i * 37 + i / 1000) % 101) * static_cast<float>(factor) / 128;
    import::testing::Model model;
    model.inputs = {value("x", kFloat, {"8", std::to_string(kDepth)})};
    model.constants = {import::testing::tensor("w", kFloat, {kDepth, kColumns}, w)};
    model.nodes = {node("MatMul", {"x", "w"}, {"y"})};
    model.outputs = {"y"};
    return model.bytes();
  }

  struct Run {
    std::vector<float> y = std::vector<float>(static_cast<size_t>(8 * kColumns));
    bool packed = false;  // packed by this run, not found in the cache
  };
  Run run(int factor = 1, CompileOptions options = {}) const {
    Run result;
    auto model = Model::parse("product", product(factor), {});
    EXPECT_TRUE(model) << model.error().message;
    options.cache = folder_;
    options.threads = 2;
    auto program = Program::compile(**model, options);
    EXPECT_TRUE(program) << program.error().message;
    auto context = (*program)->make_context();
    EXPECT_TRUE(context) << context.error().message;
    std::vector<float> x(static_cast<size_t>(8 * kDepth));
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 13) / 4;
    EXPECT_TRUE((*context)->bind_input(0, x.data()));
    EXPECT_TRUE((*context)->bind_output(0, result.y.data()));
    for (int i = 0; i < 2; ++i) EXPECT_TRUE((*context)->run());
    result.packed = !(*program)->compiled()->once.empty();
    return result;
  }
  std::vector<fs::path> entries() const {
    std::vector<fs::path> result;
    for (const auto& file : fs::recursive_directory_iterator(folder_))
      if (file.path().extension() == ".w") result.push_back(file.path());
    return result;
  }

  std::string folder_;
};

TEST_F(OnceKeeper, ASecondStartHasTheSameBits) {
  const Run first = run();
  EXPECT_TRUE(first.packed);
  ASSERT_EQ(entries().size(), 1u);  // the program's destructor waits for it
  const Run second = run();
  EXPECT_FALSE(second.packed);
  EXPECT_EQ(first.y, second.y);
  EXPECT_EQ(entries().size(), 1u);
}

TEST_F(OnceKeeper, OtherWeightsAreNotMixed) {
  const Run one = run(1), two = run(2);
  EXPECT_TRUE(two.packed);
  EXPECT_EQ(entries().size(), 2u);
  EXPECT_NE(one.y, two.y);
  EXPECT_EQ(run(1).y, one.y);
  EXPECT_EQ(run(2).y, two.y);
}

TEST_F(OnceKeeper, DamageIsPackedAnew) {
  const Run first = run();
  for (const bool cut : {false, true}) {
    const fs::path path = entries().at(0);
    if (cut) {
      fs::resize_file(path, fs::file_size(path) - 1);
    } else {
      std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(static_cast<std::streamoff>(fs::file_size(path)) / 2);
      file.put(static_cast<char>(file.peek() ^ 1));
    }
    const Run second = run();
    EXPECT_TRUE(second.packed);
    EXPECT_EQ(first.y, second.y);
    EXPECT_FALSE(run().packed);  // and the entry exists again
  }
}

// An entry removed while it is in use stays readable; the next start packs again.
TEST_F(OnceKeeper, EvictionWhileItIsMapped) {
  const Run first = run();
  auto cache = cache::ObjectCache::open(folder_);
  ASSERT_TRUE(cache);
  CompileOptions options;
  options.cache = folder_;
  auto model = Model::parse("product", product(1), {});
  auto program = Program::compile(**model, options);
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_TRUE((*program)->compiled()->once.empty());
  ASSERT_TRUE(cache->clear());
  EXPECT_TRUE(run().packed);
  auto context = (*program)->make_context();
  std::vector<float> x(static_cast<size_t>(8 * kDepth)), y = first.y;
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 13) / 4;
  ASSERT_TRUE((*context)->bind_input(0, x.data()));
  ASSERT_TRUE((*context)->bind_output(0, y.data()));
  ASSERT_TRUE((*context)->run());
  EXPECT_EQ(first.y, y);
}

void* allocate(void*, int64_t bytes) {
  return std::aligned_alloc(64, (size_t(bytes) + 63) / 64 * 64);
}
void release(void*, void* memory, int64_t) { std::free(memory); }

// Prepared weights are in memory of the caller's allocator.
TEST_F(OnceKeeper, AnAllocatorGetsThem) {
  CompileOptions options;
  options.allocator.allocate = &allocate;
  options.allocator.release = &release;
  EXPECT_TRUE(run(1, options).packed);
  EXPECT_TRUE(entries().empty());
  run();
  EXPECT_TRUE(run(1, options).packed);
}

}  // namespace
}  // namespace heddle::api
