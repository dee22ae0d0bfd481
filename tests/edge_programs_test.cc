// A picture comes in with its features before its pixels (NCHW), or behind them: the same network
// takes as many launches, whatever its first and last layers are, and computes what the interpreter
// does. Its inside is laid out once, and what the two orders differ in is part of the first and of
// the last kernel.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <map>

#include "api/program_facts.h"
#include "compiled_run.h"
#include "hlo/builder.h"
#include "interp/interp.h"
#include "interp/random_inputs.h"
#include "target/target.h"
#include "tensor/compare.h"

namespace heddle {
namespace {

using hlo::Instr;
using hlo::Opcode;
using tensor::Literal;
using tensor::Shape;
using tensor::Type;
using Extents = std::vector<int64_t>;

// A network under construction: pictures are [batch, features, lines, columns], or have the
// features last.
class Net {
 public:
  explicit Net(bool features_last)
      : features_last_(features_last),
        module_(std::make_unique<hlo::Module>("net")),
        b_(module_->add_computation("main")) {
    module_->set_entry(b_.computation());
  }

  Instr* picture(int64_t batch, int64_t features, int64_t lines, int64_t columns) {
    const Extents extents = features_last_ ? Extents{batch, lines, columns, features}
                                           : Extents{batch, features, lines, columns};
    return b_.parameter(0, Shape::array(Type::f32, extents));
  }

  Instr* weight(const Extents& extents) {
    Literal literal(Shape::array(Type::f32, extents));
    for (int64_t i = 0; i < literal.elems(); ++i) {
      state_ = state_ * 1664525u + 1013904223u;
      literal.set_f64(i, static_cast<double>(state_ >> 8) / (1 << 24) - 0.5);
    }
    return b_.constant(std::move(literal));
  }

  Instr* conv(Instr* x, int64_t outputs, int64_t size, int64_t stride, int64_t pad,
              int64_t groups = 1) {
    const int64_t inputs = x->shape().dim(feature());
    hlo::ConvolutionAttrs attrs;
    attrs.dims.input_feature = attrs.dims.output_feature = feature();
    attrs.dims.kernel_input_feature = features_last_ ? 2 : 1;
    attrs.dims.kernel_output_feature = features_last_ ? 3 : 0;
    attrs.dims.input_spatial = attrs.dims.output_spatial = spatial();
    attrs.dims.kernel_spatial = features_last_ ? Extents{0, 1} : Extents{2, 3};
    for (int i = 0; i < 2; ++i) {
      hlo::WindowDim dim;
      dim.size = size;
      dim.stride = stride;
      dim.pad_low = dim.pad_high = pad;
      attrs.window.dims.push_back(dim);
    }
    attrs.feature_group_count = groups;
    const Extents filter = features_last_ ? Extents{size, size, inputs / groups, outputs}
                                          : Extents{outputs, inputs / groups, size, size};
    Instr* y = b_.convolution(x, weight(filter), attrs);
    return b_.binary(Opcode::add, y,
                     b_.broadcast(weight({outputs}), y->shape().extents(), {feature()}));
  }

  Instr* relu(Instr* x) { return b_.binary(Opcode::maximum, x, b_.full(x->shape(), 0)); }

  Instr* max_pool(Instr* x, int64_t size, int64_t stride, int64_t pad) {
    hlo::Window window;
    for (int64_t d = 0; d < 4; ++d) {
      hlo::WindowDim dim;
      if (d == spatial()[0] || d == spatial()[1]) {
        dim.size = size;
        dim.stride = stride;
        dim.pad_low = dim.pad_high = pad;
      }
      window.dims.push_back(dim);
    }
    return b_.reduce_window(Opcode::maximum, x, b_.scalar(Type::f32, -INFINITY), window);
  }

  Instr* sum(Instr* x) { return b_.reduce(Opcode::add, x, spatial()); }

  Instr* mean(Instr* x) {
    Instr* all = sum(x);
    const double pixels =
        static_cast<double>(x->shape().dim(spatial()[0]) * x->shape().dim(spatial()[1]));
    return b_.binary(Opcode::multiply, all, b_.full(all->shape(), 1 / pixels));
  }

