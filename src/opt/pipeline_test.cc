// The pipelines as a whole, and every pass alone, on random modules against the interpreter.
#include "opt/pipeline.h"

#include <gtest/gtest.h>

#include "hlo/builder.h"
#include "hlo/text.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/test_util.h"
#include "pass/random_module.h"

namespace heddle::opt {
namespace {

std::unique_ptr<hlo::Module> random(uint64_t seed) {
  pass::RandomModuleOptions options;
  options.control = seed % 3 == 0;
  options.steps = 10 + static_cast<int>(seed % 17);
  return pass::random_module(seed, options);
}

void check_seeds(const std::string& pipeline, uint64_t begin, uint64_t end, bool inexact) {
  for (uint64_t seed = begin; seed < end; ++seed) {
    auto module = random(seed);
    auto before = module->clone();
    const pass::RunReport report = run(*module, pipeline);
    EXPECT_TRUE(report.notes.empty() || pipeline.find("fold_scale") != std::string::npos ||
                pipeline.find("short_powers") != std::string::npos)
        << "seed " << seed << ": " << report.notes[0];
    expect_same_values(*before, *module, seed, inexact, fmt::format("{} seed {}", pipeline, seed));
    if (testing::Test::HasFailure()) return;
  }
}

// Passes that merge contracted dimensions or scale weights change rounding; the others keep every
// bit.
bool is_inexact(std::string_view pass) {
  return pass == "canonicalize_dot" || pass == "fold_scale_into_weights" ||
         pass == "merge_convolutions" || pass == "permute_weights" || pass == "expand_batch_norm" ||
         pass == "convolution_to_dot" || pass == "online_softmax" || pass == "split_cumulative" ||
         pass == "split_complex" || pass == "split_complex_dots" || pass == "short_powers";
}

TEST(Passes, EachAloneKeepsValues) {
  for (const pass::PassInfo& pass : passes())
    check_seeds(std::string(pass.name), 0, 60, is_inexact(pass.name));
}

TEST(Pipeline, TextRoundTrips) {
  for (Level level : {Level::O0, Level::O1, Level::O2}) {
    const std::string text = pipeline_for(level);
    Result<pass::Pipeline> pipeline = pass::parse_pipeline(text);
    ASSERT_TRUE(pipeline) << pipeline.error().message;
    EXPECT_EQ(pass::to_string(*pipeline), text);
  }
}

TEST(Pipeline, O0KeepsValues) { check_seeds(pipeline_for(Level::O0), 0, 60, true); }
TEST(Pipeline, O1KeepsValues) { check_seeds(pipeline_for(Level::O1), 100, 300, true); }
TEST(Pipeline, O2KeepsValues) { check_seeds(pipeline_for(Level::O2), 300, 400, true); }

// Detects rules that undo each other, and too few rounds.
TEST(Pipeline, ASecondRunChangesNothing) {
  const std::string pipeline = pipeline_for(Level::O2);
  for (uint64_t seed = 0; seed < 150; ++seed) {
    auto module = random(seed);
    const pass::RunReport first = run(*module, pipeline);
    EXPECT_TRUE(first.converged) << "seed " << seed;
    const std::string once = hlo::to_string(*module);
    const pass::RunReport second = run(*module, pipeline);
    ASSERT_FALSE(second.changed) << "seed " << seed << ": " << second.changes[0] << "\n"
                                 << once << "\n"
                                 << hlo::to_string(*module);
  }
}

// 50,000 instructions that share scalars and computations: quadratic steps would take minutes.
TEST(Pipeline, LargeModules) {
  hlo::Module module("large");
  module.set_entry(module.add_computation("main"));
  hlo::Builder b(module.entry());
  const Shape shape = Shape::array(Type::f32, {4, 8});
  Instr* x = b.parameter(0, shape);
  Instr* row = b.parameter(1, Shape::array(Type::f32, {8}));
  while (module.entry()->instrs().size() < 50'000) {
    Instr* y = b.binary(Opcode::multiply, x, b.full(shape, 0.5));
    y = b.reshape(b.binary(Opcode::add, y, b.broadcast(row, {4, 8}, {1})), {32});
    y = b.binary(Opcode::subtract, b.unary(Opcode::tanh, y), b.full(y->shape(), 0));
    y = b.reshape(y, {4, 8});
    Instr* sum = b.reduce(Opcode::add, b.transpose(y, {1, 0}), {0});
    x = b.binary(Opcode::add, y, b.broadcast(sum, {4, 8}, {0}));
  }
  module.entry()->set_root(x);
  const pass::PassTable table(passes());
  pass::RunOptions options;
  options.verify = false;
  Result<pass::RunReport> report = pass::run(module, pipeline_for(Level::O2), table, options);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->converged);
  EXPECT_TRUE(report->notes.empty());
  EXPECT_LT(module.entry()->instrs().size(), 25'000u);
}

}  // namespace
}  // namespace heddle::opt
