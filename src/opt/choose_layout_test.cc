// choose_layout: specific graphs, and random convolutional networks in several layouts.
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

TEST(ChooseLayout, AConvolutionBetweenTransposes) {
  EXPECT_EQ(simplified("x = f32[2,3,5,6] parameter(0) k = f32[4,3,3,3] parameter(1)\n"
                       "ROOT r = f32[2,4,5,6] convolution(x, k), window={size=3x3 pad=1_1x1_1}, "
                       "dim_labels=bf01_oi01->bf01",
                       "choose_layout"),
            "transpose[2,4,5,6]{0,3,1,2}(convolution(transpose[2,5,6,3]{0,2,3,1}(p0), "
            "transpose[3,3,3,4]{2,3,1,0}(p1)))");
}

// Tokens become images, are resized and concatenated, and feed a convolution: no transpose is left.
TEST(ChooseLayout, WhatComesBeforeIsComputedInTheWantedOrder) {
  const std::string text =
      "x = f32[1,30,8] parameter(0)\n"
      "t = f32[1,8,30] transpose(x), dimensions={0,2,1}\n"
      "i = f32[1,8,5,6] reshape(t)\n"
      "places = s64[10] constant({0,0,1,1,2,2,3,3,4,4})\n"
      "g = f32[1,8,10,6] gather(i, places), offset_dims={0,1,3}, collapsed_slice_dims={2}, "
      "start_index_map={2}, index_vector_dim=1, slice_sizes={1,8,1,6}\n"
      "y = f32[1,10,6,3] parameter(1)\n"
      "u = f32[1,3,10,6] transpose(y), dimensions={0,3,1,2}\n"
      "m = f32[1,3,10,6] negate(u)\n"
      "c = f32[1,11,10,6] concatenate(g, m), dimensions={1}\n"
      "k = f32[3,3,11,4] parameter(2)\n"
      "ROOT r = f32[1,10,6,4] convolution(c, k), window={size=3x3 pad=1_1x1_1}, "
      "dim_labels=bf01_01io->b01f";
  EXPECT_EQ(simplified(text, "choose_layout").find("transpose"), std::string::npos)
      << simplified(text, "choose_layout");
  // If it has other readers, the image exists anyway.
  const std::string twice = text.substr(0, text.rfind("ROOT")) +
                            "n = f32[1,10,6,4] convolution(c, k), window={size=3x3 pad=1_1x1_1}, "
                            "dim_labels=bf01_01io->b01f\n"
                            "ROOT r = (f32[1,10,6,4], f32[1,11,10,6]) tuple(n, c)";
  EXPECT_NE(simplified(twice, "choose_layout").find("transpose"), std::string::npos);
}

TEST(ChooseLayout, PoolsAloneTakeTheirFeaturesLast) {
  auto pool = [](const char* window) {
    return std::string(
               "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
               "ENTRY e { x = f32[1,16,20,21] parameter(0) zero = f32[] constant(0)\n"
               "ROOT r = f32[1,16,20,21] reduce-window(x, zero), window={size=") +
           window + "}, to_apply=add }";
  };
  const std::string moved = simplified(pool("1x1x3x3 pad=0_0x0_0x1_1x1_1"), "choose_layout");
  EXPECT_NE(moved.find("transpose[1,20,21,16]{0,2,3,1}(p0)"), std::string::npos) << moved;
  // Lanes along the last dimension already read neighbours.
  expect_unchanged(pool("1x1x3x1 pad=0_0x0_0x1_1x0_0"), "choose_layout");
}

TEST(ChooseLayout, WhatStandsRightStays) {
  expect_unchanged(
      "x = f32[2,5,6,3] parameter(0) k = f32[3,3,3,4] parameter(1)\n"
      "c = f32[2,5,6,4] convolution(x, k), window={size=3x3 pad=1_1x1_1}, "
      "dim_labels=b01f_01io->b01f\n"
      "ROOT r = f32[2,4,5,6] transpose(c), dimensions={0,3,1,2}",
      "choose_layout");
  // Without a convolution nothing changes.
  expect_unchanged(
      "x = f32[2,3,4] parameter(0) t = f32[2,4,3] transpose(x), dimensions={0,2,1}\n"
      "ROOT r = f32[2,4,3] tanh(t)",
      "choose_layout");
  // Batch groups are not changed.
  expect_unchanged(
      "x = f32[4,2,5] parameter(0) k = f32[4,2,3] parameter(1)\n"
      "ROOT r = f32[2,4,3] convolution(x, k), window={size=3}, dim_labels=bf0_oi0->bf0, "
      "batch_group_count=2",
      "choose_layout");
}

TEST(ChooseLayout, PatchesAreCutFromTheInputAsItLies) {
  EXPECT_EQ(simplified("x = f32[2,3,4,6] parameter(0) k = f32[5,3,2,2] parameter(1)\n"
                       "c = f32[2,5,2,3] convolution(x, k), window={size=2x2 stride=2x2}, "
                       "dim_labels=bf01_oi01->bf01\n"
                       "f = f32[2,5,6] reshape(c)\n"
                       "ROOT r = f32[2,6,5] transpose(f), dimensions={0,2,1}",
                       "choose_layout"),
            "reshape[2,6,5](convolution(p0, p1))");
}

