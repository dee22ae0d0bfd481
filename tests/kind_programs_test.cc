// Others of the kinds of bench/rows, small: each file of testdata/kinds, compiled at O2 for two
// cores, against the reference interpreter, and in how many kernels at most ("// kernels: n") and
// launches ("// launches: n", where it says so).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "api/tolerance.h"
#include "compiled_run.h"
#include "hlo/text.h"
#include "interp/interp.h"
#include "interp/random_inputs.h"
#include "program/side_by_side.h"
#include "row_kernels.h"
#include "target/target.h"
#include "tensor/compare.h"

namespace heddle {
namespace {

using tensor::Literal;

class KindPrograms : public ::testing::TestWithParam<std::string> {};

std::string folder() { return std::string(HEDDLE_SOURCE_DIR) + "/tests/testdata/kinds/"; }

std::vector<std::string> names() {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder()))
    if (entry.path().extension() == ".hlo") found.push_back(entry.path().stem());
  std::sort(found.begin(), found.end());
  return found;
}

TEST_P(KindPrograms, AreFewKernelsAndRight) {
  const std::string text = read_text(folder() + GetParam() + ".hlo");
  auto module = hlo::parse_module(text);
  ASSERT_TRUE(module) << module.error().message;
  std::vector<Literal> arguments = interp::random_arguments(**module, 0);
  for (Literal& argument : arguments)  // squares, norms
    for (int64_t i = 0; text.find("\n// positive\n") != std::string::npos && i < argument.elems();
         ++i)
      argument.set_f64(i, std::fabs(argument.get_f64(i)));
  auto want = interp::evaluate(**module, arguments);
  ASSERT_TRUE(want) << want.error().message;
  std::vector<Literal> wanted;
  append_leaves(*want, &wanted);
  const auto tolerances = api::derive_tolerances(**module);
  target::Target target = target::host_target();
  target.cores = 2;
  auto program = compiler::compile((*module)->clone(), {}, target, {});
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_LE(program->kernels.size(), std::stoul(line_after(text, "// kernels: ")));
  if (const std::string most = line_after(text, "// launches: "); !most.empty()) {
    EXPECT_LE(program::launch_count(*program), std::stol(most));
  }
  std::string failure;
  const std::vector<Literal> got = run_program(std::move(*program), arguments, 2, &failure);
  ASSERT_EQ(failure, "");
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto comparison = tensor::compare(got[i], wanted[i], tolerances[i]);
    EXPECT_TRUE(comparison.equal) << "output " << i << ": " << comparison.describe();
  }
}

INSTANTIATE_TEST_SUITE_P(Files, KindPrograms, ::testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace heddle
