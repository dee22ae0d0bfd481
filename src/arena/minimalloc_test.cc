// MiniMalloc's hard problems (in HEDDLE_CORPORA/minimalloc, if set): each must fit into 2^20 bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "arena/fit_offsets.h"

namespace heddle::arena {
namespace {

constexpr int64_t kCapacityBytes = int64_t{1} << 20;
constexpr int64_t kWork = 4'000'000'000;
constexpr double kMostSeconds = 120;  // of processor time, for all eleven

// Lines of id,lower,upper,size after a header line; lifetimes are half-open.
std::vector<Block> read_problem(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<Block> blocks;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream fields(line);
    std::string id;
    int64_t lower = 0, upper = 0, bytes = 0;
    fields >> id >> lower >> upper >> bytes;
    EXPECT_TRUE(fields && lower < upper && bytes > 0) << path << ": " << line;
    blocks.push_back({bytes, lower, upper - 1});
  }
  return blocks;
}

std::vector<std::filesystem::path> problems() {
  const char* corpora = std::getenv("HEDDLE_CORPORA");
  if (corpora == nullptr) return {};
  const auto folder = std::filesystem::path(corpora) / "minimalloc/benchmarks/challenging";
  std::vector<std::filesystem::path> paths;
  if (!std::filesystem::is_directory(folder)) return paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

TEST(minimalloc, HardProblemsFitIntoTwoToTheTwenty) {
  const std::vector<std::filesystem::path> paths = problems();
  // The problems are third-party data, which not every machine has.
  if (paths.empty()) GTEST_SKIP() << "HEDDLE_CORPORA has no minimalloc: no problems to solve";
  EXPECT_EQ(paths.size(), 11u);
  const double start = processor_seconds();
  for (const auto& path : paths) {
    const std::vector<Block> blocks = read_problem(path);
    const double begin = processor_seconds();
    const FitResult result = fit_offsets(blocks, kCapacityBytes, kWork);
    const double seconds = processor_seconds() - begin;
    ASSERT_EQ(result.fit, Fit::fits) << path;
    Offsets plan;
    plan.offsets = result.offsets;
    plan.height_bytes = kCapacityBytes;
    const Status status = check_offsets(blocks, plan);
    EXPECT_TRUE(status) << path << ": " << status.error().message;
    printf("%s: %zu blocks, most live %ld, work %ld, %.2f s\n", path.stem().c_str(), blocks.size(),
           lower_bound_bytes(blocks), result.work, seconds);
  }
  const double seconds = processor_seconds() - start;
  printf("all: %.2f s of processor time\n", seconds);
  EXPECT_LT(seconds, kMostSeconds);
}

}  // namespace
}  // namespace heddle::arena
