// The memory-bound rows of bench/rows, each with the small extents that its line "// small:" names
// ("from=to", every number of the text that is `from`), and those of testdata/rows as they are:
// compiled at O2, with one thread and two, against the reference interpreter. How many kernels a
// row takes is printed, not promised.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "compiled_run.h"
#include "hlo/text.h"
#include "interp/interp.h"
#include "interp/random_inputs.h"
#include "program/side_by_side.h"
#include "program/views.h"
#include "row_kernels.h"
#include "target/target.h"
#include "tensor/compare.h"

namespace heddle {
namespace {

using tensor::Literal;

constexpr int64_t kLongestReduction = 1100;  // of a row with small extents

class RowPrograms : public ::testing::TestWithParam<std::pair<const std::string, std::string>> {};

// Lengths and squares below zero would leave nothing to compare.
std::vector<Literal> arguments_of(const hlo::Module& module, bool positive) {
  std::vector<Literal> arguments = interp::random_arguments(module, 0);
  for (Literal& argument : arguments)
    for (int64_t i = 0; positive && i < argument.elems(); ++i)
      argument.set_f64(i, std::fabs(argument.get_f64(i)));
  return arguments;
}

std::string description(const hlo::Module& module) {
  compiler::Report report;
  auto program = compiler::compile(module.clone(), {}, target::host_target(), {}, &report);
  if (!program) return program.error().message;
  std::map<std::string, int> codes;
  for (const auto& refusal : report.refusals) ++codes[refusal.code];
  std::string refused;
  for (const auto& [code, count] : codes) refused += fmt::format(", {} {}", count, code);
  return fmt::format("{} kernels, {} commands, {} launches{}", program->kernels.size(),
                     program::command_count(*program, program->commands),
                     program::launch_count(*program), refused);
}

TEST_P(RowPrograms, ComputeWhatTheInterpreterDoes) {
  const std::string text = read_text(GetParam().second);
  auto module = hlo::parse_module(substituted(text, small_extents(text)));
  ASSERT_TRUE(module) << module.error().message;
  const auto arguments = arguments_of(**module, text.find("\n// positive\n") != std::string::npos);
  auto want = interp::evaluate(**module, arguments);
  ASSERT_TRUE(want) << want.error().message;
  std::vector<Literal> wanted, first;
  append_leaves(*want, &wanted);
  for (const int threads : {1, 2}) {
    std::string failure;
    const std::vector<Literal> got = compile_and_run((*module)->clone(), arguments,
                                                     target::host_target(), {}, threads, &failure);
    ASSERT_EQ(failure, "");
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      const auto tolerance = tensor::derived_tolerance(wanted[i].type(), kLongestReduction);
      const auto comparison = tensor::compare(got[i], wanted[i], tolerance);
      EXPECT_TRUE(comparison.equal)
          << "threads " << threads << " output " << i << ": " << comparison.describe();
      if (threads == 2) {
        EXPECT_TRUE(got[i] == first[i]) << "output " << i;
      }
    }
    first = got;
  }
  fmt::print("{}: {}\n", GetParam().first, description(**module));
}

INSTANTIATE_TEST_SUITE_P(Files, RowPrograms, ::testing::ValuesIn(row_files()),
                         [](const auto& info) { return info.param.first; });

TEST(RowFiles, HaveSmallExtents) {
  const auto all = row_files();
  EXPECT_EQ(all.size(), 31);
  for (const auto& [name, path] : all)
    EXPECT_EQ(small_extents(read_text(path)).empty(), path.find("testdata") != std::string::npos)
        << path;
}

TEST(RowFiles, WholeWordsOnlyAreSubstituted) {
  EXPECT_EQ(substituted("x64 = f32[64,164] 64", {{"64", "5"}, {"32", "7"}}), "x64 = f32[5,164] 5");
}

}  // namespace
}  // namespace heddle
