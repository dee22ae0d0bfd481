#include "interp/run_test_util.h"

namespace heddle::interp {
namespace {

TEST(Cholesky, LowerAndUpper) {
  const std::string a = "f64[3,3] {{4,12,-16},{12,37,-43},{-16,-43,98}}";
  EXPECT_EQ(run_op("cholesky", "f64[3,3]", {a}, "lower=true"),
            "{ {2, 0, 0}, {6, 1, 0}, {-8, 5, 3} }");
  EXPECT_EQ(run_op("cholesky", "f64[3,3]", {a}, "lower=false"),
            "{ {2, 6, -8}, {0, 1, 5}, {0, 0, 3} }");
  // Only one triangle is read.
  EXPECT_EQ(run_op("cholesky", "f32[2,2]", {"f32[2,2] {{4,nan},{6,10}}"}, "lower=true"),
            "{ {2, 0}, {3, 1} }");
  EXPECT_EQ(run_op("cholesky", "f32[1,2,2]", {"f32[1,2,2] {{{1,2},{2,1}}}"}, "lower=true"),
            "{ { {nan, nan}, {nan, nan} } }");
}

TEST(Cholesky, Hermitian) {
  EXPECT_EQ(
      run_op("cholesky", "c128[2,2]", {"c128[2,2] {{(4,0),(0,0)},{(2,2),(6,0)}}"}, "lower=true"),
      "{ {(2, 0), (0, 0)}, {(1, 1), (2, 0)} }");
  EXPECT_EQ(
      run_op("cholesky", "c128[2,2]", {"c128[2,2] {{(4,0),(2,-2)},{(0,0),(6,0)}}"}, "lower=false"),
      "{ {(2, 0), (1, -1)}, {(0, 0), (2, 0)} }");
}

TEST(TriangularSolve, AllForms) {
  auto solve = [](const std::string& b, const std::string& attrs) {
    return run_op("triangular-solve", b.substr(0, b.find(' ')), {"f32[2,2] {{2,5},{3,4}}", b},
                  attrs);
  };
  const std::string column = "f32[2,1] {{2},{11}}", row = "f32[1,2] {{2,11}}";
  const std::string plain = ", transpose_a=NO_TRANSPOSE", unit = ", unit_diagonal=true";
  EXPECT_EQ(solve(column, "left_side=true, lower=true" + plain), "{ {1}, {2} }");
  EXPECT_EQ(solve(column, "left_side=true, lower=true, transpose_a=TRANSPOSE"),
            "{ {-3.125}, {2.75} }");
  EXPECT_EQ(solve(column, "left_side=true, lower=false" + plain), "{ {-5.875}, {2.75} }");
  EXPECT_EQ(solve(column, "left_side=true, lower=true" + plain + unit), "{ {2}, {5} }");
  EXPECT_EQ(solve(row, "left_side=false, lower=true" + plain), "{ {-3.125, 2.75} }");
  EXPECT_EQ(solve(row, "left_side=false, lower=true, transpose_a=TRANSPOSE"), "{ {1, 2} }");
  EXPECT_EQ(solve(row, "left_side=false, lower=false" + plain), "{ {1, 1.5} }");
}

TEST(TriangularSolve, AdjointConjugates) {
  // conj(a)^T x = b with a = {{i, 0}, {1, 2i}}.
  EXPECT_EQ(run_op("triangular-solve", "c64[2,1]",
                   {"c64[2,2] {{(0,1),(0,0)},{(1,0),(0,2)}}", "c64[2,1] {{(1,0)},{(2,0)}}"},
                   "left_side=true, lower=true, transpose_a=ADJOINT"),
            "{ {(1, 1)}, {(-0, 1)} }");
}

TEST(BatchNorm, TrainingNormalizesEachFeature) {
  EXPECT_EQ(run_op("batch-norm-training", "(f32[2,2], f32[2], f32[2])",
                   {"f32[2,2] {{1,10},{3,30}}", "f32[2] {2,1}", "f32[2] {5,0}"},
                   "epsilon=0, feature_index=1"),
            "({ {3, -1}, {7, 1} }, {2, 20}, {1, 100})");
}

TEST(BatchNorm, Inference) {
  EXPECT_EQ(
      run_op("batch-norm-inference", "f32[1,2]",
             {"f32[1,2] {{5,7}}", "f32[2] {1,2}", "f32[2] {0,1}", "f32[2] {3,7}", "f32[2] {3.5,1}"},
             "epsilon=0.5, feature_index=1"),
      "{ {1, 1} }");
}

TEST(BatchNorm, GradientOfALinearFunctionOfTheInputIsZero) {
  // With g = x - mean the output's variance does not change along g: dx = 0.
  EXPECT_EQ(run_op("batch-norm-grad", "(f32[4,1], f32[1], f32[1])",
                   {"f32[4,1] {{1},{1},{-1},{-1}}", "f32[1] {3}", "f32[1] {0}", "f32[1] {1}",
                    "f32[4,1] {{1},{1},{-1},{-1}}"},
                   "epsilon=0, feature_index=1"),
            "({ {0}, {0}, {0}, {0} }, {4}, {0})");
  EXPECT_EQ(run_op("batch-norm-grad", "(f32[4,1], f32[1], f32[1])",
                   {"f32[4,1] {{1},{1},{-1},{-1}}", "f32[1] {2}", "f32[1] {0}", "f32[1] {1}",
                    "f32[4,1] {{4},{0},{0},{0}}"},
                   "epsilon=0, feature_index=1"),
            "({ {4}, {-4}, {0}, {0} }, {4}, {4})");
}

}  // namespace
}  // namespace heddle::interp
