// Any rewrite may be left out: what remains is a program that computes the same, or an error that
// says why it cannot be left out.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "compiled_run.h"
#include "compiler/passes.h"
#include "compiler/pipeline.h"
#include "hlo/text.h"
#include "interp/interp.h"
#include "interp/random_inputs.h"
#include "lower/passes.h"
#include "pass/pipeline.h"
#include "target/target.h"
#include "tensor/compare.h"

namespace heddle {
namespace {

constexpr const char* kSum =
    "sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
    "max { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] maximum(a, b) }\n";

// Constant matrices, rows behind products, a result that is transposed, the best of it.
constexpr const char* kResidual = R"(ENTRY e {
  x = f32[48,32] parameter(0)
  i = f32[32,64] iota(), iota_dimension=0
  j = f32[32,64] iota(), iota_dimension=1
  ij = f32[32,64] multiply(i, j)
  w = f32[32,64] cosine(ij)
  wt = f32[64,32] transpose(w), dimensions={1,0}
  u = f32[48,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[48,64] tanh(u)
  d = f32[48,32] dot(t, wt), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  r = f32[48,32] add(d, x)
  zero = f32[] constant(0)
  s = f32[48] reduce(r, zero), dimensions={1}, to_apply=sum
  m = f32[32] reduce(d, zero), dimensions={0}, to_apply=sum
  b = f32[48,32] broadcast(s), dimensions={0}
  n = f32[48,32] subtract(r, b)
  q = f32[32,48] transpose(d), dimensions={1,0}
  k = (f32[48,4], s32[48,4]) topk(n), k=4, largest=true
  v = f32[48,4] get-tuple-element(k), index=0
  p = s32[48,4] get-tuple-element(k), index=1
  ROOT all = (f32[48,32], f32[32,48], f32[32], f32[48,4], s32[48,4]) tuple(n, q, m, v, p)
})";

// A convolution behind attention, and a pool that reads it.
constexpr const char* kAttention = R"(ENTRY e {
  q = f32[2,40,16] parameter(0)
  k = f32[2,40,16] parameter(1)
  v = f32[2,40,16] parameter(2)
  s = f32[2,40,40] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
  low = f32[] constant(-inf)
  zero = f32[] constant(0)
  m = f32[2,40] reduce(s, low), dimensions={2}, to_apply=max
  mb = f32[2,40,40] broadcast(m), dimensions={0,1}
  z = f32[2,40,40] subtract(s, mb)
  e = f32[2,40,40] exponential(z)
  t = f32[2,40] reduce(e, zero), dimensions={2}, to_apply=sum
  tb = f32[2,40,40] broadcast(t), dimensions={0,1}
  p = f32[2,40,40] divide(e, tb)
  o = f32[2,40,16] dot(p, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
  im = f32[1,8,10,16] reshape(o), metadata={op_name="image"}
  half = f32[1,8,8,16] slice(im), slice={[0:1], [0:8], [0:8], [0:16]}
  f = f32[3,3,16,16] iota(), iota_dimension=2
  w = f32[3,3,16,16] cosine(f)
  c = f32[1,8,8,16] convolution(half, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  y = f32[1,4,4,16] reduce-window(c, low), window={size=1x2x2x1 stride=1x2x2x1}, to_apply=max
  ROOT all = (f32[2,40,16], f32[1,4,4,16]) tuple(o, y)
})";

// Counts to a constant, puts a row a step into what it collects, and adds rows to a table.
constexpr const char* kLoop = R"(step {
  s = (s32[], f32[4,24], f32[12,4,24], f32[24,24]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  h = f32[4,24] get-tuple-element(s), index=1
  a = f32[12,4,24] get-tuple-element(s), index=2
  w = f32[24,24] get-tuple-element(s), index=3
  d = f32[4,24] dot(h, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[4,24] tanh(d)
  r = f32[1,4,24] reshape(t)
  zero = s32[] constant(0)
  u = f32[12,4,24] dynamic-update-slice(a, r, i, zero, zero)
  one = s32[] constant(1)
  n = s32[] add(i, one)
  ROOT next = (s32[], f32[4,24], f32[12,4,24], f32[24,24]) tuple(n, t, u, w)
}
more {
  s = (s32[], f32[4,24], f32[12,4,24], f32[24,24]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  c = s32[] constant(12)
  ROOT l = pred[] compare(i, c), direction=LT
}
ENTRY e {
  h = f32[4,24] parameter(0)
  w = f32[24,24] parameter(1)
  table = f32[10,24] parameter(2)
  zero = s32[] constant(0)
  nought = f32[] constant(0)
  a = f32[12,4,24] broadcast(nought), dimensions={}
  init = (s32[], f32[4,24], f32[12,4,24], f32[24,24]) tuple(zero, h, a, w)
  loop = (s32[], f32[4,24], f32[12,4,24], f32[24,24]) while(init), condition=more, body=step
  last = f32[4,24] get-tuple-element(loop), index=1
  seen = f32[12,4,24] get-tuple-element(loop), index=2
  at = s32[4,1] iota(), iota_dimension=0
  put = f32[10,24] scatter(table, at, last), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
  rows = f32[4,24] negate(last)
  ROOT all = (f32[12,4,24], f32[10,24], f32[4,24]) tuple(seen, put, rows)
})";

// Up to 64 rows: kernels are told how many.
constexpr const char* kBounded = R"(ENTRY e {
  x = f32[64,16] parameter(0)
  rows = s32[] parameter(1)
  i = s32[64,16] iota(), iota_dimension=0
  n = s32[64,16] broadcast(rows), dimensions={}
  inside = pred[64,16] compare(i, n), direction=LT
  t = f32[64,16] tanh(x)
  zero = f32[] constant(0)
  z = f32[64,16] broadcast(zero), dimensions={}
  y = f32[64,16] select(inside, t, z)
  ROOT s = f32[16] reduce(y, zero), dimensions={0}, to_apply=sum
})";

