// Fusing never costs. Small networks and rows as `stitch` makes them, beside greedy fusion and none
// at all: once by the clock of the cost model, on processors that need not be here, and once by
// this machine's, in interleaved rounds with nothing else of ours running (RUN_SERIAL, label
// `timed`).
//
// A clock on a shared machine is wrong at times, so `stitch` is compiled twice: where its second
// copy differs from the first, the machine is measured and not the fusion, and that measurement is
// void. A way whose program is that of `stitch` is not timed at all.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "api/dryrun.h"
#include "api/session.h"
#include "base/parallel.h"
#include "hlo/text.h"
#include "models.h"
#include "program/text.h"

namespace heddle {
namespace {

constexpr double kFloor = 0.97;      // of the other way's time by stitch's
constexpr double kMostNoise = 0.02;  // between two copies of one program
constexpr int kRounds = 15;
constexpr int kMostTries = 10;  // of which
constexpr int kVerdict = 4;     // that are not void, and all below the floor, are a failure
constexpr double kRoundMs = 4;  // of one way
constexpr int kMostRuns = 50;
constexpr std::array kWays = {"stitch", "stitch", "greedy", "off"};
constexpr size_t kCopy = 1;  // of the first

struct Case {
  const char* name;
  std::function<std::unique_ptr<hlo::Module>()> make;
  bool loops = false;  // the model's clock does not know what a step of a fused loop takes
};

std::unique_ptr<hlo::Module> read_row(const char* name) {
  std::ifstream file(std::string(HEDDLE_SOURCE_DIR "/bench/rows/") + name + ".hlo");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  auto module = hlo::parse_module(text);
  return module ? std::move(*module) : nullptr;
}

models::ResNetSize small_resnet() {
  models::ResNetSize size{{1, 1}, {32, 64}};
  size.side = 64, size.classes = 100;
  return size;
}

std::vector<Case> cases() {
  return {
      {"bert", [] { return models::bert({1, 64, 256, 4, 2, 1024, 1000}); }},
      {"resnet", [] { return models::resnet(small_resnet()); }},
      {"conformer", [] { return models::conformer({1, 50, 128, 4, 2, 31, 100}); }},
      {"crnn", [] { return models::crnn({{16, 32, 32, 32, 64, 64, 64}, 1, 60, 64, 37}); }, true},
      {"dien", [] { return models::dien({32, 20, 1000, 1000, 100, 16, {40, 20}}); }, true},
      {"row_a1", [] { return read_row("a1"); }},
      {"row_b1", [] { return read_row("b1"); }},
      {"row_d3", [] { return read_row("d3"); }},
      {"row_e1", [] { return read_row("e1"); }},
      {"row_u1", [] { return read_row("u1"); }},
  };
}

// Of this thread where it is the only one that runs: what others on the machine do counts little.
double now_ms(int threads) {
  timespec now{};
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

// At the begin of a page, alike in all ways: what is not 64-byte aligned is copied by every run,
// and loads wait for stores whose addresses end alike.
constexpr std::align_val_t kAlignment{4096};
struct Free {
  void operator()(char* memory) const { ::operator delete(memory, kAlignment); }
};
using Bytes = std::unique_ptr<char, Free>;

std::vector<Bytes> memory_for(const std::vector<api::Port>& ports) {
  std::vector<Bytes> memory;
  for (const api::Port& port : ports) {
    const size_t bytes = static_cast<size_t>(std::max<int64_t>(port.bytes, 1));
    memory.emplace_back(static_cast<char*>(::operator new(bytes, kAlignment)));
    std::memset(memory.back().get(), 0, bytes);
  }
  return memory;
}

// All that a run does.
std::string work_of(const program::Program& program) {
  program::Program bare = program;
  bare.options.clear();
  bare.notes.clear();
  return program::to_string(bare) + std::string(bare.object.begin(), bare.object.end());
}

// One model, compiled in every way; the inputs are common.
class Race {
 public:
  Race(const hlo::Module& module, int threads) : threads_(threads) {
    std::vector<std::string> work;
    for (const char* way : kWays) {
      auto model = api::Model::from_module(module.clone());
      if (inputs_.empty()) {
        inputs_ = memory_for(model->inputs());
        std::vector<void*> buffers;
        for (Bytes& bytes : inputs_) buffers.push_back(bytes.get());
        must(model->random_inputs(0, buffers));
      }
      api::CompileOptions options;
      options.fuse = way;
      options.threads = threads;
      options.cache = "off";
      auto program = api::Program::compile(*model, options);
      must(program);
      work.push_back(work_of(*(*program)->compiled()));
      differs_[contexts_.size()] = work.back() != work.front();
      auto context = (*program)->make_context();
      must(context);
      outputs_.push_back(memory_for(model->outputs()));
      for (size_t i = 0; i < inputs_.size(); ++i)
        must((*context)->bind_input(static_cast<int64_t>(i), inputs_[i].get()));
      for (size_t i = 0; i < outputs_.back().size(); ++i)
        must((*context)->bind_output(static_cast<int64_t>(i), outputs_.back()[i].get()));
      contexts_.push_back(std::move(*context));
    }
  }

  // Not of the first way, and not its program.
  bool counts(size_t way) const { return differs_[way]; }

  // The others' time by the first way's: the median over rounds, a ratio inside each round.
  std::array<double, kWays.size()> ratios() {
    std::array<int, kWays.size()> runs{};
    for (size_t way = 0; way < kWays.size(); ++way) {
      (void)least_ms(way, 1);
      runs[way] = std::clamp(static_cast<int>(kRoundMs / least_ms(way, 2)), 2, kMostRuns);
    }
    std::array<std::vector<double>, kWays.size()> found;
    for (int round = 0; round < kRounds; ++round) {
      std::array<double, kWays.size()> ms{};
      for (size_t i = 0; i < kWays.size(); ++i) {
        const size_t way = (i + static_cast<size_t>(round)) % kWays.size();
        if (way <= kCopy || counts(way)) ms[way] = least_ms(way, runs[way]);
      }
      for (size_t way = 0; way < kWays.size(); ++way) found[way].push_back(ms[way] / ms[0]);
    }
    std::array<double, kWays.size()> medians{};
    for (size_t way = 0; way < kWays.size(); ++way) {
      std::nth_element(found[way].begin(), found[way].begin() + kRounds / 2, found[way].end());
      medians[way] = found[way][kRounds / 2];
    }
    return medians;
  }

 private:
  template <typename T>
  static void must(const T& result) {
    if (result) return;
    ADD_FAILURE() << result.error().message;
    std::abort();
  }

  // Behind one run that is not counted: the caches are this way's again.
  double least_ms(size_t way, int runs) {
    must(contexts_[way]->run());
    double least = 1e30;
    for (int i = 0; i < runs; ++i) {
      const double begin = now_ms(threads_);
      must(contexts_[way]->run());
      least = std::min(least, now_ms(threads_) - begin);
    }
    return least;
  }

  int threads_;
  std::array<bool, kWays.size()> differs_{};
  std::vector<Bytes> inputs_;
  std::vector<std::vector<Bytes>> outputs_;
  std::vector<std::unique_ptr<api::Context>> contexts_;
};

std::vector<Case> cases_without_loops() {
  std::vector<Case> all = cases();
  std::erase_if(all, [](const Case& one) { return one.loops; });
  return all;
}

class NeverSlower : public ::testing::TestWithParam<Case> {};
class NeverSlowerByTheModel : public ::testing::TestWithParam<Case> {};

// Nanoseconds of one run by the cost model.
double predicted_ns(const hlo::Module& module, const char* device, const char* way, int threads) {
  const auto model = api::Model::from_module(module.clone());
  api::CompileOptions options;
  options.device = device, options.fuse = way, options.threads = threads, options.cache = "off";
  const auto run = api::dry_run(*model, options);
  if (!run) ADD_FAILURE() << run.error().message;
  return run ? run->ns : 0;
}

TEST_P(NeverSlowerByTheModel, ThanGreedyOrUnfused) {
  const auto module = GetParam().make();
  ASSERT_NE(module, nullptr);
  for (const char* device : {"virtual:spr", "virtual:avx2", "virtual:sm_90"})
    for (int threads = 1; threads <= 2; ++threads) {
      const double stitch = predicted_ns(*module, device, "stitch", threads);
      ASSERT_GT(stitch, 0);
      for (const char* way : {"greedy", "off"})
        EXPECT_GE(predicted_ns(*module, device, way, threads), kFloor * stitch)
            << GetParam().name << " on " << threads << " thread(s) of " << device << ": " << way;
    }
}

TEST_P(NeverSlower, ThanGreedyOrUnfused) {
  const auto module = GetParam().make();
  ASSERT_NE(module, nullptr);
  for (int threads = 1; threads <= std::min(2, available_cores()); ++threads) {
    std::array<double, kWays.size()> best{};
    int counted = 0, tries = 0;
    while (tries < kMostTries && counted < kVerdict) {
      ++tries;
      Race race(*module, threads);  // in other memory each time
      const auto found = race.ratios();
      if (std::abs(found[kCopy] - 1) > kMostNoise) continue;
      ++counted;
      bool holds = true;
      for (size_t way = kCopy + 1; way < kWays.size(); ++way) {
        best[way] = race.counts(way) ? std::max(best[way], found[way]) : 1;
        holds &= best[way] >= kFloor;
      }
      if (holds) break;
    }
    printf("%s, %d thread(s), %d of %d measurements:", GetParam().name, threads, counted, tries);
    for (size_t way = kCopy + 1; way < kWays.size(); ++way)
      printf(" %s takes %.3f%s", kWays[way], best[way], way + 1 < kWays.size() ? "," : "");
    printf(" of stitch's time\n");
    if (counted < kVerdict) continue;  // it holds, or this machine is too noisy to tell
    for (size_t way = kCopy + 1; way < kWays.size(); ++way)
      EXPECT_GE(best[way], kFloor)
          << GetParam().name << " on " << threads << " thread(s): " << kWays[way]
          << " is faster than stitch in " << counted << " measurements";
  }
}

INSTANTIATE_TEST_SUITE_P(Small, NeverSlower, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Small, NeverSlowerByTheModel, ::testing::ValuesIn(cases_without_loops()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace heddle
