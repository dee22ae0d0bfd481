// SmoothQuant changes constants and not the function: models with factors folded into them, by the
// interpreter, beside the outputs of the models as they are.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include "import/onnx.h"
#include "interp/interp.h"
#include "quantize/smooth.h"
#include "tensor/compare.h"
#include "tensor/npz.h"

namespace heddle {
namespace {

using tensor::Literal;
using tensor::NamedLiterals;

std::string path_of(const std::string& model, const std::string& file) {
  return std::string(HEDDLE_SOURCE_DIR) + "/tests/testdata/onnx/" + model + "/" + file;
}

// Of the inputs beside the model.
Literal outputs(const std::string& model, const std::string& path) {
  const Result<NamedLiterals> inputs = tensor::read_npz(path_of(model, "inputs.npz"));
  if (!inputs) return Literal();
  import::Options options;
  for (const auto& [name, literal] : *inputs) options.shapes[name] = literal.shape().extents();
  const Result<import::Imported> imported = import::import_onnx(path, options);
  EXPECT_TRUE(imported) << imported.error().message;
  if (!imported) return Literal();
  std::vector<Literal> arguments;
  for (const std::string& name : imported->input_names)
    for (const auto& [key, literal] : *inputs)
      if (key == name) arguments.push_back(literal);
  const Result<Literal> result = interp::evaluate(*imported->module, arguments);
  EXPECT_TRUE(result) << result.error().message;
  return result ? *result : Literal();
}

// Channels as a set might show them: most of about 1, some of 50.
std::map<std::string, quantize::Channels> imagined(const import::OnnxEdit& model,
                                                   const std::vector<quantize::Layer>& layers) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> draw(0.5, 1);
  std::map<std::string, quantize::Channels> all;
  for (const quantize::Layer& layer : layers) {
    if (layer.kind != quantize::Kind::product) continue;
    quantize::Channels& channels = all[layer.input];
    channels = {};
    for (int64_t j = 0; j < model.dims_of(layer.weights)[static_cast<size_t>(1 - layer.axis)]; ++j)
      channels.most.push_back(draw(random) * (j % 16 == 3 ? 50 : 1));
    for (double most : channels.most) channels.power.push_back(most * most / 9);
    channels.rounding = 1;
  }
  return all;
}

class SmoothedModel : public ::testing::TestWithParam<std::pair<const char*, int>> {};

TEST_P(SmoothedModel, ComputesTheSame) {
  const auto& [name, least] = GetParam();
  auto model = import::OnnxEdit::open(path_of(name, "model.onnx"));
  ASSERT_TRUE(model) << model.error().message;
  const std::vector<quantize::Layer> layers = quantize::find_layers(*model);
  quantize::Plan plan;
  plan.chosen.assign(layers.size(), true);
  const auto made = quantize::smooth(*model, layers, imagined(*model, layers), 0.5, &plan);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_GE(std::count_if(made->begin(), made->end(),
                          [](const quantize::Smoothing& one) { return one.exponent == 0.5; }),
            least);
  for (const auto& [initializer, value] : plan.values) model->set(initializer, value);
  const auto path = std::filesystem::temp_directory_path() / (std::string(name) + "_smoothed.onnx");
  const auto bytes = model->write();
  ASSERT_TRUE(bytes) << bytes.error().message;
  std::ofstream(path, std::ios::binary) << *bytes;
  const Literal got = outputs(name, path), want = outputs(name, path_of(name, "model.onnx"));
  std::filesystem::remove(path);
  ASSERT_EQ(got.elements().size(), want.elements().size());
  for (size_t i = 0; i < got.elements().size(); ++i) {
    const auto same =
        tensor::compare(got.elements()[i], want.elements()[i], {.relative_to_max = 1e-5});
    EXPECT_TRUE(same.equal) << i << ": " << same.describe();
  }
}

INSTANTIATE_TEST_SUITE_P(All, SmoothedModel,
                         ::testing::Values(std::pair("outliers", 6), std::pair("llama_block", 5),
                                           std::pair("conformer", 1), std::pair("transformer", 1),
                                           std::pair("bert", 0)),
                         [](const auto& info) { return info.param.first; });

}  // namespace
}  // namespace heddle
