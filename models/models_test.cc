// Small networks: compiled at O2 against the interpreter, one thread and two; and the sizes of the
// large ones.
#include "models.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "compiled_run.h"
#include "hlo/verify.h"
#include "interp/interp.h"
#include "tensor/compare.h"

namespace heddle::models {
namespace {

using tensor::Literal;

struct Case {
  const char* name;
  std::function<ModulePtr()> make;
};

ResNetSize small_resnet(bool bottleneck) {
  ResNetSize size{{1, 2}, {6, 10}};
  size.bottleneck = bottleneck;
  size.batch = 2, size.side = 32, size.classes = 7;
  return size;
}

RepVggSize small_repvgg(bool deploy) { return {{1, 2}, {8, 12}, 8, deploy, 2, 20, 7}; }

const TextSize kText{2, 6, 16, 2, 2, 24, 30};

std::vector<Case> cases() {
  return {
      {"resnet18", [] { return resnet(small_resnet(false)); }},
      {"resnet50", [] { return resnet(small_resnet(true)); }},
      {"vgg", [] { return vgg({{1, 2}, {6, 8}, {20, 12}, 2, 12, 7}); }},
      {"repvgg_train", [] { return repvgg(small_repvgg(false)); }},
      {"repvgg_deploy", [] { return repvgg(small_repvgg(true)); }},
      {"bert", [] { return bert(kText); }},
      {"transformer", [] { return transformer(kText); }},
      {"gpt2_prefill", [] { return gpt2(kText); }},
      {"gpt2_decode", [] { return gpt2({2, 1, 16, 2, 2, 24, 30}, 5); }},
      {"llama_prefill", [] { return llama({2, 5, 0, 16, 4, 2, 2, 24}); }},
      {"llama_decode", [] { return llama({2, 1, 6, 16, 4, 2, 2, 24}); }},
      {"conformer", [] { return conformer({2, 9, 16, 2, 2, 5, 12}); }},
      {"crnn", [] { return crnn({{4, 5, 6, 6, 8, 8, 10}, 2, 16, 6, 7}); }},
      {"dien", [] { return dien({3, 5, 20, 30, 7, 4, {12, 6}}); }},
      {"dlrm", [] { return dlrm({{9, 30, 7, 12}, {6, 16}, {12}, 5, 4}); }},
  };
}

// Ids are small, masks ones with a zero here and there.
std::vector<Literal> random_inputs(const hlo::Module& module) {
  std::mt19937 random(11);
  std::vector<Literal> inputs;
  for (const hlo::Instr* parameter : module.entry()->parameters()) {
    inputs.emplace_back(parameter->shape());
    const bool mask = parameter->name().find("mask") != std::string::npos;
    for (int64_t i = 0; i < parameter->shape().elems(); ++i) {
      const double unit = std::uniform_real_distribution<>(-1, 1)(random);
      if (parameter->shape().type() == tensor::Type::s32)
        static_cast<int32_t*>(inputs.back().mutable_data())[i] = static_cast<int32_t>(random() % 7);
      else
        static_cast<float*>(inputs.back().mutable_data())[i] =
            mask ? (i % 5 != 4) : static_cast<float>(unit);
    }
  }
  return inputs;
}

class Models : public ::testing::TestWithParam<Case> {};

TEST_P(Models, EqualTheInterpreterAtO2) {
  ModulePtr module = GetParam().make();
  ASSERT_TRUE(hlo::verify(*module)) << hlo::verify(*module).error().message;
  const std::vector<Literal> inputs = random_inputs(*module);
  auto evaluated = interp::evaluate(*module, inputs);
  ASSERT_TRUE(evaluated) << evaluated.error().message;
  std::vector<Literal> want, one;
  append_leaves(*evaluated, &want);
  for (int threads : {1, 2}) {
    std::string failure;
    const auto got = compile_and_run(module->clone(), inputs, target::host_target(),
                                     compiler::Options{}, threads, &failure);
    ASSERT_EQ(failure, "");
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const auto comparison = tensor::compare(got[i], want[i], {.relative_to_max = 1e-5});
      EXPECT_TRUE(comparison.equal) << "output " << i << ": " << comparison.describe();
      if (threads == 2) {
        EXPECT_TRUE(got[i] == one[i]) << "bits differ";
      }
    }
    one = got;
  }
  // Values that vanish or overflow would show nothing.
  for (const Literal& output : want) {
    const auto* values = static_cast<const float*>(output.data());
    double most = 0;
    for (int64_t i = 0; i < output.shape().elems(); ++i)
      most = std::fmax(most, std::abs(values[i]));
    EXPECT_TRUE(most > 1e-2 && most < 1e3) << most;
  }
}

INSTANTIATE_TEST_SUITE_P(Small, Models, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

int64_t weights_of(const hlo::Module& module) {
  int64_t sum = 0;
  for (const hlo::Instr* instr : module.entry()->instrs())
    if (instr->is(hlo::Opcode::constant)) sum += instr->shape().elems();
  return sum;
}

TEST(models, HaveThePublishedSizes) {
  EXPECT_NEAR(static_cast<double>(weights_of(*resnet(resnet18_size()))), 11.7e6, 0.1e6);
  EXPECT_NEAR(static_cast<double>(weights_of(*resnet(resnet50_size()))), 25.6e6, 0.1e6);
  EXPECT_NEAR(static_cast<double>(weights_of(*repvgg(repvgg_a0_size(true)))), 8.3e6, 0.1e6);
  EXPECT_NEAR(static_cast<double>(weights_of(*repvgg(repvgg_b0_size(true)))), 14.3e6, 0.1e6);
}

}  // namespace
}  // namespace heddle::models