  Instr* dense(Instr* x, int64_t outputs) {
    const int64_t batch = x->shape().dim(0);
    x = b_.reshape(x, {batch, x->shape().elems() / batch});
    Instr* y = b_.matmul(x, weight({x->shape().dim(1), outputs}));
    return b_.binary_broadcast(Opcode::add, y, weight({outputs}));
  }

  // Patches as rows: [batch, patches, features].
  Instr* rows(Instr* x) {
    if (!features_last_) x = b_.transpose(x, {0, 2, 3, 1});
    return b_.reshape(
        x, {x->shape().dim(0), x->shape().dim(1) * x->shape().dim(2), x->shape().dim(3)});
  }

  hlo::Builder& b() { return b_; }
  std::unique_ptr<hlo::Module> finish(Instr* result) {
    b_.check();
    b_.computation()->set_root(result);
    return std::move(module_);
  }

 private:
  int64_t feature() const { return features_last_ ? 3 : 1; }
  Extents spatial() const { return features_last_ ? Extents{1, 2} : Extents{2, 3}; }

  bool features_last_;
  std::unique_ptr<hlo::Module> module_;
  hlo::Builder b_;
  uint32_t state_ = 1;
};

using Network = std::function<Instr*(Net&)>;

// One block adds its input, the other a projection of it at half the size.
Instr* two_residual_blocks(Net& n) {
  Instr* x = n.relu(n.conv(n.picture(2, 3, 24, 24), 24, 3, 1, 1));
  Instr* y = n.conv(n.relu(n.conv(x, 24, 3, 1, 1)), 24, 3, 1, 1);
  x = n.relu(n.b().binary(Opcode::add, y, x));
  y = n.conv(n.relu(n.conv(x, 40, 3, 2, 1)), 40, 3, 1, 1);
  x = n.relu(n.b().binary(Opcode::add, y, n.conv(x, 40, 1, 2, 0)));
  return n.dense(n.sum(n.max_pool(x, 2, 2, 0)), 10);
}

// The short branch is written first, as some exporters do.
Instr* projection_first(Net& n) {
  Instr* x = n.relu(n.conv(n.picture(2, 3, 24, 24), 24, 3, 1, 1));
  Instr* short_branch = n.conv(x, 40, 1, 2, 0);
  Instr* y = n.conv(n.relu(n.conv(x, 40, 3, 2, 1)), 40, 3, 1, 1);
  x = n.relu(n.b().binary(Opcode::add, y, short_branch));
  return n.dense(n.sum(n.max_pool(x, 2, 2, 0)), 10);
}

const std::map<std::string, Network>& networks() {
  static const std::map<std::string, Network> kNetworks{
      {"FirstLayer7x7",
       [](Net& n) {
         Instr* x = n.relu(n.conv(n.picture(1, 3, 32, 32), 32, 7, 2, 3));
         x = n.relu(n.conv(n.max_pool(x, 3, 2, 1), 40, 3, 1, 1));
         return n.dense(n.mean(x), 10);
       }},
      {"FirstLayer3x3",
       [](Net& n) {
         Instr* x = n.relu(n.conv(n.picture(2, 3, 24, 24), 16, 3, 2, 1));
         x = n.relu(n.conv(x, 16, 3, 1, 1, 16));
         return n.dense(n.mean(n.relu(n.conv(x, 48, 1, 1, 0))), 10);
       }},
      {"FirstLayer1x1",
       [](Net& n) {
         Instr* x = n.relu(n.conv(n.picture(1, 3, 16, 16), 24, 1, 1, 0));
         return n.dense(n.mean(n.relu(n.conv(x, 24, 3, 1, 1))), 10);
       }},
      {"Patches",
       [](Net& n) {
         Instr* x = n.rows(n.conv(n.picture(2, 3, 32, 32), 48, 8, 8, 0));
         return n.b().binary_broadcast(Opcode::add, n.b().matmul(x, n.weight({48, 32})),
                                       n.weight({32}));
       }},
      {"SmallPatches",
       [](Net& n) {
         Instr* x = n.conv(n.picture(1, 3, 32, 32), 32, 4, 4, 0);
         return n.dense(n.mean(n.relu(n.conv(x, 32, 7, 1, 3, 32))), 10);
       }},
      {"MapBehind1x1",
       [](Net& n) {
         return n.conv(n.relu(n.conv(n.picture(1, 3, 24, 24), 32, 3, 1, 1)), 21, 1, 1, 0);
       }},
      {"NarrowMapBehind1x1",
       [](Net& n) {
         return n.conv(n.relu(n.conv(n.picture(1, 3, 48, 48), 16, 3, 1, 1)), 5, 1, 1, 0);
       }},
      {"MapBehind3x3",
       [](Net& n) {
         Instr* x = n.relu(n.conv(n.picture(2, 3, 16, 16), 16, 3, 2, 1));
         return n.relu(n.conv(x, 32, 3, 1, 1));
       }},
      {"Heads",
       [](Net& n) {
         Instr* x = n.relu(n.conv(n.picture(1, 3, 32, 32), 32, 3, 2, 1));
         Instr* y = n.relu(n.conv(x, 48, 3, 2, 1));
         return n.b().tuple({n.conv(x, 24, 3, 1, 1), n.conv(x, 36, 1, 1, 0),
                             n.b().unary(Opcode::logistic, n.conv(y, 24, 3, 1, 1))});
       }},
      {"FlattenedMap",
       [](Net& n) {
         Instr* x = n.relu(n.conv(n.picture(1, 3, 14, 14), 32, 3, 1, 1));
         return n.dense(n.relu(n.conv(x, 24, 3, 2, 1)), 40);
       }},
      {"FlattenedPool",
       [](Net& n) {
         Instr* x = n.relu(n.conv(n.picture(2, 3, 14, 14), 32, 3, 1, 1));
         return n.dense(n.max_pool(n.relu(n.conv(x, 32, 3, 1, 1)), 2, 2, 0), 40);
       }},
      {"TwoResidualBlocks", two_residual_blocks},
      {"ProjectionFirst", projection_first},
  };
  return kNetworks;
}

std::unique_ptr<hlo::Module> built(const Network& network, bool features_last) {
  Net net(features_last);
  Instr* result = network(net);
  return net.finish(result);
}

int64_t launches(std::unique_ptr<hlo::Module> module, const target::Target& target) {
  auto program = compiler::compile(std::move(module), {}, target, {});
  EXPECT_TRUE(program.has_value()) << (program ? "" : program.error().message);
  if (!program) return -1;
  api::ProgramFacts facts;
  api::count_commands(*program, facts);
  return facts.launches;
}

class EdgePrograms : public ::testing::TestWithParam<std::pair<const std::string, Network>> {};

TEST_P(EdgePrograms, AsManyLaunchesInEitherOrder) {
  for (const char* name : {"icelake", "avx2"}) {
    const auto target = target::find_target(name);
    EXPECT_EQ(launches(built(GetParam().second, false), *target),
              launches(built(GetParam().second, true), *target))
        << name;
  }
}

TEST_P(EdgePrograms, ComputeWhatTheInterpreterDoes) {
  for (const bool features_last : {false, true}) {
    const auto module = built(GetParam().second, features_last);
    const std::vector<Literal> arguments = interp::random_arguments(*module, 3);
    auto want = interp::evaluate(*module, arguments);
    ASSERT_TRUE(want) << want.error().message;
    std::vector<Literal> wanted, first;
    append_leaves(*want, &wanted);
    for (const int threads : {1, 2}) {
      std::string failure;
      const std::vector<Literal> got =
          compile_and_run(module->clone(), arguments, target::host_target(), {}, threads, &failure);
      ASSERT_EQ(failure, "");
      ASSERT_EQ(got.size(), wanted.size());
      for (size_t i = 0; i < got.size(); ++i) {
        auto same =
            tensor::compare(got[i], wanted[i], tensor::derived_tolerance(Type::f32, 32 * 49));
        EXPECT_TRUE(same.equal) << same.describe();
        if (threads == 1) continue;
        EXPECT_EQ(0, std::memcmp(got[i].data(), first[i].data(),
                                 static_cast<size_t>(got[i].shape().bytes())));
      }
      first = got;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, EdgePrograms, ::testing::ValuesIn(networks()),
                         [](const auto& info) { return info.param.first; });

}  // namespace
}  // namespace heddle
