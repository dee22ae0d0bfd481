// Models exported by torch, compiled: O0, O1 and O2, one thread and two, against what ONNX Runtime
// (optimisations off) gave: max|a-b| <= 1e-4 max|b| for every output, the same bits on two threads.
#include <gtest/gtest.h>

#include "compiled_run.h"
#include "import/onnx.h"
#include "model_folders.h"
#include "target/target.h"
#include "tensor/compare.h"
#include "tensor/npz.h"

namespace heddle {
namespace {

using tensor::Literal;

std::string folder() { return std::string(HEDDLE_SOURCE_DIR) + "/tests/testdata/onnx/"; }

const Literal* find(const tensor::NamedLiterals& values, const std::string& name) {
  for (const auto& [key, literal] : values)
    if (key == name) return &literal;
  return nullptr;
}

class OnnxProgram : public ::testing::TestWithParam<std::string> {};

TEST_P(OnnxProgram, AgreesWithTheRecordedOutputs) {
  auto inputs = tensor::read_npz(folder() + GetParam() + "/inputs.npz");
  auto expected = tensor::read_npz(folder() + GetParam() + "/expected.npz");
  ASSERT_TRUE(inputs && expected);
  import::Options import_options;
  for (const auto& [name, literal] : *inputs)
    import_options.shapes[name] = literal.shape().extents();
  auto imported = import::import_onnx(folder() + GetParam() + "/model.onnx", import_options);
  ASSERT_TRUE(imported) << imported.error().message;
  std::vector<Literal> leaves;
  for (const std::string& name : imported->input_names) {
    const Literal* literal = find(*inputs, name);
    ASSERT_NE(literal, nullptr) << name;
    leaves.push_back(*literal);
  }
  for (compiler::Level level : {compiler::Level::O0, compiler::Level::O1, compiler::Level::O2}) {
    std::vector<Literal> one;
    for (int threads : {1, 2}) {
      compiler::Options options;
      options.level = level;
      std::string failure;
      std::vector<Literal> got = compile_and_run(imported->module->clone(), leaves,
                                                 target::host_target(), options, threads, &failure);
      ASSERT_EQ(failure, "");
      size_t hidden = imported->output_names.size();
      for (const tensor::IndexCheck& check : imported->index_checks)
        if (check.input < 0) {
          const Status in_range = tensor::check_computed(check, got.at(hidden++).data());
          EXPECT_TRUE(in_range) << in_range.error().message;
        }
      ASSERT_EQ(got.size(), hidden);
      for (size_t i = 0; i < imported->output_names.size(); ++i) {
        const Literal* want = find(*expected, imported->output_names[i]);
        ASSERT_NE(want, nullptr);
        tensor::Tolerance tolerance;
        tolerance.relative_to_max = 1e-4;
        auto comparison = tensor::compare(got[i], *want, tolerance);
        EXPECT_TRUE(comparison.equal) << "level " << static_cast<int>(level) << " threads "
                                      << threads << ": " << comparison.describe();
        if (threads == 2) {
          EXPECT_TRUE(got[i] == one[i]) << "bits differ";
        }
      }
      one = std::move(got);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, OnnxProgram, ::testing::ValuesIn(model_folders(folder())),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace heddle
