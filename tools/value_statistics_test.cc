#include "value_statistics.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace heddle::tools {
namespace {

using tensor::Literal;
using tensor::Shape;
using tensor::Type;

Literal rows(std::vector<float> values) {
  return Literal::from<float>(Shape::array(Type::f32, {2, 2}), values);
}

// A path in the folder for temporary files, free again at the end.
struct Scratch {
  OutputFile file;
  explicit Scratch(const char* name) : file(std::filesystem::temp_directory_path() / name) {
    std::filesystem::remove(file.path);
    EXPECT_TRUE(file.prepare("--statistics"));
  }
  ~Scratch() { std::filesystem::remove(file.path); }
};

TEST(ValueStatistics, HaveTheirSumsByChannel) {
  ValueStatistics all;
  all.add("x", rows({1, -5, 3, 2}), false);
  const float inf = std::numeric_limits<float>::infinity();
  all.add("x", rows({2, inf, -4, 0}), false);
  const ValueStatistics::Seen& seen = all.values().at("x");
  EXPECT_EQ(seen.most, (std::vector<float>{4, 5}));
  EXPECT_EQ(seen.squares, (std::vector<double>{30, 29}));
  EXPECT_EQ(seen.each, 4);
}

TEST(StatisticsFile, IsSavedWhileItGrowsAndHasAPartForEachPass) {
  Scratch scratch("heddle_value_statistics_test");
  const auto start = StatisticsFile::Clock::now();
  const auto after = [&](int seconds) { return start + std::chrono::seconds(seconds); };
  ValueStatistics seen, other;
  StatisticsFile file(&scratch.file);
  EXPECT_EQ(file.begin("first", &seen, start), 0);
  seen.add("x", rows({1, 2, 3, 4}), false);
  EXPECT_TRUE(file.saw(1, seen, after(29)));
  EXPECT_FALSE(std::filesystem::exists(scratch.file.path));  // that was not long ago
  EXPECT_TRUE(file.saw(2, seen, after(31)));
  EXPECT_EQ(StatisticsFile(&scratch.file).begin("first", &other), 2);  // as after a power failure
  EXPECT_EQ(other.text(), seen.text());
  EXPECT_TRUE(file.saw(3, seen, after(60)));
  EXPECT_EQ(StatisticsFile(&scratch.file).begin("first", &other), 2);
  EXPECT_TRUE(file.saw(3, seen, after(61)));
  EXPECT_EQ(StatisticsFile(&scratch.file).begin("first", &other), 3);

  ValueStatistics second;
  EXPECT_EQ(file.begin("second", &second), 0);
  second.add("y", rows({1, 1, 1, 1}), false);
  EXPECT_TRUE(file.save(9, second));
  StatisticsFile again(&scratch.file);
  EXPECT_EQ(again.begin("first", &other), 3);
  EXPECT_EQ(again.begin("second", &other), 9);
  EXPECT_EQ(other.text(), second.text());
  EXPECT_EQ(again.begin("third", &other), 0);
}

}  // namespace
}  // namespace heddle::tools
