// merge_convolutions: the branches of a block become one filter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "hlo/builder.h"
#include "hlo/text.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/pipeline.h"
#include "opt/test_util.h"

namespace heddle::opt {
namespace {

using hlo::Builder;

int64_t count(const hlo::Module& module, Opcode opcode) {
  const auto& all = module.entry()->instrs();
  return std::count_if(all.begin(), all.end(), [&](const Instr* i) { return i->is(opcode); });
}

// A block of branches over one input [2, channels, 6, 7] (optionally channels last).
class Block {
 public:
  explicit Block(uint64_t seed, int64_t channels = 4, bool last = false, int64_t groups = 1)
      : random_(seed), module_("block"), channels_(channels), last_(last), groups_(groups) {
    module_.set_entry(module_.add_computation("main"));
    b_.emplace(module_.entry());
    x_ = b_->parameter(
        0, Shape::array(Type::f32, last ? Ints{2, 6, 7, channels} : Ints{2, channels, 6, 7}));
  }
  hlo::Module& module() { return module_; }
  Builder& b() { return *b_; }
  Instr* input() { return x_; }

  Instr* constant(const Ints& extents) {
    Literal value(Shape::array(Type::f32, extents));
    std::uniform_real_distribution<float> range(-1, 1);
    for (int64_t i = 0; i < value.elems(); ++i) value.set_f64(i, range(random_));
    return b_->constant(value);
  }
  Instr* per_channel(const Ints& extents) {
    return b_->broadcast(constant({channels_}), extents, {last_ ? 3 : 1});
  }

  Instr* branch(int64_t size, int64_t pad, int64_t stride = 1, int64_t dilation = 1) {
    hlo::ConvolutionAttrs attrs;
    hlo::WindowDim dim;
    dim.size = size;
    dim.stride = stride;
    dim.rhs_dilate = dilation;
    dim.pad_low = dim.pad_high = pad;
    attrs.window.dims = {dim, dim};
    attrs.feature_group_count = groups_;
    hlo::ConvolutionDims& dims = attrs.dims;
    dims.input_feature = dims.output_feature = last_ ? 3 : 1;
    dims.input_spatial = dims.output_spatial = last_ ? Ints{1, 2} : Ints{2, 3};
    dims.kernel_input_feature = last_ ? 2 : 1;
    dims.kernel_output_feature = last_ ? 3 : 0;
    dims.kernel_spatial = last_ ? Ints{0, 1} : Ints{2, 3};
    const int64_t in = channels_ / groups_;
    return b_->convolution(
        x_, constant(last_ ? Ints{size, size, in, channels_} : Ints{channels_, in, size, size}),
        std::move(attrs));
  }
  Instr* add(Instr* x, Instr* y) { return b_->binary(Opcode::add, x, y); }
  Instr* biased(Instr* x) { return add(x, per_channel(x->shape().extents())); }
  // (x - m) * a + b
  Instr* identity() {
    const Ints extents = x_->shape().extents();
    Instr* shifted = b_->binary(Opcode::subtract, x_, per_channel(extents));
    return biased(b_->binary(Opcode::multiply, shifted, per_channel(extents)));
  }
  void finish(Instr* root) {
    b_->check();
    module_.entry()->set_root(b_->unary(Opcode::tanh, root));
  }

  // Runs the pass and compares values; returns the number of convolutions left.
  int64_t merged(std::string_view what) {
    auto before = module_.clone();
    run(module_, "merge_convolutions,dce");
    expect_same_values(*before, module_, 3, true, what);
    return count(module_, Opcode::convolution);
  }

 private:
  std::mt19937_64 random_;
  hlo::Module module_;
  std::optional<Builder> b_;
  Instr* x_ = nullptr;
  int64_t channels_;
  bool last_;
  int64_t groups_;
};

TEST(MergeConvolutions, ThreeBranches) {
  for (bool last : {false, true}) {
    for (int64_t groups : {1, 2, 4}) {
      Block block(1, 4, last, groups);
      block.finish(
          block.add(block.add(block.biased(block.branch(3, 1)), block.biased(block.branch(1, 0))),
                    block.identity()));
      EXPECT_EQ(block.merged(fmt::format("last {} groups {}", last, groups)), 1);
      EXPECT_EQ(count(block.module(), Opcode::subtract), 0);
    }
  }
}

TEST(MergeConvolutions, ThePlainInputAndDilatedWindows) {
  Block block(2);
  block.finish(
      block.add(block.add(block.input(), block.branch(3, 2, 1, 2)), block.branch(5, 4, 1, 2)));
  EXPECT_EQ(block.merged("dilated"), 1);
}

TEST(MergeConvolutions, StridesWithoutTheInput) {
  Block block(3);
  block.finish(block.add(block.biased(block.branch(3, 1, 2)), block.branch(1, 0, 2)));
  EXPECT_EQ(block.merged("strides"), 1);
}

TEST(MergeConvolutions, OthersStay) {
  struct {
    const char* what;
    std::function<Instr*(Block&)> build;
  } const kCases[] = {
      {"dilations", [](Block& x) { return x.add(x.branch(3, 2, 1, 2), x.branch(3, 1)); }},
      {"product",
       [](Block& x) { return x.b().binary(Opcode::multiply, x.branch(3, 1), x.branch(1, 0)); }},
      {"another input",
       [](Block& x) {
         Instr* one = x.branch(3, 1);
         return x.add(one, x.b().unary(Opcode::negate, x.input()));
       }},
  };
  for (const auto& c : kCases) {
    Block block(4);
    Instr* sum = c.build(block);
    block.finish(sum);
    const int64_t before = count(block.module(), Opcode::convolution);
    EXPECT_EQ(block.merged(c.what), before) << c.what;
  }
}

// A result with other readers, and filters that are not constant.
TEST(MergeConvolutions, WhatOthersReadStays) {
  Block block(5);
  Instr* one = block.branch(3, 1);
  Instr* sum = block.add(one, block.branch(1, 0));
  block.finish(block.add(sum, block.b().unary(Opcode::negate, one)));
  EXPECT_EQ(block.merged("shared"), 2);
}

TEST(MergeConvolutions, IsNamedInTheNotes) {
  Block block(6);
  block.finish(block.add(block.branch(3, 1), block.branch(1, 0)));
  const pass::RunReport report = run(block.module(), "merge_convolutions");
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_THAT(report.notes[0], testing::HasSubstr("rounding differs"));
}

TEST(MergeConvolutions, TheWholeBlockInThePipeline) {
  Block block(7);
  auto scaled = [&](Instr* x) {
    return block.biased(
        block.b().binary(Opcode::multiply, x, block.per_channel(x->shape().extents())));
  };
  block.finish(block.add(block.add(scaled(block.branch(3, 1)), scaled(block.branch(1, 0))),
                         block.identity()));
  auto before = block.module().clone();
  run(block.module(), pipeline_for(Level::O2));
  expect_same_values(*before, block.module(), 3, true, "pipeline");
  EXPECT_EQ(count(block.module(), Opcode::convolution), 1) << hlo::to_string(block.module());
  EXPECT_EQ(count(block.module(), Opcode::add), 1) << hlo::to_string(block.module());
}

}  // namespace
}  // namespace heddle::opt
