// merge_dots: narrow products of one input become one.
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

int64_t dots(const hlo::Module& module) {
  const auto& all = module.entry()->instrs();
  return std::count_if(all.begin(), all.end(), [](const Instr* i) { return i->is(Opcode::dot); });
}

// Products of one input [rows, 8] with constant matrices.
class Products {
 public:
  explicit Products(int64_t rows) : module_("products") {
    module_.set_entry(module_.add_computation("main"));
    b_.emplace(module_.entry());
    x_ = b_->parameter(0, Shape::array(Type::f32, {rows, 8}));
  }
  Builder& b() { return *b_; }

  Instr* constant(const Ints& extents) {
    Literal value(Shape::array(Type::f32, extents));
    std::uniform_real_distribution<float> range(-1, 1);
    for (int64_t i = 0; i < value.elems(); ++i) value.set_f64(i, range(random_));
    return b_->constant(value);
  }
  Instr* product(int64_t columns) {
    hlo::DotAttrs attrs;
    attrs.lhs_contracting_dims = {1};
    attrs.rhs_contracting_dims = {0};
    return b_->dot(x_, constant({8, columns}), attrs);
  }
  Instr* biased(Instr* x) {
    return b_->binary(Opcode::add, x,
                      b_->broadcast(constant({x->shape().dim(1)}), x->shape().extents(), {1}));
  }
  Instr* rectified(Instr* x) { return b_->binary(Opcode::maximum, x, b_->full(x->shape(), 0)); }

  // Runs the pass alone, compares bit for bit; returns the number of dots left.
  int64_t merged(const std::vector<Instr*>& results) {
    b_->check();
    module_.entry()->set_root(b_->tuple(results));
    auto before = module_.clone();
    run(module_, "merge_dots,dce");
    expect_same_values(*before, module_, 5, false, "merge_dots");
    EXPECT_FALSE(run(module_, "merge_dots").changed);
    return dots(module_);
  }
  hlo::Module& module() { return module_; }

 private:
  std::mt19937_64 random_{7};
  hlo::Module module_;
  std::optional<Builder> b_;
  Instr* x_ = nullptr;
};

TEST(MergeDots, WithEqualEpilogues) {
  Products p(20);
  std::vector<Instr*> results;
  for (int64_t columns : {64, 96, 16})
    results.push_back(p.b().reshape(p.rectified(p.biased(p.product(columns))), {20 * columns}));
  EXPECT_EQ(p.merged(results), 1);
  // One addition and one maximum on the whole.
  const auto& all = p.module().entry()->instrs();
  EXPECT_EQ(
      std::count_if(all.begin(), all.end(), [](const Instr* i) { return i->is(Opcode::maximum); }),
      1);
}

TEST(MergeDots, ASideOfANumber) {
  Products p(16);
  std::vector<Instr*> results;
  for (double number : {2.0, 3.0}) {
    Instr* y = p.product(8);
    y = p.b().binary(Opcode::subtract, p.b().full(y->shape(), number), y);
    results.push_back(p.b().reshape(y, {128}));
  }
  EXPECT_EQ(p.merged(results), 1);
}

TEST(MergeDots, OthersStay) {
  {
    Products wide(20);
    EXPECT_EQ(wide.merged({wide.product(64), wide.product(96)}), 2) << "nothing narrow";
  }
  {
    Products few(4);
    EXPECT_EQ(few.merged({few.product(16), few.product(16)}), 2) << "few rows";
  }
  {
    Products different(20);
    Instr* one = different.rectified(different.product(16));
    Instr* two = different.b().unary(Opcode::tanh, different.product(16));
    EXPECT_EQ(different.merged({one, two}), 2) << "other epilogues";
  }
  {
    Products gated(20);
    Instr* one = gated.product(16);
    Instr* two = gated.product(16);
    EXPECT_EQ(gated.merged({gated.b().binary(Opcode::multiply, one, two)}), 2) << "a gate";
  }
}

TEST(MergeDots, InThePipeline) {
  Products p(32);
  std::vector<Instr*> results;
  for (int64_t columns : {24, 40})
    results.push_back(p.b().reshape(p.biased(p.product(columns)), {columns * 32}));
  p.b().check();
  p.module().entry()->set_root(p.b().tuple(results));
  auto before = p.module().clone();
  run(p.module(), pipeline_for(Level::O2));
  expect_same_values(*before, p.module(), 5, true, "pipeline");
  EXPECT_EQ(dots(p.module()), 1) << hlo::to_string(p.module());
}

}  // namespace
}  // namespace heddle::opt
