// Exports of PyTorch as its two exporters make them (testdata/exports): one program takes inputs of
// five sizes, one after the other, and gives what ONNX Runtime gave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "api/heddle.h"
#include "model_folders.h"
#include "tensor/compare.h"
#include "tensor/npz.h"

namespace heddle {
namespace {

using tensor::Literal;
using tensor::NamedLiterals;

constexpr int kSizes = 5;

std::string folder() { return std::string(HEDDLE_SOURCE_DIR) + "/tests/testdata/exports/"; }

class Export : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    heddle_open_options open{};
    open.struct_size = sizeof open;
    open.late = 1;
    ASSERT_TRUE(worked(heddle_model_open((path() + "model.onnx").c_str(), &open, &model_)));
    heddle_compile_options compile{};
    compile.struct_size = sizeof compile;
    compile.cache = "off";
    ASSERT_TRUE(worked(heddle_compile(model_, &compile, &program_)));
    ASSERT_TRUE(worked(heddle_context_create(program_, &context_)));
  }
  void TearDown() override {
    heddle_context_free(context_);
    heddle_program_free(program_);
    heddle_model_free(model_);
  }

  static testing::AssertionResult worked(heddle_status* status) {
    const std::string message = status != nullptr ? heddle_status_message(status) : "";
    heddle_status_free(status);
    return message.empty() ? testing::AssertionSuccess() : testing::AssertionFailure() << message;
  }
  std::string path() const { return folder() + GetParam() + "/"; }
  NamedLiterals read(const char* what, int size) const {
    Result<NamedLiterals> values = tensor::read_npz(fmt::format("{}{}_{}.npz", path(), what, size));
    EXPECT_TRUE(values) << values.error().message;
    return values ? *values : NamedLiterals();
  }
  // Others have values that decide, extents that are divided, or (the decoders, with heads of
  // eight) vectors over several positions.
  static bool shares_programs() {
    const std::string& name = GetParam();
    return name.find("encoder") != std::string::npos || name.starts_with("deberta");
  }
  int64_t compilations() const {
    heddle_program_info info{};
    info.struct_size = sizeof info;
    heddle_program_get_info(program_, &info);
    return info.compilations;
  }

  void expect_what_onnx_runtime_gave(int size) {
    const NamedLiterals inputs = read("inputs", size);
    for (int64_t i = 0; i < std::ssize(inputs); ++i) {
      heddle_port port{};
      port.struct_size = sizeof port;
      heddle_program_input(program_, i, &port);
      const auto input = std::find_if(inputs.begin(), inputs.end(),
                                      [&](const auto& named) { return named.first == port.name; });
      ASSERT_NE(input, inputs.end()) << port.name;
      const std::vector<int64_t> extents = input->second.shape().extents();
      ASSERT_TRUE(
          worked(heddle_context_set_input_shape(context_, i, extents.data(), std::ssize(extents))));
      ASSERT_TRUE(worked(heddle_context_bind_input(context_, i, input->second.data())));
    }
    ASSERT_TRUE(worked(heddle_context_prepare(context_)));
    const NamedLiterals expected = read("expected", size);
    ASSERT_EQ(heddle_context_output_count(context_), std::ssize(expected));
    std::vector<std::vector<std::byte>> memory(expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      heddle_port port{};
      port.struct_size = sizeof port;
      heddle_context_output(context_, static_cast<int64_t>(i), &port);
      EXPECT_EQ(port.name, expected[i].first);
      const std::vector<int64_t> dims(port.dims, port.dims + port.rank);
      ASSERT_EQ(dims, expected[i].second.shape().extents()) << port.name;
      memory[i].resize(static_cast<size_t>(port.bytes) + 1);
      ASSERT_TRUE(
          worked(heddle_context_bind_output(context_, static_cast<int64_t>(i), memory[i].data())));
    }
    ASSERT_TRUE(worked(heddle_context_run(context_)));
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto& [name, want] = expected[i];
      Literal got(want.shape());
      std::copy_n(memory[i].begin(), memory[i].size() - 1,
                  static_cast<std::byte*>(got.mutable_data()));
      const auto comparison = tensor::compare(got, want, {.relative_to_max = 1e-4});
      EXPECT_TRUE(comparison.equal) << name << ": " << comparison.describe();
    }
  }

  heddle_model* model_ = nullptr;
  heddle_program* program_ = nullptr;
  heddle_context* context_ = nullptr;
};

TEST_P(Export, EqualsOnnxRuntimeAtAllSizes) {
  for (int size = 0; size < kSizes; ++size) {
    SCOPED_TRACE(size);
    expect_what_onnx_runtime_gave(size);
  }
  const int64_t before = compilations();
  if (shares_programs()) {
    EXPECT_LE(before, 4);
  }
  expect_what_onnx_runtime_gave(0);
  // The first run's program is for its own count, if that is guessed later; the second run of these
  // sizes may be the first to have one for a guess.
  const int64_t again = compilations();
  EXPECT_LE(again, before + (GetParam().starts_with("speech") ? 1 : 0));
  expect_what_onnx_runtime_gave(0);
  EXPECT_EQ(compilations(), again);
}

INSTANTIATE_TEST_SUITE_P(All, Export, ::testing::ValuesIn(model_folders(folder())),
                         [](const auto& info) { return info.param; });

TEST(Exports, AreAllThere) {
  for (const char* name : {"deberta", "experts", "speech", "t5_decoder", "t5_encoder",
                           "whisper_decoder", "whisper_encoder", "yolo"})
    for (const char* exporter : {"_captured", "_traced"})
      EXPECT_THAT(model_folders(folder()), ::testing::Contains(std::string(name) + exporter));
}

}  // namespace
}  // namespace heddle
