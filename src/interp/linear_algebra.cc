// cholesky and triangular-solve, in c128 (f64 for real types, whose imaginary parts stay zero).
#include <cmath>

#include "interp/evaluator.h"

namespace heddle::interp {

using hlo::Instr;

namespace {

// One n x m matrix of a batch.
struct Matrix {
  Complex* data;
  int64_t rows, columns;
  Complex& at(int64_t i, int64_t j) const { return data[i * columns + j]; }
};

Matrix matrix_of(std::vector<Complex>& values, const Shape& shape, int64_t batch) {
  const int64_t rows = shape.dim(-2), columns = shape.dim(-1);
  return {values.data() + batch * rows * columns, rows, columns};
}

int64_t batches(const Shape& shape) {
  const int64_t size = shape.dim(-2) * shape.dim(-1);
  return size == 0 ? 0 : shape.elems() / size;
}

// For real types keeps the real part.
Result<Literal> literal_of(const Shape& shape, const std::vector<Complex>& values) {
  HEDDLE_ASSIGN_OR_RETURN(Literal result, Literal::make(shape));
  if (tensor::is_complex(shape.type())) {
    set_values(result, values);
  } else {
    std::vector<double> real(values.size());
    for (size_t i = 0; i < values.size(); ++i) real[i] = values[i].real();
    set_values(result, real);
  }
  return result;
}

// a = l l^H in place, from the lower triangle of a; zeros above. A matrix that is not positive
// definite becomes all NaN.
void factor(const Matrix& a) {
  const int64_t n = a.rows;
  bool failed = false;
  for (int64_t j = 0; j < n && !failed; ++j) {
    double pivot = a.at(j, j).real();
    for (int64_t k = 0; k < j; ++k) pivot -= std::norm(a.at(j, k));
    failed = !(pivot > 0);
    const double root = std::sqrt(pivot);
    a.at(j, j) = root;
    for (int64_t i = j + 1; i < n; ++i) {
      Complex sum = a.at(i, j);
      for (int64_t k = 0; k < j; ++k) sum -= a.at(i, k) * std::conj(a.at(j, k));
      a.at(i, j) = sum / root;
    }
    for (int64_t i = 0; i < j; ++i) a.at(i, j) = 0;
  }
  if (failed) std::fill_n(a.data, n * n, Complex(NAN, NAN));
}

// Does not turn a zero imaginary part into -0.
Complex conjugate(Complex z) { return {z.real(), 0 - z.imag()}; }

void conjugate_transpose(const Matrix& a) {
  for (int64_t i = 0; i < a.rows; ++i) {
    a.at(i, i) = conjugate(a.at(i, i));
    for (int64_t j = 0; j < i; ++j) {
      const Complex below = a.at(i, j);
      a.at(i, j) = conjugate(a.at(j, i));
      a.at(j, i) = conjugate(below);
    }
  }
}

// Access to a by index: transposed, conjugated, with ones on the diagonal.
struct Triangle {
  const Matrix& a;
  bool lower, transposed, conjugated, unit;
  Complex operator()(int64_t i, int64_t j) const {
    if (i == j && unit) return 1;
    const Complex value = transposed ? a.at(j, i) : a.at(i, j);
    return conjugated ? std::conj(value) : value;
  }
};

// Solves t x = b in place by substitution; x is a column of `n` elements `step` apart.
void substitute(const Triangle& t, Complex* x, int64_t n, int64_t step) {
  for (int64_t r = 0; r < n; ++r) {
    const int64_t i = t.lower ? r : n - 1 - r;
    Complex sum = x[i * step];
    for (int64_t s = 0; s < r; ++s) {
      const int64_t j = t.lower ? s : n - 1 - s;
      sum -= t(i, j) * x[j * step];
    }
    x[i * step] = sum / t(i, i);
  }
}

}  // namespace

Result<Literal> eval_cholesky(Evaluator&, const Instr& instr, Operands& operands) {
  const bool lower = instr.attrs_as<hlo::CholeskyAttrs>().lower;
  const Shape& shape = operands[0].shape();
  std::vector<Complex> a = values_as<Complex>(operands[0]);
  for (int64_t batch = 0; batch < batches(shape); ++batch) {
    const Matrix matrix = matrix_of(a, shape, batch);
    if (!lower) conjugate_transpose(matrix);  // a = u^H u, with u = l^H
    factor(matrix);
    if (!lower) conjugate_transpose(matrix);
  }
  return literal_of(shape, a);
}

Result<Literal> eval_triangular_solve(Evaluator&, const Instr& instr, Operands& operands) {
  const auto& attrs = instr.attrs_as<hlo::TriangularSolveAttrs>();
  using Transpose = hlo::TriangularSolveAttrs::Transpose;
  const Shape& shape = operands[1].shape();
  std::vector<Complex> a = values_as<Complex>(operands[0]), b = values_as<Complex>(operands[1]);
  // x op(a) = b is op(a)^T x^T = b^T: solves for the rows of x instead of the columns.
  const bool op_transposes = attrs.transpose_a != Transpose::no_transpose;
  const bool transposed = op_transposes == attrs.left_side;
  const bool lower = attrs.lower != transposed;
  for (int64_t batch = 0; batch < batches(shape); ++batch) {
    const Matrix matrix = matrix_of(a, operands[0].shape(), batch);
    const Triangle triangle{matrix, lower, transposed, attrs.transpose_a == Transpose::adjoint,
                            attrs.unit_diagonal};
    const Matrix x = matrix_of(b, shape, batch);
    if (attrs.left_side) {
      for (int64_t j = 0; j < x.columns; ++j) substitute(triangle, &x.at(0, j), x.rows, x.columns);
    } else {
      for (int64_t i = 0; i < x.rows; ++i) substitute(triangle, &x.at(i, 0), x.columns, 1);
    }
  }
  return literal_of(shape, b);
}

}  // namespace heddle::interp
