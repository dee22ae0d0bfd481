#include "kernel/rewriter.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernel/interp.h"
#include "kernel/random_kernel.h"
#include "kernel/text.h"
#include "kernel/verify.h"

namespace heddle::kernel {
namespace {

Kernel parsed(const std::string& text) {
  auto kernel = parse_kernel(text);
  EXPECT_TRUE(kernel) << kernel.error().message;
  return *kernel;
}

const char* const kRows = R"(heddle.kernel 1
kernel k {
  target "host"
  buffer x: f32[64] global in
  buffer out: f32[64] global out
  phase {
    group grid (t 8) {
      let first = t*8
      serial i 8 {
        out[first + i] = x[first + i] + x[first + i]*x[8]
      }
    }
  }
}
)";

TEST(Rewriter, WithoutHooksKernelsStay) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const RandomKernel random = random_kernel(seed);
    Kernel kernel = random.kernel;
    Rewriter(&kernel).run();
    ASSERT_EQ(to_string(kernel), to_string(random.kernel));
    ASSERT_EQ(kernel.exprs().size(), random.kernel.exprs().size());
  }
}

TEST(Rewriter, ACopyComputesTheSame) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const RandomKernel random = random_kernel(seed);
    const Kernel& from = random.kernel;
    Kernel to;
    to.name = from.name;
    to.dims = from.dims;
    to.scratch_bytes = from.scratch_bytes;
    Rewriter copy(from, {}, &to);
    for (const Phase& phase : from.phases) {
      to.phases.push_back({{}, phase.in_order});
      for (const Group& group : phase.groups) to.phases.back().groups.push_back(copy.group(group));
    }
    ASSERT_TRUE(verify(to)) << verify(to).error().message;
    std::vector<HostBuffer> want = random.memory, got = random.memory;
    ASSERT_TRUE(interpret(from, pointers(want), random.dims).faults.empty());
    ASSERT_TRUE(interpret(to, pointers(got), random.dims).faults.empty());
    ASSERT_EQ(difference(random, got, want), "");
  }
}

TEST(Rewriter, VariablesAreReplaced) {
  Kernel kernel = parsed(kRows);
  Group& group = kernel.phases[0].groups[0];
  Rewriter rewriter(&kernel);
  rewriter.replace(group.grid[0].var, kernel.constant(3));
  group.body = rewriter.block(group.body);
  EXPECT_NE(to_string(kernel).find("let first = 24"), std::string::npos) << to_string(kernel);
}

TEST(Rewriter, FreshCopiesStandBesideEachOther) {
  Kernel kernel = parsed(kRows);
  Group& group = kernel.phases[0].groups[0];
  Rewriter rewriter(&kernel);
  rewriter.fresh = true;
  for (Stmt& stmt : rewriter.block(group.body)) group.body.push_back(std::move(stmt));
  EXPECT_TRUE(verify(kernel)) << verify(kernel).error().message;
  EXPECT_NE(to_string(kernel).find("out[first_1 + i_1]"), std::string::npos) << to_string(kernel);
  EXPECT_EQ(kernel.var(rewriter.var(group.body[0].var)).name, "first_1");
  EXPECT_EQ(rewriter.var(group.grid[0].var), group.grid[0].var);  // bound outside
}

TEST(Rewriter, MadeExpressionsHaveNewOperands) {
  Kernel kernel = parsed(kRows);
  Rewriter rewriter(&kernel);
  int loads = 0;
  rewriter.made = [&](const Expr& expr) -> std::optional<ExprId> {
    if (expr.op != Op::load) return std::nullopt;
    ++loads;
    return kernel.load(expr.buffer, {kernel.binary(Op::floor_mod, expr.operands[0],
                                                   kernel.constant(int64_t{64}))});
  };
  rewriter.run();
  EXPECT_EQ(loads, 2);  // each of them once
  const std::string text = to_string(kernel);
  EXPECT_NE(text.find("= x[floor_mod(first + i, 64)]\n"), std::string::npos) << text;
  EXPECT_NE(text.find("*x[8]"), std::string::npos) << text;
}

TEST(Rewriter, WhatStandsInsteadNeedsNoOperands) {
  const Kernel from = parsed(kRows);
  Kernel to = parsed(kRows);
  Rewriter copy(from, {BufferId(0), BufferId(1)}, &to);
  std::vector<Op> asked;
  copy.instead = [&](ExprId, const Expr& expr) -> std::optional<ExprId> {
    asked.push_back(expr.op);
    if (expr.op != Op::mul) return std::nullopt;
    return to.constant(Type::f32, 2);
  };
  const Stmt& loop = from.phases[0].groups[0].body[1];
  const ExprId value = copy.expr(loop.body[0].value);
  EXPECT_EQ(to.expr(to.expr(value).operands[1]).op, Op::constant);
  EXPECT_EQ(std::count(asked.begin(), asked.end(), Op::load), 1);  // the other is in the product
}

TEST(Rewriter, UnsharedEveryPlaceIsAskedFor) {
  Kernel kernel = parsed(kRows);
  Rewriter rewriter(&kernel);
  rewriter.shares = false;
  int64_t numbers = 0;
  rewriter.instead = [&](ExprId, const Expr& expr) -> std::optional<ExprId> {
    if (expr.op != Op::constant) return std::nullopt;
    kernel.dims.push_back("n" + std::to_string(numbers));
    return kernel.dim(numbers++);
  };
  rewriter.keeps_part = [](const Stmt& stmt, Rewriter::Part part) {
    return stmt.kind == StmtKind::loop && part == Rewriter::Part::extent;
  };
  rewriter.keeps_operand = [](const Expr& of, size_t) { return of.op == Op::load; };
  rewriter.run();
  EXPECT_EQ(numbers, 2);  // the grid's extent and t*8, one node; not the loop's, not x[8]
  EXPECT_NE(to_string(kernel).find("serial i 8"), std::string::npos) << to_string(kernel);
}

TEST(Rewriter, StatementsBecomeOthers) {
  Kernel kernel = parsed(kRows);
  Rewriter rewriter(&kernel);
  rewriter.statement = [&](const Stmt& from, Stmt made, std::vector<Stmt>* to) {
    if (from.kind == StmtKind::store) {
      made.mask = kernel.compare(Op::lt, kernel.ref(VarId(0)), kernel.constant(int64_t{4}));
      to->push_back(made);
    }
    to->push_back(std::move(made));
  };
  rewriter.run();
  const std::vector<Stmt>& body = kernel.phases[0].groups[0].body;
  ASSERT_EQ(body.size(), 2u);
  EXPECT_EQ(body[1].body.size(), 2u);
  EXPECT_TRUE(body[1].body[1].mask.valid());
}

TEST(Rewriter, DeepExpressions) {
  Kernel from;
  const VarId x = from.add_var("x");
  ExprId deep = from.ref(x);
  for (int i = 0; i < 200'000; ++i) deep = from.unary(Op::not_, from.unary(Op::neg, deep));
  Kernel to;
  Rewriter copy(from, {}, &to);
  EXPECT_TRUE(copy.expr(deep).valid());
  EXPECT_EQ(to.exprs().size(), from.exprs().size());
}

}  // namespace
}  // namespace heddle::kernel
