// Models exported by torch, from ONNX to numbers: imported, evaluated by the interpreter, compared
// with what ONNX Runtime (optimisations off) gave. testdata/onnx/make_*.py made them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "hlo/text.h"
#include "hlo/verify.h"
#include "import/onnx.h"
#include "interp/interp.h"
#include "tensor/compare.h"
#include "tensor/npz.h"

namespace heddle {
namespace {

using tensor::Literal;
using tensor::NamedLiterals;

const std::string& folder() {
  static const std::string path = std::string(HEDDLE_SOURCE_DIR) + "/tests/testdata/onnx/";
  return path;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    if (std::filesystem::exists(entry.path() / "model.onnx"))
      names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

NamedLiterals read(const std::string& path) {
  Result<NamedLiterals> values = tensor::read_npz(path);
  EXPECT_TRUE(values) << values.error().message;
  return values ? *values : NamedLiterals();
}

const Literal* find(const NamedLiterals& values, const std::string& name) {
  for (const auto& [key, literal] : values) {
    if (key == name) return &literal;
  }
  return nullptr;
}

class OnnxModel : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    inputs_ = read(folder() + GetParam() + "/inputs.npz");
    for (const auto& [name, literal] : inputs_) options_.shapes[name] = literal.shape().extents();
  }
  Result<import::Imported> import_it() const {
    return import::import_onnx(folder() + GetParam() + "/model.onnx", options_);
  }
  NamedLiterals inputs_;
  import::Options options_;
};

TEST_P(OnnxModel, EqualsOnnxRuntime) {
  const Result<import::Imported> imported = import_it();
  ASSERT_TRUE(imported) << imported.error().message;
  const Status verified = hlo::verify(*imported->module);
  ASSERT_TRUE(verified) << verified.error().message;
  std::vector<Literal> arguments;
  for (const std::string& name : imported->input_names) {
    const Literal* value = find(inputs_, name);
    ASSERT_NE(value, nullptr) << name;
    arguments.push_back(*value);
  }
  const Result<Literal> result = interp::evaluate(*imported->module, arguments);
  ASSERT_TRUE(result) << result.error().message;
  const NamedLiterals expected = read(folder() + GetParam() + "/expected.npz");
  ASSERT_EQ(imported->output_names.size(), expected.size());
  for (size_t i = 0; i < imported->output_names.size(); ++i) {
    const std::string& name = imported->output_names[i];
    const Literal* want = find(expected, name);
    ASSERT_NE(want, nullptr) << name;
    const Literal& got = result->elements()[i];
    ASSERT_TRUE(got.shape().compatible(want->shape()))
        << name << ": " << to_string(got.shape()) << ", wanted " << to_string(want->shape());
    const auto comparison = tensor::compare(got, *want, {.relative_to_max = 1e-4});
    EXPECT_TRUE(comparison.equal) << name << ": " << comparison.describe();
  }
}

// Shape arithmetic is gone: nothing is computed from sizes, and no dead instruction is left.
TEST_P(OnnxModel, PrintsAndParsesBack) {
  const Result<import::Imported> imported = import_it();
  ASSERT_TRUE(imported) << imported.error().message;
  const std::string text = hlo::to_string(*imported->module);
  const auto parsed = hlo::parse_module(text);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(hlo::to_string(**parsed), text);
  for (const hlo::Instr* instr : imported->module->entry()->instrs()) {
    const bool needed = !instr->users().empty() || instr->is(hlo::Opcode::parameter) ||
                        instr == imported->module->entry()->root();
    EXPECT_TRUE(needed) << hlo::to_string(*instr);
  }
}

INSTANTIATE_TEST_SUITE_P(All, OnnxModel, ::testing::ValuesIn(model_names()),
                         [](const auto& info) { return info.param; });

TEST(OnnxModels, AreAllThere) {
  EXPECT_THAT(model_names(), ::testing::IsSupersetOf({"bert",
                                                      "bert_dynamic",
                                                      "bert_dynamo",
                                                      "cnn",
                                                      "cnn_opset9",
                                                      "conformer",
                                                      "conformer_dynamo",
                                                      "convnext",
                                                      "crnn",
                                                      "crnn_dynamo",
                                                      "deepspeech2",
                                                      "deepspeech2_dynamo",
                                                      "convnext_dynamo",
                                                      "densenet",
                                                      "dien",
                                                      "dien_dynamo",
                                                      "dlrm",
                                                      "dlrm_bags",
                                                      "efficientnet",
                                                      "encoder_decoder",
                                                      "gpt2_cached",
                                                      "gpt2_decode",
                                                      "gpt2_prefill",
                                                      "llama_block",
                                                      "llama_block_cached",
                                                      "llama_block_cached_dynamo",
                                                      "llama_decode",
                                                      "llama_prefill",
                                                      "minilm",
                                                      "mobilenet",
                                                      "mobilenet_dynamo",
                                                      "repvgg_deploy",
                                                      "repvgg_hardswish",
                                                      "repvgg_train",
                                                      "residual",
                                                      "resnet18",
                                                      "resnet50",
                                                      "squeezenet",
                                                      "swin",
                                                      "swin_static",
                                                      "swin_static_dynamo",
                                                      "transformer",
                                                      "transformer_dynamo",
                                                      "unet",
                                                      "vgg",
                                                      "vit"}));
}

}  // namespace
}  // namespace heddle