// Layers that stay one function until they are fused.
std::string calls() {
  std::string text =
      "layer {\n x = f32[16,24] parameter(0)\n w = f32[24,24] parameter(1)\n"
      " n0 = f32[16,24] dot(x, w), lhs_contracting_dims={1}, "
      "rhs_contracting_dims={0}\n";
  for (int i = 0; i < 80; ++i)
    text += fmt::format(" n{} = f32[16,24] {}(n{}{})\n", i + 1, i % 2 ? "tanh" : "add", i,
                        i % 2 ? "" : ", x");
  text += " ROOT y = f32[16,24] tanh(n80)\n}\nENTRY e {\n p0 = f32[16,24] parameter(0)\n";
  for (int i = 1; i <= 8; ++i) text += fmt::format(" w{0} = f32[24,24] parameter({0})\n", i);
  for (int i = 1; i <= 8; ++i)
    text += fmt::format(" {}p{} = f32[16,24] call(p{}, w{}), to_apply=layer\n",
                        i == 8 ? "ROOT " : "", i, i - 1, i);
  return text + "}\n";
}

void collect(const std::vector<pass::Pipeline::Step>& steps, std::vector<std::string>* names) {
  for (const pass::Pipeline::Step& step : steps) {
    if (!step.pass.empty()) names->push_back(step.pass);
    collect(step.group, names);
  }
}

// Of the pipeline that fuses under these options, and of that over kernels.
std::vector<std::string> rewrites(const compiler::Options& options) {
  std::vector<std::string> names;
  collect(pass::parse_pipeline(compiler::fusing_pipeline(options, target::host_target()))->steps,
          &names);
  for (const lower::KernelPass& pass : lower::kernel_passes()) names.emplace_back(pass.name);
  return names;
}

void expect_same_without_each(const std::string& text, const std::string& header = {}) {
  const auto module = hlo::parse_module("HloModule m" + header + "\n" + kSum + text);
  ASSERT_TRUE(module) << module.error().message;
  std::vector<tensor::Literal> inputs = interp::random_arguments(**module, 5);
  if (!header.empty()) inputs[1].set_f64(0, 40);
  std::vector<tensor::Literal> wanted;
  append_leaves(*interp::evaluate(**module, inputs), &wanted);
  using compiler::Fuse, compiler::Numerics;
  std::set<std::string> tried;
  for (const auto& [fuse, numerics] :
       {std::pair(Fuse::stitch, Numerics::relaxed), std::pair(Fuse::stitch, Numerics::standard),
        std::pair(Fuse::greedy, Numerics::standard), std::pair(Fuse::xla, Numerics::standard),
        std::pair(Fuse::off, Numerics::standard)}) {
    compiler::Options options;
    options.fuse = fuse;
    options.numerics = numerics;
    const std::vector<std::string> names = rewrites(options);
    std::vector<std::vector<std::string>> wishes{{}, names};
    for (const std::string& name : names)
      if (tried.insert(name).second || fuse == Fuse::off) wishes.push_back({name});
    // Of all together: those that can be left out.
    std::erase_if(wishes[1], [](const std::string& name) {
      const auto* row = compiler::module_passes().find(name);
      return row && row->required;
    });
    for (const std::vector<std::string>& disabled : wishes) {
      options.disable = disabled;
      SCOPED_TRACE(disabled.size() == 1 ? disabled[0] : fmt::format("{} passes", disabled.size()));
      auto program = compiler::compile((*module)->clone(), {}, target::host_target(), options);
      if (!program) {
        ASSERT_EQ(disabled.size(), 1u);
        EXPECT_TRUE(compiler::module_passes().find(disabled[0])->required);
        EXPECT_EQ(whose(program.error().kind), ErrorKind::user);
        EXPECT_THAT(program.error().message, testing::HasSubstr(disabled[0]));
        continue;
      }
      std::string failure;
      const std::vector<tensor::Literal> got =
          run_program(std::move(*program), inputs, 2, &failure);
      ASSERT_EQ(failure, "");
      ASSERT_EQ(got.size(), wanted.size());
      for (size_t i = 0; i < got.size(); ++i) {
        const auto comparison = tensor::compare(got[i], wanted[i], {1e-3, 1e-3, 1e-3});
        EXPECT_TRUE(comparison.equal) << "output " << i << ": " << comparison.describe();
      }
    }
  }
}

TEST(Disabled, ResidualRows) { expect_same_without_each(kResidual); }
TEST(Disabled, AttentionAndPool) { expect_same_without_each(kAttention); }
TEST(Disabled, LoopAndScatter) { expect_same_without_each(kLoop); }
TEST(Disabled, BoundedRows) {
  expect_same_without_each(kBounded, ", heddle_symbols={rows 64 1 1 0.0}");
}
TEST(Disabled, KeptCalls) { expect_same_without_each(calls()); }

}  // namespace
}  // namespace heddle
