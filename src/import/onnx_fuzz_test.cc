// Damaged models: whatever the file contains, the importer quickly gives a module or an error.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "import/onnx_test_util.h"

namespace heddle::import {
namespace {

using namespace testing;  // NOLINT

// A small model of many kinds of operators, so that damage meets many handlers.
Model varied() {
  Model model;
  model.inputs = {value("x", kFloat, {"batch", "3", "8", "8"}), value("i", kInt64, {"2"})};
  model.constants = {tensor<float>("w", kFloat, {4, 3, 3, 3}, std::vector<float>(108, 0.5f)),
                     tensor<float>("v", kFloat, {4}, {1, 2, 3, 4}),
                     tensor<float>("m", kFloat, {64, 5}, std::vector<float>(320, 0.25f)),
                     ints_tensor("shape", {0, 4, -1}),
                     ints_tensor("pads", {0, 0, 1, 0, 0, 1}),
                     ints_tensor("starts", {1}),
                     ints_tensor("ends", {-1}),
                     ints_tensor("axes", {1}),
                     ints_tensor("repeats", {1, 2, 1}),
                     tensor<float>("scales", kFloat, {4}, {1, 1, 2, 2})};
  model.nodes = {
      node("Conv", {"x", "w", "v"}, {"c"},
           {attr("pads", Ints{1, 1, 1, 1}), attr("strides", Ints{1, 1})}),
      node("BatchNormalization", {"c", "v", "v", "v", "v"}, {"n"}, {attr("epsilon", 1e-5)}),
      node("MaxPool", {"n"}, {"p"},
           {attr("kernel_shape", Ints{2, 2}), attr("ceil_mode", int64_t{1})}),
      node("AveragePool", {"p"}, {"a"},
           {attr("kernel_shape", Ints{2, 2}), attr("pads", Ints{1, 1, 0, 0})}),
      node("Resize", {"a", "", "scales"}, {"r"}, {attr("mode", std::string("linear"))}),
      node("Reshape", {"n", "shape"}, {"s"}),
      node("Pad", {"s", "pads"}, {"d"}),
      node("Slice", {"d", "starts", "ends", "axes"}, {"l"}),
      node("Gather", {"s", "i"}, {"g"}, {attr("axis", int64_t{1})}),
      node("Tile", {"s", "repeats"}, {"t"}),
      node("MatMul", {"s", "m"}, {"q"}),
      node("Softmax", {"q"}, {"o"}, {attr("axis", int64_t{-1})}),
      node("Einsum", {"o", "q"}, {"e"}, {attr("equation", std::string("bij,bkj->bik"))}),
      node("TopK", {"o", "starts"}, {"top", "where"}),
      node("LayerNormalization", {"n", "v2"}, {"ln"}, {attr("axis", int64_t{2})}),
      node("Transpose", {"e"}, {"y"}, {attr("perm", Ints{2, 0, 1})})};
  model.nodes.erase(model.nodes.end() - 2);
  model.outputs = {"y", "r", "l", "g", "t", "top", "where"};
  return model;
}

std::string file(const std::string& name) {
  std::ifstream in(std::string(HEDDLE_SOURCE_DIR) + "/tests/testdata/onnx/" + name + "/model.onnx",
                   std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string operators(const std::string& name) { return file("../onnx_operators/" + name); }

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  std::string damage(std::string bytes) {
    for (int64_t n = 1 + below(4); n > 0 && !bytes.empty(); --n) once(bytes);
    return bytes;
  }

 private:
  int64_t below(size_t n) { return static_cast<int64_t>(random_() % n); }

  void once(std::string& bytes) {
    const size_t at = static_cast<size_t>(below(bytes.size()));
    const size_t length = std::min(bytes.size() - at, static_cast<size_t>(1 + below(16)));
    constexpr unsigned char kTelling[] = {0, 1, 2, 0x7f, 0x80, 0xfe, 0xff};
    switch (below(7)) {
      case 0:
        bytes[at] = static_cast<char>(random_());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 2:
        bytes[at] = static_cast<char>(kTelling[below(std::size(kTelling))]);
        break;
      case 3:
        bytes.erase(at, length);
        break;
      case 4:
        bytes.insert(at, bytes.substr(static_cast<size_t>(below(bytes.size())), length));
        break;
      case 5:  // a large number where a small one was
        bytes.replace(at, 1, "\xff\xff\xff\xff\xff\xff\xff\xff\x7f");
        break;
      default:
        bytes.resize(at);
    }
  }

  std::mt19937_64 random_;
};

TEST(OnnxFuzz, TheModelsAreWhole) { imported(varied().import()); }

TEST(OnnxFuzz, DamagedModelsReturn) {
  // Small models with subgraphs, loops, sequences, quantised values.
  const std::vector<std::string> small = {varied().bytes(),
                                          operators("loop_fixed"),
                                          operators("loop_growing"),
                                          operators("if_positive"),
                                          operators("scan"),
                                          operators("sequence"),
                                          operators("lstm_bidirectional"),
                                          operators("gru_reverse"),
                                          operators("qlinear_conv"),
                                          operators("grid_sample_bilinear_zeros"),
                                          operators("max_pool_indices"),
                                          operators("col2im"),
                                          operators("stft"),
                                          operators("../onnx_ml/tree_modes"),
                                          operators("../onnx_ml/svm_3_classes_probabilities"),
                                          operators("../onnx_ml/label_to_strings")};
  const std::vector<std::string> large = {file("cnn"), file("residual"), file("bert_dynamic")};
  std::vector<std::string> seeds = small;
  seeds.insert(seeds.end(), large.begin(), large.end());
  for (const std::string& seed : seeds) ASSERT_FALSE(seed.empty());
  int64_t read = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    // Small models more often: damage to them hits structure rather than weights.
    const std::string& seed =
        i % 8 == 7 ? large[(i / 8) % large.size()] : small[i % 2 == 0 ? 0 : (i / 2) % small.size()];
    const std::string bytes = Mutator(i).damage(seed);
    const auto begin = std::chrono::steady_clock::now();
    const Result<Imported> result = import_onnx_bytes(bytes, "");
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(taken.count(), 20) << "variant " << i;
    if (result) {
      ++read;
      const Status verified = hlo::verify(*result->module);
      EXPECT_TRUE(verified) << "variant " << i << ": " << verified.error().message;
    } else {
      EXPECT_FALSE(result.error().message.empty());
      EXPECT_EQ(result.error().message.find('\n'), std::string::npos) << result.error().message;
    }
  }
  // Some damage hits weights or names only.
  EXPECT_GT(read, 20);
  EXPECT_LT(read, 1800);
}

}  // namespace
}  // namespace heddle::import
