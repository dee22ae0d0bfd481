// Loops and branches the whole way: every file of testdata/control at all levels, with one thread
// and two, against the reference interpreter, with and without loops as one kernel. A file may say
// how many commands of each kind its loops have at O2 where they are regions: what a trip costs is
// counted there, not timed. "stitched" are those where loops may be kernels.
#include <gtest/gtest.h>

#include <algorithm>
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

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// "// inside loops: launches 4, copies 0": by word.
std::map<std::string, int64_t> expected_counts(const std::string& text, const std::string& what) {
  const std::string mark = "// " + what + ": ";
  std::map<std::string, int64_t> counts;
  const size_t at = text.find(mark);
  if (at == std::string::npos) return counts;
  std::string line = text.substr(at + mark.size(), text.find('\n', at) - at - mark.size());
  std::replace(line.begin(), line.end(), ',', ' ');
  std::istringstream words(line);
  std::string word;
  for (int64_t count = 0; words >> word >> count;) counts[word] = count;
  return counts;
}

std::map<std::string, int64_t> count_commands(const program::Program& program, int least_depth) {
  std::map<std::string, int64_t> counts;
  program::for_each_command(
      program, program.commands, program.command_info,
      [&](const program::Command& command, const program::CommandInfo&, int depth) {
        constexpr const char* kWords[] = {"launches", "copies",   "host",        "updates",
                                          "loops",    "branches", "concatenates"};
        if (depth >= least_depth) ++counts[kWords[command.index()]];
      });
  return counts;
}

std::vector<std::string> files() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(HEDDLE_SOURCE_DIR "/tests/testdata/control"))
    names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

class ControlPrograms : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    text_ = read_text(std::filesystem::path(HEDDLE_SOURCE_DIR "/tests/testdata/control") /
                      (GetParam() + ".hlo"));
    auto module = hlo::parse_module(text_);
    ASSERT_TRUE(module) << module.error().message;
    module_ = std::move(*module);
  }

  void check(compiler::Level level, compiler::Fuse fuse, uint64_t seed) {
    const std::vector<Literal> arguments = interp::random_arguments(*module_, seed);
    std::vector<Literal> leaves, wanted, first;
    for (const Literal& argument : arguments) append_leaves(argument, &leaves);
    auto want = interp::evaluate(*module_, arguments);
    ASSERT_TRUE(want) << want.error().message;
    append_leaves(*want, &wanted);
    for (const int threads : {1, 2}) {
      compiler::Options options;
      options.level = level;
      options.fuse = fuse;
      options.memory = threads == 1 ? compiler::Memory::planned : compiler::Memory::pooled;
      std::string failure;
      const std::vector<Literal> got = compile_and_run(
          module_->clone(), leaves, target::host_target(), options, threads, &failure);
      ASSERT_EQ(failure, "");
      ASSERT_EQ(got.size(), wanted.size());
      for (size_t i = 0; i < wanted.size(); ++i) {
        tensor::Tolerance tolerance = tensor::derived_tolerance(wanted[i].type(), 256);
        tolerance.relative_to_max = tolerance.relative;
        const auto comparison = tensor::compare(got[i], wanted[i], tolerance);
        EXPECT_TRUE(comparison.equal)
            << "level " << static_cast<int>(level) << " threads " << threads << " output " << i
            << ": " << comparison.describe();
        if (threads == 2) {
          EXPECT_TRUE(got[i] == first[i]) << "output " << i;
        }
      }
      if (threads == 1) first = got;
    }
  }

  std::string text_;
  std::unique_ptr<hlo::Module> module_;
};

TEST_P(ControlPrograms, ComputeWhatTheInterpreterDoes) {
  for (compiler::Level level : {compiler::Level::O0, compiler::Level::O1, compiler::Level::O2})
    for (uint64_t seed = 0; seed < 2; ++seed) check(level, compiler::Fuse::stitch, seed);
  check(compiler::Level::O2, compiler::Fuse::greedy, 0);
}

TEST_P(ControlPrograms, HaveNoCommandTooMany) {
  for (const bool stitched : {false, true}) {
    compiler::Options options;
    options.fuse = stitched ? compiler::Fuse::stitch : compiler::Fuse::greedy;
    auto program =
        compiler::compile(module_->clone(), {}, *target::find_target("icelake"), options);
    ASSERT_TRUE(program) << program.error().message;
    std::map<std::string, int64_t> counts = count_commands(*program, stitched ? 0 : 1);
    for (const auto& [word, count] : expected_counts(text_, stitched ? "stitched" : "inside loops"))
      EXPECT_EQ(counts[word], count) << word << (stitched ? ", stitched" : "");
  }
}

// A program goes on drawing where its last run ended; loaded again, it begins anew.
TEST(RandomNumbers, GoOnFromRunToRun) {
  auto module = hlo::parse_module(
      "HloModule r\nENTRY e {\n lo = f32[] constant(0)\n hi = f32[] constant(1)\n"
      " ROOT x = f32[8] rng(lo, hi), distribution=rng_uniform\n}");
  ASSERT_TRUE(module) << module.error().message;
  auto program = compiler::compile(std::move(*module), {}, target::host_target(), {});
  ASSERT_TRUE(program) << program.error().message;
  Workers workers(1);
  runtime::CpuDevice device(workers);
  std::vector<std::vector<float>> drawn;
  for (int load = 0; load < 2; ++load) {
    auto executable = runtime::Executable::load(program::Program(*program), device.device(),
                                                api::host_functions());
    ASSERT_TRUE(executable) << executable.error().message;
    for (int run = 0; run < 2; ++run) {
      auto context = (*executable)->make_context();
      ASSERT_TRUE(context) << context.error().message;
      drawn.emplace_back(8);
      ASSERT_TRUE((*context)->bind_output(0, drawn.back().data()));
      ASSERT_TRUE((*context)->run());
    }
  }
  EXPECT_NE(drawn[0], drawn[1]);
  EXPECT_EQ(drawn[0], drawn[2]);
  EXPECT_EQ(drawn[1], drawn[3]);
}

INSTANTIATE_TEST_SUITE_P(Files, ControlPrograms, ::testing::ValuesIn(files()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace heddle
