#include "pass/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "hlo/builder.h"
#include "hlo/text.h"

namespace heddle::pass {
namespace {

using hlo::Instr;
using hlo::Opcode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// Passes for the tests: they act on the chain of negates over parameter 0.
Instr* first(hlo::Module& module, Opcode opcode) {
  for (Instr* instr : module.entry()->instrs())
    if (instr->is(opcode)) return instr;
  return nullptr;
}

// Removes one negate.
Result<bool> drop_one(hlo::Module& module, const PassContext& context) {
  Instr* negate = first(module, Opcode::negate);
  if (!negate || !context.allow("drop_one", "negate")) return false;
  module.entry()->replace_all_uses(negate, negate->operand(0));
  module.entry()->remove(negate);
  context.note("dropped one");
  return true;
}

// Replaces one abs by a negate.
Result<bool> abs_to_negate(hlo::Module& module, const PassContext& context) {
  Instr* abs = first(module, Opcode::abs);
  if (!abs) return false;
  hlo::Builder b(module.entry());
  module.entry()->replace_all_uses(abs, b.unary(Opcode::negate, abs->operand(0)));
  module.entry()->remove(abs);
  return true;
}

Result<bool> quiet(hlo::Module&, const PassContext&) { return false; }
Result<bool> says_changed(hlo::Module&, const PassContext&) { return true; }
Result<bool> hides_change(hlo::Module& module, const PassContext& context) {
  HEDDLE_RETURN_IF_ERROR(drop_one(module, context));
  return false;
}
Result<bool> breaks(hlo::Module& module, const PassContext&) {
  Instr* negate = first(module, Opcode::negate);
  if (!negate) return false;
  negate->set_shape(hlo::Shape::array(hlo::Type::s32, {7}));
  return true;
}
Result<bool> refuses(hlo::Module& module, const PassContext&) {
  if (!first(module, Opcode::negate)) return false;
  return user_error("%{} is more than it can take", first(module, Opcode::negate)->name());
}

const PassInfo kRows[] = {
    {"drop_one", "drops a negate", drop_one},
    {"abs_to_negate", "turns an abs into a negate", abs_to_negate, /*required=*/true},
    {"quiet", "does nothing", quiet},
    {"says_changed", "lies", says_changed},
    {"hides_change", "lies", hides_change},
    {"breaks", "breaks the module", breaks},
    {"refuses", "refuses what it gets", refuses},
};

std::unique_ptr<hlo::Module> chain(const std::string& opcodes) {
  std::string text = "HloModule chain\nENTRY main {\n  x0 = f32[4] parameter(0)\n";
  int n = 0;
  for (char c : opcodes) {
    text += fmt::format("  x{} = f32[4] {}(x{})\n", n + 1, c == 'n' ? "negate" : "abs", n);
    ++n;
  }
  auto module = hlo::parse_module(text + fmt::format("  ROOT r = f32[4] tanh(x{})\n}}\n", n));
  HEDDLE_CHECK(module, "{}", module ? "" : module.error().message);
  return std::move(*module);
}

int64_t count(const hlo::Module& module, Opcode opcode) {
  int64_t result = 0;
  for (const Instr* instr : module.entry()->instrs()) result += instr->is(opcode);
  return result;
}

class RunTest : public testing::Test {
 protected:
  RunTest() : table_(kRows) {
    directory_ = std::filesystem::temp_directory_path() /
                 fmt::format("heddle_pass_test_{}", static_cast<int>(::getpid()));
    options_.verify = true;
    options_.check_changed = true;
    options_.reproducer_directory = directory_.string();
  }
  ~RunTest() override { std::filesystem::remove_all(directory_); }

  std::string error(const std::string& opcodes, std::string_view pipeline) {
    auto module = chain(opcodes);
    Result<RunReport> report = run(*module, pipeline, table_, options_);
    return report ? "no error" : report.error().message;
  }
  static std::string read(const std::filesystem::path& path) {
    std::ifstream stream(path);
    std::stringstream text;
    text << stream.rdbuf();
    return text.str();
  }

  PassTable table_;
  std::filesystem::path directory_;
  RunOptions options_;
};

TEST_F(RunTest, RunsInOrderAndReports) {
  auto module = chain("nan");
  Result<RunReport> report = run(*module, "drop_one,quiet,abs_to_negate", table_, options_);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(count(*module, Opcode::negate), 2);
  EXPECT_TRUE(report->changed);
  EXPECT_THAT(report->changes, ElementsAre("drop_one", "abs_to_negate"));
  EXPECT_THAT(report->rewrites, ElementsAre(Pair("drop_one.negate", 1)));
  EXPECT_THAT(report->notes, ElementsAre("dropped one"));
  ASSERT_EQ(report->passes.size(), 3u);
  EXPECT_EQ(report->passes[1].pass, "quiet");
  EXPECT_EQ(report->passes[1].runs, 1);
  EXPECT_EQ(report->passes[1].changes, 0);
}

TEST_F(RunTest, AGroupRunsToItsFixpoint) {
  auto module = chain("nnan");
  Result<RunReport> report = run(*module, "{drop_one,abs_to_negate}*", table_, options_);
  ASSERT_TRUE(report);
  EXPECT_EQ(count(*module, Opcode::negate) + count(*module, Opcode::abs), 0);
  EXPECT_TRUE(report->converged);
  // drop (1), turn, drop, -, drop, -, drop, -: the last quiet run of drop_one is the end.
  EXPECT_EQ(report->passes[0].runs, 5);
}

TEST_F(RunTest, AGroupThatIsQuietRunsOnce) {
  auto module = chain("");
  Result<RunReport> report = run(*module, "{drop_one,quiet}*", table_, options_);
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->changed);
  EXPECT_EQ(report->passes[0].runs, 1);
}

TEST_F(RunTest, RoundsAreBounded) {
  auto module = chain("nnnnn");
  Result<RunReport> report = run(*module, "{drop_one}*3", table_, options_);
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->converged);
  EXPECT_EQ(count(*module, Opcode::negate), 2);
}

