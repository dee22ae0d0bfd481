// The memory-bound rows of bench/rows, each with the small extents that its line "// small:" names
// ("from=to", every number of the text that is `from`), and those of testdata/rows as they are:
// compiled at O2, with one thread and two, against the reference interpreter. How many kernels a
// row takes is printed, not promised.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "compiled_run.h"
#include "hlo/text.h"
#include "interp/interp.h"
#include "interp/random_inputs.h"
#include "program/views.h"
#include "target/target.h"
#include "tensor/compare.h"

namespace heddle {
namespace {

using tensor::Literal;

constexpr int64_t kLongestReduction = 1100;  // of a row with small extents

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The rest of the line that starts with `mark`; empty where there is none.
std::string line_after(const std::string& text, const std::string& mark) {
  const size_t at = text.find("\n" + mark);
  if (at == std::string::npos) return {};
  const size_t begin = at + 1 + mark.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

std::map<std::string, std::string> small_extents(const std::string& text) {
  std::map<std::string, std::string> extents;
  std::istringstream words(line_after(text, "// small: "));
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    extents[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return extents;
}

// Every whole word that is a key becomes its value.
std::string substituted(const std::string& text, const std::map<std::string, std::string>& words) {
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  std::string result;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string word = text.substr(at, end - at);
    const auto found = words.find(word);
    result += found == words.end() ? word : found->second;
    if (end < text.size()) result += text[end++];
    at = end;
  }
  return result;
}

std::map<std::string, std::string> files() {
  std::map<std::string, std::string> found;
  for (const char* folder : {"/bench/rows", "/tests/testdata/rows"})
    for (const auto& entry :
         std::filesystem::directory_iterator(HEDDLE_SOURCE_DIR + std::string(folder)))
      if (entry.path().extension() == ".hlo") found[entry.path().stem()] = entry.path();
  return found;
}

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
  return fmt::format("{} kernels, {} commands{}", program->kernels.size(),
                     program::command_count(*program, program->commands), refused);
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

INSTANTIATE_TEST_SUITE_P(Files, RowPrograms, ::testing::ValuesIn(files()),
                         [](const auto& info) { return info.param.first; });

TEST(RowFiles, HaveSmallExtents) {
  const auto all = files();
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
