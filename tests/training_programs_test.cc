// Training steps exported by JAX (bench/training), tiny: forward, backward and update, compiled at
// O0, O1 and O2, one thread and two, against what XLA:CPU gave: max|a-b| <= 1e-4 max|b| for every
// output, the same bits on two threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiled_run.h"
#include "hlo/text.h"
#include "target/target.h"
#include "tensor/compare.h"
#include "tensor/npz.h"

namespace heddle {
namespace {

using tensor::Literal;

std::string folder() { return std::string(HEDDLE_SOURCE_DIR) + "/tests/testdata/training/"; }

std::vector<std::string> names() {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder()))
    if (entry.path().extension() == ".hlo") found.push_back(entry.path().stem());
  std::sort(found.begin(), found.end());
  return found;
}

// arg0, arg1, …; the file has them by name.
std::vector<Literal> numbered(const std::string& path, const std::string& prefix) {
  std::vector<Literal> result;
  auto values = tensor::read_npz(path);
  if (!values) return result;
  for (size_t i = 0; i < values->size(); ++i)
    for (const auto& [name, literal] : *values)
      if (name == prefix + std::to_string(i)) result.push_back(literal);
  return result;
}

class TrainingProgram : public ::testing::TestWithParam<std::string> {};

TEST_P(TrainingProgram, AgreesWithTheRecordedOutputs) {
  std::ifstream file(folder() + GetParam() + ".hlo");
  std::stringstream text;
  text << file.rdbuf();
  auto module = hlo::parse_module(text.str());
  ASSERT_TRUE(module) << module.error().message;
  const auto inputs = numbered(folder() + GetParam() + ".inputs.npz", "arg");
  const auto wanted = numbered(folder() + GetParam() + ".expected.npz", "out");
  ASSERT_EQ(inputs.size(), (*module)->entry()->parameters().size());
  for (compiler::Level level : {compiler::Level::O0, compiler::Level::O1, compiler::Level::O2}) {
    std::vector<Literal> first;
    for (int threads : {1, 2}) {
      compiler::Options options;
      options.level = level;
      std::string failure;
      std::vector<Literal> got = compile_and_run((*module)->clone(), inputs, target::host_target(),
                                                 options, threads, &failure);
      ASSERT_EQ(failure, "");
      ASSERT_EQ(got.size(), wanted.size());
      for (size_t i = 0; i < got.size(); ++i) {
        tensor::Tolerance tolerance;
        tolerance.relative_to_max = 1e-4;
        const auto comparison = tensor::compare(got[i], wanted[i], tolerance);
        EXPECT_TRUE(comparison.equal)
            << "level " << static_cast<int>(level) << " threads " << threads << " output " << i
            << ": " << comparison.describe();
        if (threads == 2) {
          EXPECT_TRUE(got[i] == first[i]) << "output " << i << ": bits differ";
        }
      }
      first = std::move(got);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, TrainingProgram, ::testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace heddle
