// Rows scattered into a table: each row belongs to one task, in the order of the updates; checked
// by the kernel interpreter.
#include <gtest/gtest.h>

#include "compiler/make_kernel.h"
#include "hlo/text.h"
#include "interp/interp.h"
#include "kernel/interp.h"
#include "kernel/verify.h"

namespace heddle::compiler {
namespace {

using tensor::Literal;

constexpr int kWidth = 5;

// Every row, so both sides of each border between tasks; some twice; and two out of range.
std::vector<int64_t> all_and_outside(int64_t rows) {
  std::vector<int64_t> at{-1, rows};
  for (int64_t row = 0; row < rows; ++row) at.push_back(row);
  for (int64_t row = 0; row < rows; row += 3) at.push_back(rows - 1 - row);
  return at;
}

// `start`: the initial table, a line that defines `t`.
std::unique_ptr<hlo::Module> scattered(int64_t rows, size_t updates, const std::string& start,
                                       const std::string& combiner) {
  const std::string text = fmt::format(
      R"(HloModule m
combine {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] {3}(a, b)
}}
ENTRY e {{
  i = s64[{1},1] parameter(0)
  u = f32[{1},{4}] parameter(1)
  zero = f32[] constant(0)
  t = f32[{0},{4}] {2}
  ROOT s = f32[{0},{4}] scatter(t, i, u), update_window_dims={{1}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=combine
}})",
      rows, updates, start, combiner, kWidth);
  auto module = hlo::parse_module(text);
  HEDDLE_CHECK(module.has_value(), "{}", module.error().message);
  return std::move(*module);
}

void expect_equal(const hlo::Module& module, const std::vector<int64_t>& at) {
  const target::Target& target = *target::find_target("spr");
  const stage::PlacedFusion placed = schedule::place(*module.entry(), target);
  ASSERT_TRUE(placed.decision) << placed.decision.reason();
  const auto stitched = make_kernel(placed, "k", target, {}, {.verify = true});
  ASSERT_TRUE(stitched) << stitched.error().message;
  ASSERT_TRUE(kernel::verify(stitched->kernel)) << kernel::verify(stitched->kernel).error().message;
  std::vector<Literal> inputs;
  for (const hlo::Instr* parameter : module.entry()->parameters())
    inputs.emplace_back(parameter->shape());
  for (size_t i = 0; i < at.size(); ++i) inputs[0].set_s64(static_cast<int64_t>(i), at[i]);
  for (size_t n = 1; n < inputs.size(); ++n)
    for (int64_t i = 0; i < inputs[n].elems(); ++i)
      inputs[n].set_f64(i, static_cast<double>((i * 37 + static_cast<int64_t>(n)) % 101) / 7);
  Literal got(module.entry()->root()->shape());
  std::vector<void*> memory;
  for (Literal& input : inputs) memory.push_back(input.mutable_data());
  memory.push_back(got.mutable_data());
  const auto report = kernel::interpret(stitched->kernel, memory);
  EXPECT_TRUE(report.faults.empty()) << report.faults[0];
  const auto want = interp::evaluate(module, inputs);
  ASSERT_TRUE(want) << want.error().message;
  EXPECT_TRUE(got == *want);
}

TEST(Scatter, EveryRowIsOneTasks) {
  for (const int64_t rows : {7, 300, 301}) {  // one task, equal ones, a shorter one
    const std::vector<int64_t> at = all_and_outside(rows);
    for (const char* start : {"parameter(2)", "broadcast(zero), dimensions={}"})
      for (const char* combiner : {"add", "maximum"}) {
        SCOPED_TRACE(fmt::format("{} {} {}", rows, start, combiner));
        expect_equal(*scattered(rows, at.size(), start, combiner), at);
      }
  }
}

}  // namespace
}  // namespace heddle::compiler