// Two convolutions, a sum around one of them, a pool, a mean: one transpose at the input, none at
// the output.
TEST(ChooseLayout, ABlockIsOneRegion) {
  auto module = parse(R"(
    add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
    max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] maximum(a, b) }
    ENTRY e {
      x = f32[2,3,8,8] parameter(0) k = f32[4,3,3,3] parameter(1)
      l = f32[4,4,3,3] parameter(2) bias = f32[4] parameter(3)
      zero = f32[] constant(0) least = f32[] constant(-inf) zeros = f32[2,4,8,8] broadcast(zero), dimensions={}
      c = f32[2,4,8,8] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01
      bb = f32[2,4,8,8] broadcast(bias), dimensions={1}
      cb = f32[2,4,8,8] add(c, bb)
      r = f32[2,4,8,8] maximum(cb, zeros)
      d = f32[2,4,8,8] convolution(r, l), window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01
      s = f32[2,4,8,8] add(d, r)
      p = f32[2,4,4,4] reduce-window(s, least), window={size=1x1x2x2 stride=1x1x2x2}, to_apply=max
      both = f32[2,8,4,4] concatenate(p, p), dimensions={1}
      part = f32[2,5,4,4] slice(both), slice={[0:2], [1:6], [0:4], [0:4]}
      m = f32[2,5] reduce(part, zero), dimensions={2,3}, to_apply=add
      ROOT t = (f32[2,5]) tuple(m)
    })");
  auto before = module->clone();
  run(*module, "choose_layout,dce");
  expect_same_values(*before, *module, 1, false, "block");
  // The input, two filters.
  EXPECT_EQ(count(*module, Opcode::transpose), 3) << hlo::to_string(*module);
}

TEST(ChooseLayout, ThePipelineEndsWithOneTransposeOfTheInput) {
  auto module = parse(R"(
    ENTRY e {
      x = f32[2,3,8,8] parameter(0) k = f32[16,3,3,3] parameter(1) l = f32[16,16,1,1] parameter(2)
      c = f32[2,16,8,8] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01
      h = f32[2,16,8,8] tanh(c)
      d = f32[2,16,8,8] convolution(h, l), window={size=1x1}, dim_labels=bf01_oi01->bf01
      flat = f32[2,16,64] reshape(d)
      ROOT t = f32[2,64,16] transpose(flat), dimensions={0,2,1}
    })");
  run(*module, pipeline_for(Level::O2));
  EXPECT_EQ(count(*module, Opcode::dot), 1);
  EXPECT_EQ(count(*module, Opcode::transpose), 2) << hlo::to_string(*module);  // and k
}

// A random network: values of rank 4 (or 3), and any operators that accept them.
class RandomNet {
 public:
  explicit RandomNet(uint64_t seed) : random_(seed), module_("net") {
    module_.set_entry(module_.add_computation("main"));
    b_.emplace(module_.entry());
    spatial_ = 1 + number(2);
    std::vector<int64_t> extents{1 + number(2), 1 + number(4)};
    for (int64_t i = 0; i < spatial_; ++i) extents.push_back(4 + number(4));
    values_.push_back(b_->parameter(parameters_++, Shape::array(Type::f32, extents)));
    for (int i = 0; i < 12; ++i) step();
    std::vector<Instr*> results{values_.back()};
    if (number(2)) results.push_back(values_[static_cast<size_t>(number(values_.size()))]);
    if (number(2)) results.push_back(b_->reduce(Opcode::add, any(), dims_from(2)));
    module_.entry()->set_root(b_->tuple(results));
    b_->check();
  }
  hlo::Module& module() { return module_; }

 private:
  int64_t number(size_t below) { return static_cast<int64_t>(random_() % below); }
  Instr* any() { return values_[static_cast<size_t>(number(values_.size()))]; }
  Ints dims_from(int64_t first) const {
    Ints dims;
    for (int64_t d = first; d < spatial_ + 2; ++d) dims.push_back(d);
    return dims;
  }

  void step() {
    Instr* x = number(3) ? values_.back() : any();
    switch (number(13)) {
      case 0:
      case 1:
      case 2:
        x = convolve(x);
        break;
      case 3:
        x = b_->unary(Opcode::tanh, x);
        break;
      case 4:
        x = add_channels(x);
        break;
      case 5:
        x = add_other(x);
        break;
      case 6:
        x = pool(x);
        break;
      case 7:
        x = b_->concatenate({x, b_->unary(Opcode::negate, x)}, number(spatial_ + 2));
        break;
      case 8:
        x = cut(x);
        break;
      case 9:
        x = widen(x);
        break;
      case 10:
        x = gate(x);
        break;
      case 11:
        x = tokens(x);
        break;
      default:
        x = b_->reverse(x, {number(spatial_ + 2)});
        break;
    }
    if (x->shape().elems() > 0 && x->shape().elems() < 20000) values_.push_back(x);
  }

