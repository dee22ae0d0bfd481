// Sixteen threads that open, compile, run, cancel and free at random, through heddle.hpp. With
// ThreadSanitizer in sanitized_threads_cpp_test.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <random>
#include <thread>

#include "api/heddle.hpp"
#include "small_onnx.h"

namespace threads_cpp_test {
namespace {

constexpr int kThreads = 16, kSteps = 60;
constexpr std::size_t kPrograms = 4;

// What the threads share.
class Shared {
 public:
  explicit Shared(const heddle::Model* model) : model_(model) {
    for (std::size_t i = 0; i < kPrograms; ++i) programs_.push_back(compiled("O1"));
  }

  std::shared_ptr<const heddle::Program> compiled(const char* level) const {
    heddle::CompileOptions options;
    options.cache = "off";
    options.level = level;
    options.threads = 2;
    return std::make_shared<const heddle::Program>(model_->compile(options));
  }
  std::shared_ptr<const heddle::Program> program(std::size_t i) {
    const std::lock_guard lock(mutex_);
    return programs_[i];
  }
  // The one before may be freed, while others run contexts of it.
  void replace(std::size_t i, std::shared_ptr<const heddle::Program> with) {
    const std::lock_guard lock(mutex_);
    programs_[i].swap(with);
  }
  void add(const std::shared_ptr<heddle::Context>& context) {
    const std::lock_guard lock(mutex_);
    running_.push_back(context);
  }
  void cancel_one(std::size_t i) {
    std::shared_ptr<heddle::Context> context;
    {
      const std::lock_guard lock(mutex_);
      if (running_.empty()) return;
      i %= running_.size();
      context = running_[i].lock();
      if (!context) running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (context) context->cancel();
  }

  std::atomic<int> runs{0}, cancelled{0}, compilations{0};

 private:
  const heddle::Model* model_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<const heddle::Program>> programs_;
  std::vector<std::weak_ptr<heddle::Context>> running_;
};

class Worker {
 public:
  Worker(Shared* shared, unsigned seed) : shared_(*shared), random_(seed) { renew(); }

  void step() {
    switch (random_() % 8) {
      case 0:
        return recompile();
      case 1:
        return renew();
      case 2:
        return shared_.cancel_one(random_());
      case 3:
        return open_wrongly();
      default:
        return run();
    }
  }

 private:
  void recompile() {
    shared_.replace(random_() % kPrograms, shared_.compiled(random_() % 2 == 0 ? "O0" : "O1"));
    ++shared_.compilations;
  }
  void renew() {
    context_ = std::make_shared<heddle::Context>(shared_.program(random_() % kPrograms)->context());
    shared_.add(context_);
  }
  static void open_wrongly() {
    EXPECT_THROW(heddle::Model::parse("m", "nonsense"), heddle::UserError);
  }
  void run() {
    const auto length = static_cast<std::int64_t>(random_() % 16 + 1);
    const heddle::Tensor a = heddle::Tensor::zeros<float>({4, length});
    const auto value = static_cast<float>(random_() % 100);
    for (float& element : a.span<float>()) element = value;
    try {
      const heddle::Tensors sums = context_->run({{"a", a}, {"b", a}});
      for (const float sum : sums.at("y").span<const float>()) ASSERT_EQ(sum, 2 * value);
      ++shared_.runs;
    } catch (const heddle::Cancelled&) {
      ++shared_.cancelled;
    }
  }

  Shared& shared_;
  std::mt19937 random_;
  std::shared_ptr<heddle::Context> context_;
};

TEST(ThreadsCpp, CompileRunCancelAndFreeAtOnce) {
  heddle::OpenOptions bounded;
  bounded.bounds["length"] = 16;
  const heddle::Model model = heddle::Model::parse("add.onnx", small_onnx::bounded_add(), bounded);
  std::atomic<int> lines{0};
  heddle::set_log(heddle::LogLevel::debug, [&](heddle::LogLevel, std::string_view) { ++lines; });
  Shared shared(&model);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i)
    threads.emplace_back([&shared, i] {
      Worker worker(&shared, i);
      for (int step = 0; step < kSteps; ++step) worker.step();
    });
  for (std::thread& thread : threads) thread.join();
  heddle::set_log(heddle::LogLevel::nothing);
  EXPECT_GT(shared.runs, kThreads * kSteps / 4);
  EXPECT_GT(shared.cancelled, 0);
  EXPECT_GT(shared.compilations, kThreads);
  EXPECT_GT(lines, 0);
}

}  // namespace
}  // namespace threads_cpp_test
