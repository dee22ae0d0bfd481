#include "kernel/linear.h"

#include <gtest/gtest.h>

#include "kernel/stmt_text.h"

namespace heddle::kernel {
namespace {

class LinearTest : public ::testing::Test {
 protected:
  ExprId number(int64_t value) { return k_.constant(value); }
  ExprId plus(ExprId a, ExprId b) { return k_.binary(Op::add, a, b); }
  ExprId minus(ExprId a, ExprId b) { return k_.binary(Op::sub, a, b); }
  ExprId times(ExprId a, ExprId b) { return k_.binary(Op::mul, a, b); }
  ExprId times(ExprId a, int64_t b) { return times(a, number(b)); }

  Kernel k_;
  VarId i_ = k_.add_var("i"), j_ = k_.add_var("j"), k2_ = k_.add_var("k");
  ExprId i = k_.ref(i_), j = k_.ref(j_), k = k_.ref(k2_);
};

TEST_F(LinearTest, TermsInTheOrderInWhichTheyAppear) {
  // ((j + 3)*4 - i)*2 + j
  const Linear form = linear(k_, plus(times(minus(times(plus(j, number(3)), 4), i), 2), j));
  ASSERT_EQ(form.terms.size(), 2u);
  EXPECT_TRUE(form.is_of_variables());
  EXPECT_EQ(form.terms[0].var, j_);
  EXPECT_EQ(form.terms[0].atom, j);
  EXPECT_EQ(form.terms[0].factor, 9);
  EXPECT_EQ(form.terms[1].var, i_);
  EXPECT_EQ(form.factor(i_), -2);
  EXPECT_EQ(form.factor(k2_), 0);
  EXPECT_EQ(form.constant, 24);
}

TEST_F(LinearTest, WhatCancelsIsNotThere) {
  const Linear form = linear(k_, minus(plus(times(i, 2), j), plus(i, i)));
  ASSERT_EQ(form.terms.size(), 1u);
  EXPECT_EQ(form.factor(j_), 1);
}

TEST_F(LinearTest, WhatIsNoSumIsAnAtom) {
  const ExprId half = k_.binary(Op::floor_div, i, number(2));
  const Linear form = linear(k_, plus(times(half, 8), plus(times(i, j), half)));
  ASSERT_EQ(form.terms.size(), 2u);
  EXPECT_FALSE(form.is_of_variables());
  EXPECT_EQ(form.terms[0].atom, half);
  EXPECT_FALSE(form.terms[0].var.valid());
  EXPECT_EQ(form.terms[0].factor, 9);
  EXPECT_EQ(form.terms[1].atom, times(i, j));
}

TEST_F(LinearTest, RunTimeDimensionsAreFactors) {
  k_.dims = {"m", "n"};
  Linear form = linear(k_, plus(times(plus(i, number(5)), k_.dim(1)), i));
  ASSERT_EQ(form.terms.size(), 3u);
  EXPECT_EQ(form.terms[0].dims, (std::vector<int64_t>{1}));
  EXPECT_EQ(form.terms[0].var, i_);
  EXPECT_EQ(form.terms[1].atom, number(5));  // so many times the dimension
  EXPECT_EQ(form.factor(i_), 1);             // by itself
  EXPECT_EQ(form.constant, 0);
  EXPECT_FALSE(form.is_of_variables());
  form.add(k_, i, 4, {1});
  EXPECT_EQ(form.terms[0].factor, 5);
  EXPECT_EQ(form.factor(i_), 1);
}

TEST_F(LinearTest, NamedValuesAreLookedThrough) {
  const VarId row = k_.add_var("row"), width = k_.add_var("width");
  const ExprId place = plus(times(k_.ref(row), k_.ref(width)), j);
  const ExprId next = plus(i, number(1)), wide = number(16);
  const Lets lets = [&](VarId var) {
    if (var == row) return next;
    return var == width ? wide : ExprId();
  };
  const Linear form = linear(k_, place, lets);
  EXPECT_EQ(form.factor(i_), 16);
  EXPECT_EQ(form.factor(j_), 1);
  EXPECT_EQ(form.constant, 16);
  EXPECT_FALSE(linear(k_, place).is_of_variables());
}

TEST_F(LinearTest, NumbersWrap) {
  const Linear form = linear(k_, plus(times(i, INT64_MAX), times(i, 2)));
  EXPECT_EQ(form.factor(i_), INT64_MIN + 1);
}

TEST_F(LinearTest, NamesThatDoubleEnd) {
  std::vector<ExprId> values(64);
  VarId last;
  for (size_t n = 0; n < values.size(); ++n) {
    const ExprId before = n == 0 ? i : k_.ref(last);
    last = k_.add_var("twice");
    values[n] = plus(before, before);
  }
  const Linear form = linear(k_, k_.ref(last), [&](VarId var) {
    return var.index() < 3 ? ExprId() : values[var.index() - 3];
  });
  EXPECT_FALSE(form.terms.empty());
}

TEST_F(LinearTest, DeepSums) {
  ExprId deep = i;
  for (int n = 0; n < 1000; ++n) deep = plus(plus(deep, number(1)), j);
  const Linear form = linear(k_, deep);
  EXPECT_EQ(form.factor(j_), 1000);
  EXPECT_EQ(form.constant, 1000);
}

TEST_F(LinearTest, FactorsOfOneVariable) {
  const ExprId odd = k_.binary(Op::floor_mod, i, number(2));
  EXPECT_EQ(factor_of(k_, plus(times(j, 3), odd), j_), 3);
  EXPECT_EQ(factor_of(k_, plus(times(j, 3), odd), k2_), 0);
  EXPECT_EQ(factor_of(k_, plus(times(j, 3), odd), i_), std::nullopt);
  k_.dims = {"n"};
  EXPECT_EQ(factor_of(k_, times(j, k_.dim(0)), j_), std::nullopt);
}

TEST_F(LinearTest, WithoutItsConstantASumIsAsWritten) {
  const ExprId index = plus(plus(times(i, 8), number(3)), times(plus(j, number(-1)), 2));
  EXPECT_EQ(linear(k_, index).constant, 1);
  const ExprId rest = without_constant(&k_, index);
  EXPECT_EQ(expr_text(k_, rest), "i*8 + j*2");
  EXPECT_EQ(without_constant(&k_, rest), rest);
  EXPECT_FALSE(without_constant(&k_, number(7)).valid());
  EXPECT_EQ(expr_text(k_, without_constant(&k_, minus(number(7), i))), "neg(i)");
}

}  // namespace
}  // namespace heddle::kernel