TEST_F(RunTest, StopsAfterAndLeavesOut) {
  auto module = chain("nna");
  options_.stop_after = "abs_to_negate";
  Result<RunReport> report = run(*module, "abs_to_negate,{drop_one}*", table_, options_);
  ASSERT_TRUE(report && report->stopped);
  EXPECT_EQ(count(*module, Opcode::negate), 3);

  options_.stop_after.clear();
  options_.disabled = {"drop_one"};
  report = run(*module, "{drop_one}*", table_, options_);
  ASSERT_TRUE(report);
  EXPECT_EQ(count(*module, Opcode::negate), 3);

  options_.disabled = {"drop_one.negate"};
  report = run(*module, "{drop_one}*", table_, options_);
  ASSERT_TRUE(report);
  EXPECT_EQ(count(*module, Opcode::negate), 3);
}

TEST_F(RunTest, BisectsByCount) {
  for (int64_t limit = 0; limit <= 4; ++limit) {
    auto module = chain("nnna");
    options_.bisect_limit = limit;
    Result<RunReport> report = run(*module, "{drop_one}*,abs_to_negate", table_, options_);
    ASSERT_TRUE(report);
    // The required pass runs whatever the limit.
    EXPECT_EQ(count(*module, Opcode::abs), 0);
    EXPECT_EQ(count(*module, Opcode::negate), 3 - std::min<int64_t>(limit, 3) + 1);
  }
  options_.bisect_limit = -1;
  options_.rewrite_limit = 2;
  auto module = chain("nnnn");
  ASSERT_TRUE(run(*module, "{drop_one}*", table_, options_));
  EXPECT_EQ(count(*module, Opcode::negate), 2);
}

TEST_F(RunTest, UnknownNamesAreTheUsersFault) {
  EXPECT_THAT(error("n", "drop_one,{nothing}*"),
              HasSubstr("pipeline: no pass is called `nothing`; there are: drop_one "));
  options_.disabled = {"nobody.rule"};
  EXPECT_THAT(error("n", "quiet"), HasSubstr("disabled: no pass is called `nobody`"));
  options_.disabled.clear();
  options_.stop_after = "nowhere";
  EXPECT_THAT(error("n", "quiet"), HasSubstr("stop after: no pass is called `nowhere`"));
}

TEST_F(RunTest, ALieAboutChangesIsFound) {
  EXPECT_THAT(error("n", "says_changed"),
              HasSubstr("pass says_changed: internal error: it says that it changed something, but "
                        "it did not (reproducer: "));
  EXPECT_THAT(error("n", "hides_change"), HasSubstr("it says that it changed nothing, but it did"));
}

TEST_F(RunTest, ABrokenModuleIsFoundAndReproduces) {
  const std::string message = error("nna", "abs_to_negate,drop_one,breaks,quiet");
  EXPECT_THAT(message, HasSubstr("pass breaks: internal error: invariant 5"));
  const size_t at = message.find("(reproducer: ");
  ASSERT_NE(at, std::string::npos) << message;
  const std::string path = message.substr(at + 13, message.size() - at - 14);
  const std::string text = read(path);
  EXPECT_EQ(reproducer_pipeline(text), "breaks");
  Result<std::unique_ptr<hlo::Module>> module = hlo::parse_module(text);
  ASSERT_TRUE(module) << module.error().message;
  EXPECT_EQ(count(**module, Opcode::negate), 2);
  Result<RunReport> again = run(**module, reproducer_pipeline(text), table_, options_);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("invariant 5"));
}

TEST_F(RunTest, ARefusalIsHandedOn) {
  auto module = chain("n");
  Result<RunReport> report = run(*module, "refuses", table_, options_);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, ErrorKind::user);
  EXPECT_THAT(report.error().message, HasSubstr("pass refuses: %x1 is more than it can take"));
}

TEST_F(RunTest, DumpsEachChange) {
  options_.dump_directory = (directory_ / "dump").string();
  options_.dump_name = "opt";
  auto module = chain("na");
  ASSERT_TRUE(run(*module, "drop_one,quiet,abs_to_negate", table_, options_));
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(options_.dump_directory))
    files.push_back(entry.path().filename().string());
  std::sort(files.begin(), files.end());
  EXPECT_THAT(
      files, ElementsAre("opt_000_input.hlo", "opt_001_drop_one.hlo", "opt_002_abs_to_negate.hlo"));
  EXPECT_EQ(read(directory_ / "dump" / "opt_002_abs_to_negate.hlo"), hlo::to_string(*module));
}

TEST_F(RunTest, ADirectoryThatCannotBeMadeIsAnError) {
  options_.dump_directory = "/dev/null/nowhere";
  EXPECT_THAT(error("n", "drop_one"), HasSubstr("cannot be written"));
}

TEST(ReproducerPipeline, OfOtherTextIsEmpty) {
  EXPECT_EQ(reproducer_pipeline(""), "");
  EXPECT_EQ(reproducer_pipeline("HloModule x"), "");
  EXPECT_EQ(reproducer_pipeline("// reproducer of a failing pass; run it with this pipeline:"), "");
}

TEST(PassTableDeathTest, TwoRowsOfOneName) {
  const PassInfo rows[] = {{"quiet", "", quiet}, {"quiet", "", quiet}};
  EXPECT_DEATH(PassTable{rows}, "two passes are called quiet");
}

}  // namespace
}  // namespace heddle::pass