  Instr* convolve(Instr* x) {
    const int64_t channels = x->shape().dim(1);
    hlo::ConvolutionAttrs attrs;
    attrs.feature_group_count = number(3) == 0 ? channels : 1;
    const int64_t features =
        attrs.feature_group_count == 1 ? 1 + number(5) : channels * (1 + number(2));
    std::vector<int64_t> kernel{features, channels / attrs.feature_group_count};
    for (int64_t i = 0; i < spatial_; ++i) {
      hlo::WindowDim dim;
      dim.size = std::min<int64_t>(1 + number(3), x->shape().dim(2 + i));
      dim.stride = 1 + number(2);
      dim.pad_low = number(2);
      dim.pad_high = number(2);
      attrs.window.dims.push_back(dim);
      kernel.push_back(dim.size);
      attrs.dims.input_spatial.push_back(2 + i);
      attrs.dims.kernel_spatial.push_back(2 + i);
      attrs.dims.output_spatial.push_back(2 + i);
    }
    attrs.dims.input_feature = attrs.dims.output_feature = attrs.dims.kernel_input_feature = 1;
    Instr* filter = b_->parameter(parameters_++, Shape::array(Type::f32, kernel));
    return b_->convolution(x, filter, std::move(attrs));
  }

  Instr* add_channels(Instr* x) {
    Instr* bias = b_->parameter(parameters_++, Shape::array(Type::f32, {x->shape().dim(1)}));
    return b_->binary(Opcode::add, x, b_->broadcast(bias, x->shape().extents(), {1}));
  }

  Instr* add_other(Instr* x) {
    for (Instr* other : values_)
      if (other != x && other->shape() == x->shape())
        return b_->binary(number(2) ? Opcode::add : Opcode::maximum, x, other);
    return b_->binary(Opcode::multiply, x, b_->full(x->shape(), 0.5));
  }

  Instr* pool(Instr* x) {
    hlo::Window window;
    for (int64_t d = 0; d < spatial_ + 2; ++d) {
      hlo::WindowDim dim;
      if (d >= 2) dim = {std::min<int64_t>(2, x->shape().dim(d)), 1 + number(2), number(2), 0};
      window.dims.push_back(dim);
    }
    const bool sum = number(2);
    return b_->reduce_window(sum ? Opcode::add : Opcode::maximum, x,
                             b_->scalar(Type::f32, sum ? 0 : -INFINITY), window);
  }

  Instr* cut(Instr* x) {
    Ints starts(x->shape().rank(), 0), limits = x->shape().extents();
    const auto d = static_cast<size_t>(number(x->shape().rank()));
    if (limits[d] > 1) starts[d] = 1;
    return b_->slice(x, starts, limits, {});
  }

  Instr* widen(Instr* x) {
    const auto rank = static_cast<size_t>(x->shape().rank());
    Ints low(rank, 0), high(rank, 0);
    low[static_cast<size_t>(number(rank))] = 1;
    high[rank - 1] = number(2);
    return b_->pad(x, b_->scalar(Type::f32, 0.25), low, high, Ints(rank, 0));
  }

  // x times a gate for each image's channels.
  Instr* gate(Instr* x) {
    Instr* mean = b_->reduce(Opcode::maximum, x, dims_from(2));
    return b_->binary(
        Opcode::multiply, x,
        b_->broadcast(b_->unary(Opcode::logistic, mean), x->shape().extents(), {0, 1}));
  }

  // Through [N, pixels, C] and back.
  Instr* tokens(Instr* x) {
    const Ints extents = x->shape().extents();
    int64_t pixels = 1;
    for (int64_t d : dims_from(2)) pixels *= extents[static_cast<size_t>(d)];
    Instr* flat = b_->transpose(b_->reshape(x, {extents[0], extents[1], pixels}), {0, 2, 1});
    flat = b_->unary(Opcode::sine, flat);
    return b_->reshape(b_->transpose(flat, {0, 2, 1}), extents);
  }

  std::mt19937_64 random_;
  hlo::Module module_;
  std::optional<Builder> b_;
  std::vector<Instr*> values_;
  int64_t parameters_ = 0, spatial_ = 2;
};

TEST(ChooseLayout, RandomNetworks) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    RandomNet net(seed);
    auto before = net.module().clone();
    run(net.module(), "choose_layout");
    expect_same_values(*before, net.module(), seed, false, fmt::format("seed {}", seed));
    EXPECT_FALSE(run(net.module(), "choose_layout").changed) << "seed " << seed;
    if (HasFailure()) return;
  }
}

TEST(ChooseLayout, RandomNetworksThroughThePipeline) {
  const std::string pipeline = pipeline_for(Level::O2);
  for (uint64_t seed = 0; seed < 100; ++seed) {
    RandomNet net(seed);
    auto before = net.module().clone();
    run(net.module(), pipeline);
    expect_same_values(*before, net.module(), seed, true, fmt::format("seed {}", seed));
    const std::string once = hlo::to_string(net.module());
    EXPECT_FALSE(run(net.module(), pipeline).changed) << "seed " << seed << "\n"
                                                      << once << "\n"
                                                      << hlo::to_string(net.module());
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace heddle::opt
